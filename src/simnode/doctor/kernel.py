"""What of the kernel consumers look at besides device files: the modules, and the PCI bus with the GPUs on it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from simnode.doctor.findings import Finding
from simnode.doctor.view import View

FEATURES = "/etc/kubernetes/node-feature-discovery/features.d"
LABELS = ("pci-10de.present", "pci-0302_10de.present", "pci-0300_10de.present")
_VENDOR, _DISPLAY = "0x10de", "0x03"
# What go-nvlib, by which feature discovery and the DRA driver look at a function, takes or ends with an error.
_ATTRIBUTES = {
    "vendor": (re.compile(_VENDOR), f"{_VENDOR}"),
    "class": (re.compile(f"{_DISPLAY}[0-9a-f]{{4}}"), f"{_DISPLAY}…"),
    "device": (re.compile("0x[0-9a-f]{4}"), "0x and four digits"),
    "numa_node": (re.compile("-1|[0-9]{1,9}"), "-1 or a node's number"),
    "resource": (re.compile(r"0x[0-9a-f]{16}( 0x[0-9a-f]{16}){2}(\n0x[0-9a-f]{16}( 0x[0-9a-f]{16}){2})*"), "regions"),
}
_HEADER_BYTES = 64  # of PCI config space, all that an ordinary user reads of a real one


def modules(view: View) -> Iterator[Finding]:
    """The driver's modules are live, and listed where the kernel lists any."""
    for name, what in (("nvidia", "the driver"), ("nvidia_uvm", "its unified memory")):
        at = f"{view.sys}/module/{name}/initstate"
        place = view.reach(at)
        if place.status is None:
            yield Finding(place.path, place.fault, f"{what} counts as not loaded", "live")
        elif (view.text(at) or "").strip() != "live":
            yield Finding(at, "does not say live", f"{what} counts as not loaded", "live")
    yield from _count(view, f"{view.sys}/module/nvidia/refcnt")
    at = f"{view.proc}/modules"
    lines = view.text(at)
    if lines is None:
        if view.kind != "local":  # a kernel without loadable modules has none, and a local node shows none then
            place = view.reach(at)
            yield Finding(
                place.path,
                place.fault or "cannot be read",
                "operands wait for ever",
                "the machine's modules, and nvidia",
            )
    elif not any(line.startswith("nvidia ") for line in lines.splitlines()):
        yield Finding(
            at, "has no line `nvidia `", "the operator's operands wait for it for ever", "the driver's modules"
        )


def bus(view: View) -> Iterator[Finding]:
    """Each GPU is a function of NVIDIA's on the PCI bus, with the driver bound to it, and no other GPU is."""
    above = f"{view.sys}/bus/pci/devices"
    for address in view.gpus:
        at = f"{above}/{address}"
        place = view.reach(at)
        if place.status is None:
            yield Finding(place.path, place.fault, "the GPU has no PCI function: no label, no PCI root", "the function")
            continue
        yield from _function(view, at)
    for address in view.names(above):
        if address not in view.gpus and _is_gpu(view, f"{above}/{address}"):
            found = f"is a GPU that {view.driver_proc}/nvidia/gpus does not have"
            yield Finding(f"{above}/{address}", found, "labels count one GPU too many", "it to go with the GPU")


def nfd(view: View) -> Iterator[Finding]:
    """A feature file tells of NVIDIA's devices, since NFD looks at the host's own bus; in a local node the bus does."""
    if not view.gpus or view.kind == "plain":
        return
    why = "no label says that there is a GPU, so that operands are not scheduled here"
    if view.kind == "local":
        above = f"{view.sys}/bus/pci/devices"
        if not any(_is_gpu(view, f"{above}/{name}") for name in view.names(above)):
            yield Finding(above, "has no function of class 03 and vendor 10de", why, "the GPUs")
        return
    for name in view.names(FEATURES):
        lines = (view.text(f"{FEATURES}/{name}") or "").splitlines() if name.endswith(".features") else []
        if any(line.strip() in {label, f"{label}=true"} for line in lines for label in LABELS):
            return
    place = view.reach(f"{FEATURES}/simnode.features")
    fault = place.fault or "does not tell of NVIDIA's devices"
    yield Finding(place.path, fault, why, f"a line {LABELS[0]}=true")


def _function(view: View, at: str) -> Iterator[Finding]:
    why = "feature discovery ends with an error, or takes the GPU for something else"
    for name, (form, want) in _ATTRIBUTES.items():
        text = view.text(f"{at}/{name}")
        place = view.reach(f"{at}/{name}")
        if text is None:
            yield Finding(place.path, place.fault or "cannot be read", why, want)
        elif not form.fullmatch(text.strip()):
            yield Finding(place.path, f"says {text.strip()}", why, want)
        elif closed := view.closed(place.path):
            yield Finding(place.path, closed, why, "mode 0444")
    config = view.content(f"{at}/config")
    if config is None or len(config) < _HEADER_BYTES:
        place = view.reach(f"{at}/config")
        found = place.fault or f"has {len(config or b'')} bytes"
        yield Finding(place.path, found, why, f"the config space, {_HEADER_BYTES} bytes at least")
    driver = view.reach(f"{at}/driver")
    if not driver.path.endswith("/nvidia") or driver.status is None:
        found = driver.fault or "is not nvidia"
        yield Finding(driver.path, found, "the GPU counts as bound to no driver", "a link to the driver nvidia")


def _count(view: View, at: str) -> Iterator[Finding]:
    """Who looks whether the driver is in use finds a number."""
    place = view.reach(at)
    if not (view.text(at) or "").strip().removeprefix("-").isdecimal():
        found = place.fault or "is no number"
        yield Finding(place.path, found, "nobody can tell whether the driver is in use", "how often it is in use")


def _is_gpu(view: View, at: str) -> bool:
    vendor, kind = view.text(f"{at}/vendor"), view.text(f"{at}/class")
    return (vendor or "").startswith(_VENDOR) and (kind or "").startswith(_DISPLAY)
