"""Whole outputs of `foundry diff`, its exit codes, and captures of real programs on the simulator."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.commandline import CommandLine
from helpers.differing import OTHER_BASE, sample
from helpers.json_schema import of_object, read_schema
from helpers.snapshots import check
from helpers.source import ROOT

from foundry import archive, native
from foundry.diff.report import Kind, Strength
from foundry.model import Capture

SCHEMA = read_schema(ROOT / "cli" / "JSON.md")
STACK, STACK_MOVE = 0x7FFC1A2B3C40, 0x2B3534150
SERVER = Path(__file__).parents[1] / "engines" / "decode_server.py"


def varied() -> Capture:
    """The sample with all kinds of changes."""
    capture = sample(constant=4, first_bytes=2048)
    process = capture.processes[0]
    kernels = (replace(process.kernels[0], attributes=((8, 2048),)), process.kernels[1])
    images = (process.images[0], replace(process.images[1], key=b"\2" * 32, blob=0))
    groups = (replace(process.groups[0], edges=process.groups[0].edges[1:]), *process.groups[1:])
    graphs = (process.graphs[0], replace(process.graphs[1], key="2"))
    return replace(
        capture,
        packages={"torch": "2.12.0"},
        context={**capture.context, "argv": '["python3", "serve.py", "--tensor-parallel-size", "2"]'},
        processes=(replace(process, kernels=kernels, images=images, groups=groups, graphs=graphs),),
    )


CASES: dict[str, Callable[[], Capture]] = {
    "equal": lambda: replace(sample(), processes=(replace(sample().processes[0], counters={"launches": 3}),)),
    "relocation": lambda: sample(OTHER_BASE),
    "noise": lambda: sample(words=(STACK + STACK_MOVE, 5)),
    "different": varied,
    "process": lambda: sample(role="python-1"),
}


@pytest.fixture
def archives(foundry_command: CommandLine) -> CommandLine:
    archive.write(sample(), foundry_command.work / "a.fdry")
    archive.write(sample(words=(STACK, 5)), foundry_command.work / "noisy.fdry")
    for name, make in CASES.items():
        archive.write(make(), foundry_command.work / f"{name}.fdry")
    return foundry_command


def compared(command: CommandLine, name: str, *options: str, columns: str = "80") -> tuple[int, str]:
    before = "noisy.fdry" if name == "noise" else "a.fdry"
    result = command.run("diff", before, f"{name}.fdry", *options, environment={"COLUMNS": columns})
    assert result.stderr == ""
    return result.returncode, re.sub(r"\b[0-9a-f]{16}\b", "0123456789abcdef", result.stdout)


@pytest.mark.parametrize("name", CASES)
def test_the_whole_output(archives: CommandLine, name: str) -> None:
    code, text = compared(archives, name)
    assert code == (0 if name == "equal" else 1)
    check(f"diff-{name}", text)
    assert all(len(line) <= 80 and line == line.rstrip() for line in text.splitlines())


def test_all_shows_every_difference(archives: CommandLine) -> None:
    _, text = compared(archives, "different", "--all")
    check("diff-different-all", text)
    assert "more" not in re.sub(r"node \d+ and \d+ more", "", text)


@pytest.mark.parametrize(
    ("name", "accepted"), [("equal", ("", "relocation", "noise")), ("relocation", ("relocation", "noise")),
                           ("noise", ("noise",)), ("different", ())]
)  # fmt: skip
def test_what_is_accepted(archives: CommandLine, name: str, accepted: tuple[str, ...]) -> None:
    for up_to in ("", "relocation", "noise"):
        code, text = compared(archives, name, "--json", *(["--up-to", up_to] if up_to else []))
        document = json.loads(text)
        assert of_object(SCHEMA, SCHEMA["diff"], document, "diff") == []
        assert (code, document["verdict"], document["accepted"]) == (
            int(up_to not in accepted),
            name,
            up_to in accepted,
        )


def test_json_says_it_all(archives: CommandLine) -> None:
    document = json.loads(compared(archives, "different", "--json")[1])
    assert [one["kind"] for one in document["kinds"]] == [kind.value for kind in Kind]
    assert document["before"]["archive"] == "a.fdry"
    assert document["words"] == {"different": 3}
    words = {strength.word for strength in Strength}
    for one in document["kinds"]:
        assert set(one["counts"]) <= words
        assert sum(one["counts"].values()) == len(one["changes"])
        for change in one["changes"]:
            assert list(change) == ["where", "what", "before", "after", "strength", "count"]
    node = document["kinds"][6]["changes"][0]
    assert node == {
        "where": "python-0: graph decode/8: node 4 and 2 more",
        "what": "`mix_array<float>`: parameter 1, byte 8",
        "before": "3",
        "after": "4",
        "strength": "different",
        "count": 3,
    }


def test_an_archive_is_equal_to_itself_without_reading_it(archives: CommandLine) -> None:
    path = archives.work / "a.fdry"
    data = bytearray(path.read_bytes())
    (archives.work / "copy.fdry").write_bytes(data)
    section = archive.summary(path).sections[1]
    data[section.offset + section.stored // 2] ^= 0xFF
    path.write_bytes(data)
    result = archives.run("diff", path, "copy.fdry")
    assert (result.returncode, result.stdout.splitlines()[0]) == (0, "equal: the same capture")


def other_major(data: bytes) -> bytes:
    return data[:8] + (9).to_bytes(2, "little") + data[10:]


@pytest.mark.parametrize(
    ("change", "exit_code", "code"),
    [
        (lambda data: b"", 2, "archive-empty"),
        (lambda data: b"something else entirely", 2, "archive-not-one"),
        (lambda data: data[:40], 2, "archive-truncated"),
        (lambda data: data[:-40] + bytes([data[-40] ^ 1]) + data[-39:], 2, "archive-footer"),
        (other_major, 4, "archive-too-new"),
        (None, 2, "archive-not-found"),
    ],
)
@pytest.mark.parametrize("side", [0, 1])
def test_an_archive_that_cannot_be_read(
    archives: CommandLine, change: Callable[[bytes], bytes] | None, exit_code: int, code: str, side: int
) -> None:
    path = archives.work / "broken.fdry"
    if change:
        path.write_bytes(change((archives.work / "a.fdry").read_bytes()))
    words = ["broken.fdry", "a.fdry"] if side == 0 else ["a.fdry", "broken.fdry"]
    for option in ([], ["--json"]):
        result = archives.run("diff", *words, *option)
        assert result.returncode == exit_code
        if option:
            assert json.loads(result.stdout)["error"]["code"] == code
            assert result.stderr == ""
        else:
            assert result.stdout == ""
            assert "broken.fdry" in result.stderr


@pytest.mark.parametrize("words", [[], ["a.fdry"], ["a.fdry", "a.fdry", "--up-to", "anything"], ["--nonsense"]])
def test_usage(archives: CommandLine, words: list[str]) -> None:
    result = archives.run("diff", *words)
    assert (result.returncode, result.stdout) == (2, "")
    assert "hint: `foundry diff --help`" in result.stderr


def test_names_that_a_terminal_would_obey_are_escaped(archives: CommandLine) -> None:
    capture = sample()
    graphs = tuple(replace(graph, key=f"\x1b[31m{graph.key}\n") for graph in capture.processes[0].graphs)
    archive.write(
        replace(capture, processes=(replace(capture.processes[0], graphs=graphs),)), archives.work / "odd.fdry"
    )
    result = archives.run("diff", "a.fdry", "odd.fdry")
    assert (result.returncode, "\x1b" in result.stdout) == (1, False)
    assert "decode/\\x1b[31m8\\n" in result.stdout


class TestOnTheSimulator:
    """Programs that run, under the real hook."""

    @pytest.fixture
    def command(self, tmp_path: Path) -> CommandLine:
        return CommandLine(tmp_path, native.library_directory())

    def capture(self, command: CommandLine, name: str, seed: str, occupied: str = "") -> None:
        script = command.work / "server.py"
        script.write_text(
            "import ctypes, os, runpy, sys\n"
            "if os.environ.get('OCCUPIED'):\n"
            "    map = ctypes.CDLL(None).mmap\n"
            "    map.restype, map.argtypes = ctypes.c_void_p, [ctypes.c_void_p, *4 * [ctypes.c_long], ctypes.c_long]\n"
            "    place = int(os.environ['OCCUPIED'], 16)\n"
            "    assert map(place, 4096, 0, 0x100022, -1, 0) == place\n"
            f"sys.argv = [{str(SERVER)!r}, '--once', '--quiet']\n"
            "sys.path.insert(0, os.path.dirname(sys.argv[0]))\n"
            "runpy.run_path(sys.argv[0], run_name='__main__')\n"
        )
        environment = {"FOUNDRY_SIM_SEED": seed, "OCCUPIED": occupied}
        words = ("capture", "-q", "--sim", "-o", f"{name}.fdry", "--", sys.executable, "server.py")
        result = command.run(*words, environment=environment)
        assert result.returncode == 0, result.stderr

    def test_two_captures_of_one_program_are_equal(self, command: CommandLine) -> None:
        for seed in ("1", "2"):
            self.capture(command, seed, seed)
        result = command.run("diff", "1.fdry", "2.fdry")
        assert (result.returncode, result.stdout.splitlines()[0]) == (0, "equal: the same capture")

    def test_one_that_found_its_addresses_taken_is_equal_up_to_relocation(self, command: CommandLine) -> None:
        self.capture(command, "a", "1")
        self.capture(command, "b", "2", occupied="403500000000")
        result = command.run("diff", "a.fdry", "b.fdry", "--json")
        document = json.loads(result.stdout)
        assert (result.returncode, document["verdict"]) == (1, "relocation"), [
            k for k in document["kinds"] if "different" in k["counts"]
        ]
        assert list(document["words"]) == ["relocated"]
        assert command.run("diff", "a.fdry", "b.fdry", "--up-to", "relocation").returncode == 0

    def test_another_program_is_different(self, command: CommandLine) -> None:
        for name, tokens in (("a", 12), ("b", 5)):
            words = ("capture", "-q", "--sim", "-o", f"{name}.fdry", "--", sys.executable, SERVER, "--once", "--quiet")
            assert command.run(*words, "--tokens", tokens).returncode == 0
        result = command.run("diff", "a.fdry", "b.fdry")
        assert result.returncode == 1
        assert result.stdout.startswith("different: fingerprint\n")
        assert "--quiet --tokens 5\n" in result.stdout
