"""What every consumer of NVML needs: the libraries and their links, an image, an NVML that answers, nvidia-smi."""

from __future__ import annotations

import re
import stat
import struct
from collections.abc import Iterator

from simnode.doctor.answers import ended
from simnode.doctor.findings import Finding
from simnode.doctor.view import NVML_NAME, View
from simnode.nvml.cells import HEADER, IMAGE
from simnode.nvml.layout import FORMAT, IMAGE_NAME, MAGIC

ELF = b"\x7fELF"
_STEMS = ("libnvidia-ml.so", "libcuda.so")
_VERSION = re.compile(r"\d+(?:\.\d+)+")
_HEADER = struct.Struct("=QI")
_DONE = struct.Struct("=Q")


def libraries(view: View) -> Iterator[Finding]:
    """Each library by its SONAME and without a version, and no other release beside it."""
    for stem in _STEMS:
        releases = versions(view, f"{view.driver}/usr/lib64", stem)
        if not releases and stem != _STEMS[0] and not view.exists(f"{view.libraries}/{stem}"):
            continue
        for name in dict.fromkeys((f"{stem}.1", stem)):
            place = view.reach(f"{view.libraries}/{name}")
            if place.status is None:
                why = f"whoever loads {name} finds none"
                yield Finding(place.path, place.fault, why, _led(name, stem, releases))
        yield from _loadable(view, f"{view.libraries}/{stem}.1")
        current = library_version(view, view.libraries, stem)
        for other in releases:
            if current and other != current:
                why = f"who takes the release from the file's name may take {other} for it"
                at = f"{view.driver}/usr/lib64/{stem}.{other}"
                yield Finding(at, f"lies beside that of {current}", why, "one release only")


def image(view: View) -> Iterator[Finding]:
    """The file from which every call is answered: there, an image, of a format that its name says, published."""
    config = f"{view.driver}/config"
    names = [name for name in view.names(config) if name.startswith("image.")]
    why = "NVML answers everybody that the driver is not loaded"
    if IMAGE_NAME not in names:
        yield Finding(f"{config}/{IMAGE_NAME}", "is missing", why, "the image, which a running agent writes")
    for name in names:
        status = view.reach(f"{config}/{name}").status
        header = view.content(f"{config}/{name}", HEADER.size)
        fault = _image_fault(header, 0 if status is None else status.st_size, name.removeprefix("image."))
        if fault:
            yield Finding(f"{config}/{name}", fault, why, "it removed, for the agent to write it anew")
        elif closed := view.closed(f"{config}/{name}"):
            yield Finding(f"{config}/{name}", closed, "NVML answers its owner alone", "mode 0644")


def answers(view: View) -> Iterator[Finding]:
    """NVML loads, initialises and knows every GPU; what another finding explains is not told again."""
    at = f"{view.libraries}/{NVML_NAME}"
    if view.reach(at).status is None or any(image(view)):
        return
    nvml = view.nvml
    if nvml.fault and not any(agreement(view)):
        yield Finding(at, nvml.fault, "no program sees a GPU", "nvmlInit_v2 to succeed")
    for gpu in nvml.gpus:
        if gpu.fault:
            why = f"who asks for GPU {gpu.index} is refused; `simnode fault list` tells whether that is on purpose"
            yield Finding(at, f"GPU {gpu.index}: {gpu.fault}", why, "all GPUs to answer")
    if not nvml.fault and len(nvml.gpus) != len(view.gpus) and _all_there(view):
        found = f"counts {len(nvml.gpus)} GPUs, where {view.driver_proc}/nvidia/gpus has {len(view.gpus)}"
        yield Finding(at, found, "consumers advertise another number than there is", "one number")


def agreement(view: View) -> Iterator[Finding]:
    """The modules are of the libraries' release."""
    current = library_version(view, view.libraries, _STEMS[0])
    if not current:
        return
    for at in (f"{view.driver_proc}/nvidia/version", f"{view.sys}/module/nvidia/version"):
        place = view.reach(at)
        text = view.text(at)
        if text is None:
            yield Finding(
                place.path, place.fault or "cannot be read", "no kernel module seems loaded", f"{current} there"
            )
            continue
        told = _VERSION.search(text.partition(" Module")[2] or text)
        if told is None or told[0] != current:
            found = f"says {told[0] if told else 'no version'}, and the libraries are of {current}"
            why = "NVML refuses with a mismatch of driver and library"
            yield Finding(at, found, why, f"{current}, as after a reboot; `simnode fault clear` ends a version-skew")
    told_by_nvml = view.nvml.driver_version
    if told_by_nvml and told_by_nvml != current:
        at = view.reach(f"{view.libraries}/{NVML_NAME}").path
        why = "tools that find libraries by the reported release find none"
        yield Finding(at, f"reports driver {told_by_nvml}", why, f"{current}, as the file is named")


def nvidia_smi(view: View) -> Iterator[Finding]:
    """It is there, can be executed, and lists the GPUs where NVML has no fault of its own."""
    at = f"{view.programs}/nvidia-smi"
    yield from executable(view, at, "whoever calls nvidia-smi has none")
    nvml = view.nvml
    if any(executable(view, at, "")) or nvml.fault or any(gpu.fault for gpu in nvml.gpus) or not nvml.gpus:
        return
    code, said = view.run(at, "-L")
    listed = sum(line.startswith("GPU ") for line in said.splitlines())
    if code != 0:
        yield Finding(
            at, ended(code, said), "whoever calls nvidia-smi gets no list", "`nvidia-smi -L` to list the GPUs"
        )
    elif listed != len(nvml.gpus):
        found = f"lists {listed} GPUs, where NVML counts {len(nvml.gpus)}"
        yield Finding(at, found, "people and programs see different nodes", "one number")


def executable(view: View, at: str, why: str) -> Iterator[Finding]:
    """A program that everybody may execute leads there."""
    place = view.reach(at)
    if place.status is None:
        yield Finding(place.path, place.fault, why, "a program that everybody may execute")
    elif not stat.S_ISREG(place.status.st_mode) or place.status.st_mode & 0o555 != 0o555:
        yield Finding(place.path, "cannot be executed by everybody", why, "a program of mode 0755")
    elif (view.content(at, len(ELF)) or b"")[:2] not in (ELF[:2], b"#!"):
        yield Finding(place.path, "is no program", why, "a program")


def library_version(view: View, directory: str, stem: str) -> str:
    """The release of the library that the SONAME leads to, by that file's name; "" if it leads nowhere."""
    place = view.reach(f"{directory}/{stem}.1")
    name = place.path.rpartition("/")[2]
    return name.removeprefix(f"{stem}.") if place.status is not None and name != f"{stem}.1" else ""


def versions(view: View, directory: str, stem: str) -> list[str]:
    """The releases of which there is a library."""
    suffixes = [name.removeprefix(f"{stem}.") for name in view.names(directory) if name.startswith(f"{stem}.")]
    return [suffix for suffix in suffixes if _VERSION.fullmatch(suffix)]


def _loadable(view: View, at: str) -> Iterator[Finding]:
    """What is there can be read by everybody, and is a library at all."""
    place = view.reach(at)
    if place.status is None:
        return
    if closed := view.closed(at):
        yield Finding(place.path, closed, "users' programs cannot load it", "mode 0755")
    elif not at.endswith(NVML_NAME) and view.content(at, len(ELF)) != ELF:  # NVML is loaded, and tells more then
        yield Finding(place.path, "is no library", "whoever loads it fails", "an ELF file")


def _all_there(view: View) -> bool:
    """False where a GPU without a device file is not shown by NVML either."""
    return not view.has_devices or all(view.exists(f"{view.dev}/nvidia{minor}") for minor in view.gpus.values())


def _image_fault(header: bytes | None, size: int, number: str) -> str:
    """What is wrong with an image of `size` bytes that begins so, and is named image.`number`."""
    if header is None:
        return "is no file that can be read"
    if len(header) < _HEADER.size or _HEADER.unpack_from(header)[0] != MAGIC:
        return "is no image"
    told = _HEADER.unpack_from(header)[1]
    if str(told) != number:
        return f"is of format {told}, not of the one that its name says"
    if told == FORMAT and size < IMAGE.size:
        return f"is cut off: {size} bytes of {IMAGE.size}"
    if told == FORMAT and _DONE.unpack_from(header, HEADER.offsets["done"])[0] == 0:
        return "was never published"
    return ""


def _led(name: str, stem: str, releases: list[str]) -> str:
    return f"{name} to lead to {stem}.{releases[0]}" if len(releases) == 1 else f"{name} to lead to a library"
