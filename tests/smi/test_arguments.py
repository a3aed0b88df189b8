"""Options and their values: which GPUs, how often, into which file, and what goes together, as the real one says it."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path

import pytest

from tests.smi.conftest import OURS, Images, Screen, Smi, publish
from tests.smi.nodes import encoded, lost, node

STAMP = re.compile(r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ 1-3]\d \d\d:\d\d:\d\d \d{4}|\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{3}")
CSV = "--query-gpu=index --format=csv"
UUIDS = [device.uuid for device in node(8).devices]
SERIALS = [device.serial for device in node(8).devices]
ADDRESSES = [device.pci_bus_id for device in node(8).devices]
SHORT = ADDRESSES[1].partition(":")[2]

IDS = """\
0;3;8;64;4294967297;-1;03;0x3;+3; 3;3 ;3x;3.;;,;3,;,3;3,,1;3, 1;3,1,3;3,99;99,3;foo;0,foo;all;x:y;1,x:y;99:0.0
""".strip("\n").split(";")
IDS += [
    UUIDS[2],
    UUIDS[2].lower(),
    UUIDS[2][4:],
    UUIDS[2][:-1],
    f"{UUIDS[2]},1",
    SERIALS[3],
    f"{SERIALS[3]},{UUIDS[0]}",
]
IDS += [ADDRESSES[1], ADDRESSES[1].upper(), f"0000{ADDRESSES[1]}", f"1,{ADDRESSES[1]}", f"{ADDRESSES[1]},2", SHORT]
IDS += [SHORT[:-2], SHORT[:3], f"{SHORT[:3]}0.0", f"{SHORT[:-1]}1", f"9:{SHORT}", f"0x{SHORT}"]
ALIKE = [
    "0",
    "1",
    "2",
    "3",
    "0,3",
    "2,3",
    "foo",
    "0,foo",
    "99",
    "x:y",
    SERIALS[2],
    UUIDS[0],
    UUIDS[3],
    SHORT,
    f"3,{SHORT}",
]
"""What is asked of nodes on which not every GPU answers."""

EVERY_100_MS = ["-lms 100", "--loop-ms=0x64", "-lms", "-lms x", "-lms -100"]
EVERY_SECOND_OR_MORE = ["-l 1", "--loop=0x1", "-lms 100 -l 1", "-l", "-l x", "-l -1", "-l 1.5", "-l 1 -lms 100"]
COMBINATIONS = f"""\
-i
--id
-i=
-i0
-i -q
-i -Z
-i -
-i -i
-i -L
-L -i
-i 0 -L
-i -zzz=3
-i foo=3
-i 1 -i 2
-q -i 1 -i 2
-i 1 --format=csv -i 2
-i 1 foo=3
-q foo -i
bar -i foo
-id=0
--i=0
-x
-d ECC
-u
-x -u
-d ECC -u
-x foo
-x -l 0
-x -f /nowhere/log
-qx
-query
-q=3
-q=
-q -d
-q -L
-q --version
-q --format=csv
-q -i 99 -f /nowhere/log
-q -l 0 -i 99
-f -Z -i 99
-l 0
-l=0
-lms 0
--loop=0
--loop-ms=0
-l 1 -l 0
-l -lms 0
-l0
-l foo bar
-l -Z
-l=1=2
-l 0 -f /nowhere/log
-f
-f /nowhere/log
--filename=/nowhere/log
-f=/nowhere/log
--query-gpu
--query-gpu --format=csv
--query-gpu=index
--query-gpu index --format csv
--format=csv
--query-gpu= --format=csv
--query-gpu=, --format=csv
--query-gpu=index, --format=csv
{CSV} -L
{CSV} -q
--query-gpu=index,,name --format=,csv
--query-gpu=index --format
--query-gpu=index --format=
--query-gpu=index --format=xml
--query-gpu=index --format=noheader
--query-gpu=index --format=csv,csv
--query-gpu=index --format=csv,bogus
--query-gpu=bogus --format=csv
--query-gpu=bogus --format=bogus
--query-gpu=index,bogus,x --format=csv
--query-gpu=INDEX --format=CSV
--query-gpu=bogus
--query-gpu=bogus -l 0
--query-gpu=index --format=bogus -l 0
{CSV} -l 0
{CSV} -l 0 -f /nowhere/log
{CSV} -f /nowhere/log
{CSV} --format=csv,noheader
{CSV} --query-gpu=name
{CSV} --query-compute-apps=pid
{CSV} -x
{CSV} -d ECC
{CSV} -u
{CSV} foo
foo {CSV}
--query-gpu=a=b --format=csv
-format=csv --query-gpu=index
--query-gpus=index --format=csv
-query-gpu=index --format=csv
--query-gpu=index --query-compute-apps -l 0
--query-compute-apps=bogus --format=csv
--help-query-gpu -L
--help-query-gpu -h
--help-query-gpu -i
--help-query-gpu -i 1 -i 2
-L=3
-h=3
foo=3
foo=
-q topo
-q nvlink
""".splitlines()


def timeless(screen: Screen) -> Screen:
    """The screen without times."""
    return Screen(screen.code, STAMP.sub("now", screen.output), screen.errors)


def same(ours: Smi, real: Smi, image: Path, *arguments: str) -> None:
    """Every line, and the exit code."""
    assert timeless(ours.run(*arguments, image=image)) == timeless(real.run(*arguments, image=image))


@pytest.mark.parametrize("ids", IDS)
def test_gpus_are_named_in_the_same_ways(ids: str, images: Images, real: Smi, ours: Smi) -> None:
    """By index, UUID, serial number and PCI bus id, one or several."""
    same(ours, real, images("gpus-8"), *CSV.split(" "), "-i", ids)


@pytest.mark.parametrize("condition", ["sick-4", "sick-999", "lost-middle", "lost-all", "gpus-0"])
def test_gpus_are_looked_for_in_the_same_order(condition: str, images: Images, real: Smi, ours: Smi) -> None:
    """One that does not answer is a problem only where it must be asked."""
    for ids in ALIKE:
        same(ours, real, images(condition), *CSV.split(" "), "-i", ids)


@pytest.mark.parametrize("ids", ["0", "2,1", "9"])
@pytest.mark.parametrize("condition", ["gpus-8", "mig-on-two-gpus", "lost-middle"])
def test_the_table_shows_those_gpus(condition: str, ids: str, images: Images, real: Smi, ours: Smi) -> None:
    """And what runs on them."""
    same(ours, real, images(condition), f"--id={ids}")


@pytest.mark.parametrize("line", COMBINATIONS)
def test_what_goes_together_is_the_same(line: str, images: Images, real: Smi, ours: Smi) -> None:
    """And what is wrong with what does not."""
    same(ours, real, images("gpus-8"), *line.split(" "))


@pytest.mark.parametrize("arguments", [[], ["-q", "-d", "ECC"], CSV.split(" ")], ids=["table", "query", "csv"])
def test_a_log_holds_what_the_screen_would(arguments: list[str], images: Images, tmp_path: Path, ours: Smi) -> None:
    """-f takes the view, and nothing is printed."""
    log = tmp_path / "log"
    screen = ours.run(*arguments, "-f", str(log), image=images("gpus-8"))
    assert screen == Screen(0, "", "")
    shown = ours.run(*arguments, image=images("gpus-8"))
    assert STAMP.sub("now", log.read_text()) == timeless(shown).output


def test_a_log_that_was_begun_is_empty_when_there_is_no_gpu(
    images: Images, tmp_path: Path, real: Smi, ours: Smi
) -> None:
    """What is wrong stands on the screen."""
    log = tmp_path / "log"
    same(ours, real, images("lost-all"), "-f", str(log))
    assert log.read_text() == ""


@pytest.fixture(scope="module")
def loops(images: Images) -> dict[str, tuple[list[str], float]]:
    """What ours printed in each of these loops until it was stopped, and after how many seconds that was."""
    begun = time.monotonic()
    command = [str(OURS), *CSV.split(" "), "-i", "0"]
    environ = {"SIMNODE_IMAGE": str(images("gpus-1"))}
    running = {
        every: subprocess.Popen([*command, *every.split(" ")], env=environ, stdout=subprocess.PIPE, text=True)
        for every in (*EVERY_100_MS, *EVERY_SECOND_OR_MORE)
    }
    time.sleep(0.7)
    for process in running.values():
        process.kill()
    lasted = time.monotonic() - begun
    return {every: (process.communicate()[0].splitlines(), lasted) for every, process in running.items()}


@pytest.mark.parametrize("every", EVERY_100_MS)
def test_milliseconds_are_counted(every: str, loops: dict[str, tuple[list[str], float]]) -> None:
    """100 of them where there is no number; a line each time, under one header."""
    lines, lasted = loops[every]
    assert lines[0] == "index"
    assert set(lines[1:]) == {"0"}
    assert 3 <= len(lines) - 1 <= lasted / 0.1 + 1


@pytest.mark.parametrize("every", EVERY_SECOND_OR_MORE)
def test_seconds_are_counted(every: str, loops: dict[str, tuple[list[str], float]]) -> None:
    """5 of them where there is no number; as soon as -l is there all numbers are seconds."""
    lines, lasted = loops[every]
    assert lines[:2] == ["index", "0"]
    assert len(lines) - 1 <= lasted + 1


def last_round(smi: Smi, folder: Path, *arguments: str) -> tuple[int, str]:
    """Exit code and last screen of a loop between two rounds of which a GPU is lost."""
    publish(encoded(node(2)), folder)
    environ = {"SIMNODE_IMAGE": str(folder), "TZ": "UTC", "LD_LIBRARY_PATH": str(smi.libraries or "")}
    command = [str(smi.program), *arguments, "-lms", "500"]
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        running.stdout.readline()
        time.sleep(0.2)
        publish(encoded(lost(1, gpus=2)), folder)
        shown, _ = running.communicate(timeout=20)
    return running.returncode, STAMP.split(shown)[-1]


@pytest.mark.parametrize("arguments", [[], ["-q", "-d", "MEMORY"]], ids=["table", "query"])
def test_a_gpu_that_is_lost_ends_a_loop(arguments: list[str], tmp_path: Path, real: Smi) -> None:
    """With the same last words."""
    assert last_round(Smi(OURS), tmp_path, *arguments) == last_round(real, tmp_path, *arguments)


def test_a_gpu_that_is_lost_ends_no_loop_of_a_csv_query(tmp_path: Path) -> None:
    """Each property says that it is."""
    publish(encoded(node(2)), tmp_path)
    command = [str(OURS), "--query-gpu=index,name", "--format=csv,noheader", "-lms", "20"]
    environ = {"SIMNODE_IMAGE": str(tmp_path)}
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        running.stdout.readline()
        publish(encoded(lost(1, gpus=2)), tmp_path)
        line = next(line for line in running.stdout if "lost" in line)
        assert running.poll() is None
        running.kill()
    assert line == "[GPU is lost], [GPU is lost]\n"
