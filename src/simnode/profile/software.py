"""Which driver a node runs: option > environment > profile, and what follows from it.

The driver version becomes a file name, so nothing but digits and dots passes.
"""

from __future__ import annotations

from collections.abc import Mapping

from simnode.profile.document import Node, find, items
from simnode.profile.faults import Fault, quoted
from simnode.profile.schema import DRIVER_FORM, DRIVER_VERSION
from simnode.profile.shapes import number, text
from simnode.state import SoftwareVersions

# Driver branch -> the CUDA version it reports (release notes; the real captures agree for 570, 580 and 595).
_CUDA = {
    418: "10.1",
    450: "11.0",
    460: "11.2",
    470: "11.4",
    495: "11.5",
    510: "11.6",
    515: "11.7",
    520: "11.8",
    525: "12.0",
    530: "12.1",
    535: "12.2",
    545: "12.3",
    550: "12.4",
    555: "12.5",
    560: "12.6",
    565: "12.7",
    570: "12.8",
    575: "12.9",
    580: "13.0",
    590: "13.1",
    595: "13.2",
    610: "13.3",
    615: "13.4",
}


def cuda_of(driver_version: str) -> str:
    """The CUDA version of a driver, "major.minor"; a branch between two known ones has the older one's."""
    branch = int(driver_version.split(".", 1)[0])
    known = [release for release in _CUDA if release <= branch]
    return _CUDA[known[-1] if known else next(iter(_CUDA))]


def versions(root: Node, option: str | None, environ: Mapping[str, str], faults: list[Fault]) -> SoftwareVersions:
    """The versions of the node. A driver that is not the profile's own brings its own NVML and CUDA versions."""
    own = text(find(root, "system.driver_version"))
    driver = option if option is not None else environ.get("DRIVER_VERSION") or own
    if not driver and option is None:
        system = find(root, "system")
        faults.append(Fault(root.file, "system.driver_version", system.line if system else root.line, "is missing"))
    elif not DRIVER_VERSION.fullmatch(driver):
        if driver != own or option is not None:
            source = "--driver-version" if option is not None else "environment"
            key = "" if option is not None else "DRIVER_VERSION"
            faults.append(Fault(source, key, None, f"must be {DRIVER_FORM}, not {quoted(driver)}"))
        driver = ""
    if not driver:
        return SoftwareVersions("", "", "")
    cuda, loaded = cuda_of(driver), text(find(root, "system.loaded_version"))
    loaded = "" if loaded == driver else loaded
    if driver != own:
        return SoftwareVersions(driver, _nvml(driver), cuda, loaded)
    nvml = text(find(root, "system.nvml_version")) or _nvml(driver)
    return SoftwareVersions(driver, nvml, _own_cuda(root) or cuda, loaded)


def of_another_driver(root: Node, driver: str) -> str:
    """The one line that names the versions which are not those of `driver`, and says what would be; "" if all are.

    A node may be so on purpose. A driver that is not the profile's own brings its versions, whatever the keys say. Of a
    branch that is newer than this table nobody knows the CUDA version.
    """
    if driver != text(find(root, "system.driver_version")):
        return ""
    own = {"nvml_version": f"{text(find(root, 'system.nvml_version')).partition('.')[0]}.{driver}"}
    if int(driver.partition(".")[0]) in _CUDA:
        cuda = cuda_of(driver)
        major, minor = cuda.split(".")
        own = {"nvml_version": _nvml(driver), "cuda_version": cuda}
        own |= {"cuda_version_major": major, "cuda_version_minor": minor}
    places = [(f"system.{key}", find(root, f"system.{key}"), right) for key, right in own.items()]
    firmware = "gsp_firmware.version"
    places.append((f"device_defaults.{firmware}", find(root, f"device_defaults.{firmware}"), driver))
    for at, entry in enumerate(items(find(root, "devices"))):
        places.append((f"devices[{at}].{firmware}", find(entry, firmware), driver))
    told = [
        f"{key} (line {node.line}) should be {right}"
        for key, node, right in places
        if node is not None and text(node) and _release(key, node) != right
    ]
    return f"versions not of driver {driver}: {', '.join(told)}; what is left out follows it" if told else ""


def _release(key: str, node: Node) -> str:
    """A version as far as it tells releases apart: CUDA's without its third part, and a number as a decimal."""
    whole = number(node)
    if whole is not None:
        return str(whole)
    return ".".join(text(node).split(".")[:2]) if key == "system.cuda_version" else text(node)


def _nvml(driver: str) -> str:
    """NVML's version: the driver's behind the CUDA major it was built for."""
    return f"{cuda_of(driver).split('.', 1)[0]}.{driver}"


def _own_cuda(root: Node) -> str:
    major, minor = number(find(root, "system.cuda_version_major")), number(find(root, "system.cuda_version_minor"))
    if major is not None:
        return f"{major}.{minor or 0}"
    return ".".join(text(find(root, "system.cuda_version")).split(".")[:2])
