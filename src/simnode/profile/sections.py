"""The sections of a profile that describe the node and no single device, as parts of State."""

from __future__ import annotations

from simnode.partitions import MIGState
from simnode.profile.document import Node, find
from simnode.profile.faults import Fault
from simnode.profile.identity import uuid_of
from simnode.profile.shapes import number, text
from simnode.profile.surroundings import Surroundings
from simnode.profile.topology import Place
from simnode.state import FabricState, IMEXSoftware, IMEXState, NetworkShape

DEFAULT_STATE_DIR = "/run/simnode/fabricmanager"


def fabric_of(root: Node, surroundings: Surroundings, place: Place | None) -> FabricState:
    """The fabric; `place` is what the topology document says of this node, and counts where the profile has one."""
    nvlink = find(root, "nvlink")
    directory = surroundings.directory("SIMNODE_FABRICMANAGER_STATE_DIR")
    if not directory:
        directory = text(find(root, "fabricmanager.state_dir"))
        enabled = find(root, "fabricmanager.enabled")
        if enabled is not None:
            directory = (directory or DEFAULT_STATE_DIR) if number(enabled) else ""
    cluster = text(find(root, "device_defaults.fabric.cluster_uuid"))
    clique = number(find(root, "device_defaults.fabric.clique_id")) or 0
    if place is not None and find(root, "device_defaults.fabric") is not None:
        cluster, clique = place.cluster_uuid, place.clique_id
    return FabricState(
        enabled=nvlink is not None,
        manager_state_dir=directory,
        cluster_uuid=uuid_of(cluster) if cluster else "",
        clique_id=clique,
        links_per_gpu=number(find(nvlink, "links_per_gpu")) or 0,
        bandwidth_per_link_mbps=number(find(nvlink, "bandwidth_per_link_mbps")) or 0,
    )


def imex_of(root: Node, surroundings: Surroundings) -> IMEXState:
    """The IMEX channel devices."""
    enabled = surroundings.flag("SIMNODE_IMEX")
    if enabled is None:
        enabled = bool(number(find(root, "imex.enabled")))
    major = surroundings.major("SIMNODE_IMEX_MAJOR") or number(find(root, "imex.imex_major"))
    default = IMEXState()
    channels = number(find(root, "imex.channels")) or default.channels
    url, sha256 = (text(find(root, f"imex.software.{key}")) for key in ("url", "sha256"))
    software = IMEXSoftware(url, sha256) if url and sha256 else None
    return IMEXState(enabled, major or default.imex_major, caps_major_of(root, surroundings), channels, software)


def check_majors(root: Node, imex: IMEXState, faults: list[Fault]) -> None:
    """Append a fault if channels and capabilities would be devices of one major."""
    if imex.enabled and imex.imex_major == imex.caps_major:
        message = f"{imex.imex_major} cannot be the major of both IMEX channels and capabilities"
        for key in ("imex.imex_major", "mig.caps_major", "imex.caps_major"):
            node = find(root, key)
            if node is not None and number(node) == imex.imex_major:
                faults.append(Fault(node.file, key, node.line, message))
                return
        faults.append(Fault("environment", "SIMNODE_IMEX_MAJOR", None, message))


def caps_major_of(root: Node, surroundings: Surroundings) -> int:
    """The major of the driver's capability devices, MIG's and IMEX's."""
    given = surroundings.major("SIMNODE_CAPS_MAJOR") or number(find(root, "mig.caps_major"))
    return given or number(find(root, "imex.caps_major")) or MIGState().caps_major


def network_of(root: Node, count: int) -> NetworkShape:
    """The adapters, every field resolved; the figures of a ConnectX-7 stand in for what the profile does not say."""
    block = find(root, "infiniband")
    if block is None or not number(find(block, "enabled")):
        return NetworkShape()
    adapters = number(find(block, "hca_count"))
    per_gpu = number(find(block, "hcas_per_gpu"))
    rate = number(find(block, "rate_gbps"))

    def said(key: str, default: str) -> str:
        return text(find(block, key)) or default

    return NetworkShape(
        ib_enabled=True,
        hca_count=count * (1 if per_gpu is None else per_gpu) if adapters is None else adapters,
        hca_type=said("hca_type", "MT4129"),
        fw_version=said("fw_version", "28.39.2048"),
        hw_rev=said("hw_rev", "0x0"),
        board_id=said("board_id", "MT_0000000838"),
        node_desc_template=said("node_desc_template", "{node_name} mlx5_{idx}"),
        link_layer=said("link_layer", "InfiniBand"),
        rate_gbps=400 if rate is None else rate,
        port_state=said("port_state", "ACTIVE"),
        phys_state=said("phys_state", "LinkUp"),
        guid_prefix=said("guid_prefix", "a088c2:0300:ab"),
    )
