"""The C compiler lays the image out as layout.py says, and the generated tables name every cell."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from simnode.nvml import cells, header, layout
from simnode.nvml.layout import RECORDS
from tests.nvml.conftest import Compile


def test_every_member_of_every_record_lies_in_c_where_python_says(compile_c: Compile, tmp_path: Path) -> None:
    lines = ['#include <stdio.h>\n#include "image_layout.h"\nint main(void)\n{']
    expected = []
    for record in RECORDS.values():
        struct = f"struct sn_{record.name}"
        lines.append(f'printf("{record.name} %zu\\n", sizeof({struct}));')
        expected.append(f"{record.name} {record.size}")
        for member in record.members:
            where = f"{record.name}.{member.name}"
            size = f"sizeof((({struct} *)0)->{member.name})"
            lines.append(f'printf("{where} %zu %zu\\n", offsetof({struct}, {member.name}), {size});')
            expected.append(f"{where} {record.offsets[member.name]} {record.size_of(member.kind) * member.count}")
    probe = tmp_path / "probe.c"
    probe.write_text("\n".join([*lines, "}\n"]))

    told = subprocess.run([compile_c(probe)], capture_output=True, text=True, check=True).stdout

    assert told.splitlines() == expected


def test_the_table_of_counters_names_each_once() -> None:
    text = header.layout_header().partition("sn_counters[] = {")[2].partition("};")[0]

    named = re.findall(r"offsetof\(struct sn_device, (.*?)\),", text)

    links = {f"link[{i}].{name}" for i in range(layout.MAX_LINKS) for name in ("tx_kib", "rx_kib")}
    assert sorted(named) == sorted(links | {cell.member for cell in cells.CELLS if cell.kind == "counter"})


def test_keys_and_members_of_cells_are_unique() -> None:
    assert len({cell.key for cell in cells.CELLS}) == len({cell.member for cell in cells.CELLS}) == len(cells.CELLS)


def test_no_field_id_is_answered_by_two_cells() -> None:
    answered = [(number, scope) for cell in cells.CELLS for number, scope, _ in cell.fields]

    assert len(answered) == len(set(answered))


def test_no_function_is_generated_twice() -> None:
    generated = [name for cell in cells.CELLS for name in cell.getters]

    assert len(generated) == len(set(generated))


def test_generated_files_that_are_right_are_left_alone(tmp_path: Path) -> None:
    header.write(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.[ch]")}

    header.write(tmp_path)

    assert len(before) >= 3
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.[ch]")} == before


def test_slots_and_events_start_on_their_own_pages_or_lines() -> None:
    offsets = cells.IMAGE.offsets

    assert offsets["slot"] == 4096
    assert offsets["slot"] % 64 == 0
    assert cells.IMAGE.size < 11_000_000
