"""What of a State is no device: links, fabric, IMEX, MIG, network, names; and what makes two States equal."""

from __future__ import annotations

from collections import Counter

import pytest

from simnode.nvml.encode import encode
from simnode.profile import Options, ProfileError, compile_state, load_board, load_text
from simnode.profile.links import switches_of
from simnode.state import (
    FabricState,
    IMEXSoftware,
    IMEXState,
    LinkSpec,
    NetworkShape,
    NodeMeta,
    State,
    SwitchSpec,
    VGPUGuestSpec,
)
from tests.profile.documents import SMALL, h100, small


def _environ(**environ: str) -> State:
    return compile_state(load_board("h100"), Options(), environ)


def test_neighbouring_links_lead_to_one_switch() -> None:
    links = h100().runtime.devices[0].links
    assert [link.remote_index for link in links] == [0, 0, 1, 1, 2, 2, 3, 3] * 2 + [0, 1]
    assert links[3] == LinkSpec(True, "switch", "0000:d0:00.0", 1)


def test_no_switch_has_more_links_than_another() -> None:
    per_gpu = [Counter(link.remote_index for link in device.links) for device in h100().runtime.devices]
    assert all(sorted(counts.values()) == [4, 4, 5, 5] for counts in per_gpu)
    assert set(sum(per_gpu, Counter()).values()) == {36}


@pytest.mark.parametrize(("links", "switches", "each"), [(12, 6, 2), (18, 2, 9), (18, 18, 1), (18, 36, 1), (3, 1, 3)])
def test_every_gpu_reaches_as_many_switches_as_its_links_allow(links: int, switches: int, each: int) -> None:
    for gpu in range(8):
        counts = Counter(switches_of(links, switches, gpu))
        assert set(counts.values()) == {each}
        assert len(counts) == min(links, switches)


def test_switches_of_a_rack_have_no_address() -> None:
    state = small("nvlink: {links_per_gpu: 3, remote_switches: 2}\n")
    assert state.switches == ()
    assert state.runtime.devices[0].links == tuple(LinkSpec(True, "switch", "", end) for end in (0, 1, 0))
    assert encode(state)


def test_a_gpu_without_switches_has_the_links_that_are_listed() -> None:
    state = small(
        """\
nvlink:
  links_per_gpu: 4
  device_links:
    - index: 0
      links:
        - {link: 0, remote_device_type: gpu, remote_index: 1}
        - {link: 2, state: down, remote_pci_bus_id: 0000:0F:00.0}
        - {link: 3, remote_device_type: gpu, remote_index: 7}
"""
    )
    assert state.runtime.devices[0].links == (
        LinkSpec(True, "gpu", "0000:0f:00.0", 1),
        LinkSpec(False, "", ""),
        LinkSpec(False, "gpu", "0000:0f:00.0", 1),
        LinkSpec(False, "", ""),
    )
    assert state.runtime.devices[1].links == ()
    assert encode(state)


def test_a_switch_with_a_pci_identity_is_on_the_bus() -> None:
    switch = "{bdf: 0000:01:00.0, device_id: 0x22A310DE, subsystem_id: 0x179610DE}"
    state = small(f"nvlink: {{links_per_gpu: 2, switches: [{switch}], remote_switches: 1}}\n")
    assert state.switches == (SwitchSpec("0000:01:00.0", 0x22A310DE, 0x179610DE),)
    assert [link.remote_pci_bus_id for link in state.runtime.devices[0].links] == ["0000:01:00.0", ""]


def test_switches_without_a_pci_identity_are_on_no_bus() -> None:
    state = small("nvlink: {links_per_gpu: 2, switches: [{bdf: 0000:01:00.0}]}\n")
    assert state.switches == ()
    assert state.runtime.devices[0].links == (LinkSpec(True, "switch", "0000:01:00.0", 0),) * 2


def test_the_fabric_is_there_with_nvlink() -> None:
    assert small().fabric == FabricState()
    assert small("nvlink: {links_per_gpu: 12, bandwidth_per_link_mbps: 25781}\n").fabric == FabricState(
        True, "", "", 0, 12, 25781
    )


@pytest.mark.parametrize(
    ("keys", "environ", "directory"),
    [
        ("", {}, ""),
        ("fabricmanager: {enabled: true}\n", {}, "/run/simnode/fabricmanager"),
        ("fabricmanager: {state_dir: /srv/fm}\n", {}, "/srv/fm"),
        ("fabricmanager: {enabled: false, state_dir: /srv/fm}\n", {}, ""),
        ("fabricmanager: {enabled: true}\n", {"SIMNODE_FABRICMANAGER_STATE_DIR": "/env"}, "/env"),
    ],
)
def test_the_fabric_managers_directory(keys: str, environ: dict[str, str], directory: str) -> None:
    state = compile_state(load_text((SMALL + keys).encode(), "p.yaml"), Options(), environ)
    assert state.fabric.manager_state_dir == directory


def test_imex_from_profile_and_environment() -> None:
    assert h100().imex == IMEXState(False, 235, 236)
    assert small("imex: {enabled: true, imex_major: 500}\n").imex == IMEXState(True, 500, 236)
    assert _environ(SIMNODE_IMEX="true", SIMNODE_IMEX_MAJOR="501", SIMNODE_CAPS_MAJOR="502").imex == IMEXState(
        True, 501, 502
    )


def test_imex_has_as_many_channels_as_are_said_and_software_that_is_known_by_its_checksum() -> None:
    imex = small(f"imex: {{channels: 16, software: {{url: 'https://x/imex.tar.xz', sha256: {'0a' * 32}}}}}\n").imex
    assert (imex.channels, imex.software) == (16, IMEXSoftware("https://x/imex.tar.xz", "0a" * 32))


@pytest.mark.parametrize(
    ("keys", "fault"),
    [
        (f"{{url: 'ftp://x/y', sha256: {'0a' * 32}}}", "imex.software.url: must be a URL of https, http or file"),
        ("{url: 'https://x/y', sha256: 12}", "imex.software.sha256: must be a SHA-256: 64 digits of 0-9 and a-f"),
        ("{url: 'https://x/y'}", "imex.software.sha256: is missing"),
    ],
    ids=["scheme", "checksum", "no checksum"],
)
def test_software_that_nobody_could_check_is_refused(keys: str, fault: str) -> None:
    with pytest.raises(ProfileError) as raised:
        small(f"imex: {{software: {keys}}}\n")
    assert fault in str(raised.value)


def test_kernel_modules_of_the_drivers_own_version_are_no_skew() -> None:
    document = SMALL.replace("num_devices: 2}", "num_devices: 2, loaded_version: 550.163.01}", 1)
    skewed, same = (
        compile_state(load_text(document.encode(), "p.yaml"), Options(driver_version=version), {}).software
        for version in ("580.65.06", "550.163.01")
    )
    assert (skewed.loaded_version, skewed.kernel_version) == ("550.163.01", "550.163.01")
    assert (same.loaded_version, same.kernel_version) == ("", "550.163.01")


def test_a_mig_layout_names_gpus_by_their_minor() -> None:
    state = small(
        """\
mig:
  caps_major: 240
  gpus:
    - index: 1
      gpu_instances:
        - {profile: 2g.10gb, placement: 0}
"""
    )
    (gpu,) = state.mig.gpus
    (instance,) = gpu.gpu_instances
    assert (state.mig.caps_major, gpu.minor, instance.id) == (240, 1, 3)
    assert state.mig.partitioned()
    assert encode(state)


def test_the_network_is_resolved_whole() -> None:
    assert small().node_shape.network == NetworkShape()
    assert small("infiniband: {enabled: true, rate_gbps: 200}\n").node_shape.network == NetworkShape(
        True, 2, "MT4129", "28.39.2048", "0x0", "MT_0000000838", "{node_name} mlx5_{idx}", "InfiniBand", 200, "ACTIVE",
        "LinkUp", "a088c2:0300:ab",
    )  # fmt: skip


def test_adapters_follow_the_gpus_or_are_counted() -> None:
    assert h100(gpus=3).node_shape.network.hca_count == 3
    assert small("infiniband: {enabled: true, hcas_per_gpu: 2}\n").node_shape.network.hca_count == 4
    assert small("infiniband: {enabled: true, hca_count: 1}\n").node_shape.network.hca_count == 1


def test_names_come_from_the_environment() -> None:
    assert _environ(NODE_NAME="n1", HOSTNAME="pod").node == NodeMeta("n1", "pod", "/")


def test_a_vgpu_guest_knows_its_host_driver() -> None:
    guest = "vgpu_guest: {host_driver_version: 550.90.05, host_driver_branch: r550_00}"
    text = SMALL.replace("- index: 1", f"- index: 1\n    {guest}")
    state = compile_state(load_text(text.encode(), "p.yaml"), Options(), {})
    assert [device.vgpu_guest for device in state.devices] == [None, VGPUGuestSpec("550.90.05", "r550_00")]


def test_equal_inputs_give_equal_states_and_the_generation_does_not_count() -> None:
    document = load_board("h100")
    first = compile_state(document, Options(), {}, generation=1)
    assert compile_state(load_board("h100"), Options(), {}, generation=2) == first


def test_an_override_changes_the_runtime_only() -> None:
    assert h100("utilization.gpu=50").same_structure(h100())
    assert h100("utilization.gpu=50") != h100()
    assert not h100(driver="550.163.01").same_structure(h100())


def test_the_environment_is_only_what_is_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPU_COUNT", "1")
    monkeypatch.setenv("NODE_NAME", "elsewhere")
    assert len(h100().devices) == 8
    assert h100().node.node_name == ""
