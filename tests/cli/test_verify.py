"""What `foundry verify` says, whole outputs, and its exit status. The checks themselves have tests of their own."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers.commandline import CommandLine
from helpers.json_schema import of_object, read_schema
from helpers.snapshots import check as check_snapshot
from helpers.source import ROOT
from helpers.verified import BASE, verified_capture, with_graph, with_kernel, with_table

from foundry import archive, native
from foundry.model import Capture

VECTORS = ROOT / "format_spec" / "vectors" / "v1"
SCHEMA = read_schema(ROOT / "cli" / "JSON.md")


def check(name: str, text: str) -> None:
    text = re.sub(r"\b[0-9a-f]{64}\b", "DIGEST", text)
    text = re.sub(r'[\d.]+ (bytes|kB) unpacked|(?<="raw_size": )\d+', "SIZE", text)
    text = re.sub(r"python3\.\d+-0", "python-0", text)
    check_snapshot(name, text)


def told(command: CommandLine, *words: str) -> tuple[int, Any]:
    """The exit status and the document, which must be as `cli/JSON.md` says."""
    result = command.run("verify", "--json", *words)
    assert result.stderr == ""
    document = json.loads(result.stdout)
    assert of_object(SCHEMA, SCHEMA["verify"], document, "verify") == []
    assert document["schema"] == 1
    return result.returncode, document


@pytest.fixture
def whole(tmp_path: Path) -> Capture:
    """A capture that lacks nothing."""
    return verified_capture(tmp_path / "captured", lacking=False)


def write(command: CommandLine, capture: Capture) -> None:
    archive.write(capture, command.work / "a.fdry", force=True)


def test_plain_arguments_need_no_typer(foundry_command: CommandLine, whole: Capture) -> None:
    write(foundry_command, whole)
    for level in ("--quick", "--json"):
        words = [sys.executable, "-X", "importtime", "-m", "foundry", "verify", level, "a.fdry"]
        done = subprocess.run(
            words,
            env=foundry_command.environment,
            cwd=foundry_command.work,
            capture_output=True,
            text=True,
            check=False,
        )
        modules = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
        assert "foundry.verify.levels" in modules and done.returncode in (0, 3)
        assert modules & {"typer", "rich", "pydantic", "foundry.verify.deep"} == set()
        assert ("numpy" in modules) is (level == "--json")


class TestText:
    @pytest.mark.parametrize("level", ["quick", "full", "deep"])
    def test_a_sound_archive(self, foundry_command: CommandLine, whole: Capture, level: str) -> None:
        write(foundry_command, whole)
        result = foundry_command.run("verify", *([f"--{level}"] if level != "full" else []), "a.fdry")
        assert (result.returncode, result.stderr) == (0, "")
        check(f"verify-{level}", result.stdout)

    def test_one_that_lacks_something(self, foundry_command: CommandLine, tmp_path: Path) -> None:
        write(foundry_command, verified_capture(tmp_path / "captured"))
        result = foundry_command.run("verify", "a.fdry")
        assert (result.returncode, result.stderr) == (3, "")
        check("verify-lacking", result.stdout)

    def test_one_that_is_wrong_in_many_ways(self, foundry_command: CommandLine, whole: Capture) -> None:
        wrong = with_kernel(with_table(whole, "memsets", 0, destination=BASE + 4096), "add", name="subtract")
        write(foundry_command, with_graph(with_kernel(wrong, "fill", parameters=((0, 8), (8, 8))), 1, dangling_words=2))
        assert foundry_command.run("verify", "a.fdry").returncode == 0
        result = foundry_command.run("verify", "--deep", "a.fdry")
        assert (result.returncode, result.stderr) == (1, "")
        check("verify-wrong", result.stdout)

    def test_one_that_is_damaged(self, foundry_command: CommandLine, whole: Capture) -> None:
        write(foundry_command, whole)
        path = foundry_command.work / "a.fdry"
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 0xFF
        path.write_bytes(content)
        result = foundry_command.run("verify", "a.fdry")
        assert (result.returncode, result.stderr) == (1, "")
        assert result.stdout.startswith("`a.fdry` is not sound: 1 problem\n")
        assert "error: archive-section-damaged: section " in result.stdout

    def test_on_a_terminal_of_80_columns_a_problem_is_one_line(
        self, foundry_command: CommandLine, whole: Capture
    ) -> None:
        write(foundry_command, with_kernel(whole, "add", name="subtract"))
        narrow = {"COLUMNS": "80", "TERM": "xterm-256color"}
        result = foundry_command.run("verify", "--deep", "a.fdry", environment=narrow)
        assert "\x1b" not in result.stdout
        assert sum(line.startswith("error: verify-kernel-missing: ") for line in result.stdout.splitlines()) == 1


class TestJson:
    def test_a_sound_archive(self, foundry_command: CommandLine, whole: Capture) -> None:
        write(foundry_command, whole)
        result = foundry_command.run("verify", "--deep", "--json", "a.fdry")
        assert (result.returncode, result.stderr) == (0, "")
        check("verify-json", result.stdout)

    def test_a_problem_names_its_place_piece_by_piece(self, foundry_command: CommandLine, whole: Capture) -> None:
        write(foundry_command, with_kernel(whole, "add", parameters=((0, 8), (8, 4), (16, 4))))
        status, document = told(foundry_command, "--deep", "a.fdry")
        (problem,) = document["problems"]
        assert (status, document["sound"]) == (1, False)
        assert {name: problem[name] for name in ("code", "severity", "process", "graph", "node", "kernel")} == {
            "code": "verify-layout-differs",
            "severity": "error",
            "process": "python-0",
            "graph": {"set": "decode", "key": "1"},
            "node": [1],
            "kernel": "add",
        }
        assert (problem["parameter"], problem["offset"]) == (1, 8)

    @pytest.mark.parametrize(
        ("vector", "code", "status"),
        [("elf", "archive-not-one", 1), ("newer-major", "archive-too-new", 4), ("empty", "archive-empty", 1)],
    )
    def test_what_cannot_be_opened_is_an_error(
        self, foundry_command: CommandLine, vector: str, code: str, status: int
    ) -> None:
        result = foundry_command.run("verify", "--json", VECTORS / "invalid" / f"{vector}.fdry")
        assert (result.returncode, result.stderr) == (status, "")
        assert json.loads(result.stdout)["error"]["code"] == code


def test_levels_exclude_one_another(foundry_command: CommandLine, whole: Capture) -> None:
    write(foundry_command, whole)
    result = foundry_command.run("verify", "--quick", "--deep", "a.fdry")
    assert (result.returncode, result.stdout) == (2, "")
    assert "`--quick` and `--deep` exclude one another" in result.stderr


def test_a_launch_needs_a_device(foundry_command: CommandLine, whole: Capture) -> None:
    write(foundry_command, whole)
    assert foundry_command.run("verify", "--launch", "a.fdry").returncode == 2


class TestHost:
    def test_a_machine_without_a_driver_is_a_mismatch(self, foundry_command: CommandLine, whole: Capture) -> None:
        write(foundry_command, whole)
        result = foundry_command.run("verify", "--host", "a.fdry")
        assert result.returncode == 5
        assert "`a.fdry` is sound\n" in result.stdout
        assert "`a.fdry` cannot be restored here: " in result.stdout

    def test_for_machines(self, foundry_command: CommandLine, whole: Capture) -> None:
        write(foundry_command, whole)
        status, document = told(foundry_command, "--host", "a.fdry")
        assert (status, document["sound"], document["host"]["usable"]) == (5, True, False)
        assert {item["severity"] for item in document["host"]["items"]} >= {"refuse"}

    def test_what_is_not_sound_is_not_compared(self, foundry_command: CommandLine, whole: Capture) -> None:
        write(foundry_command, with_kernel(whole, "add", name="subtract"))
        status, document = told(foundry_command, "--deep", "--host", "a.fdry")
        assert (status, document["host"]) == (1, None)


SERVER = ROOT / "tests" / "engines" / "decode_server.py"


@pytest.fixture(scope="module")
def server_archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `foundry capture` makes of the demo server on the simulator."""
    command = CommandLine(tmp_path_factory.mktemp("server"), native.library_directory())
    words = [sys.executable, str(SERVER), "--quiet", "--once"]
    assert command.run("capture", "-q", "--sim", "-o", "a.fdry", "--", *words).returncode == 0
    return command.work / "a.fdry"


class TestDevice:
    @pytest.fixture
    def command(self, tmp_path: Path, server_archive: Path) -> CommandLine:
        command = CommandLine(tmp_path, native.library_directory())
        shutil.copy(server_archive, command.work / "a.fdry")
        return command

    def test_a_capture_of_a_server_is_built_and_launched(self, command: CommandLine) -> None:
        assert told(command, "--deep", "a.fdry")[1]["problems"] == []
        result = command.run("verify", "--device", "--sim", "--launch", "a.fdry")
        assert (result.returncode, result.stderr) == (0, "")
        check("verify-device", result.stdout)
        status, document = told(command, "--device", "--sim", "--launch", "a.fdry")
        assert (status, document["device"]["sound"], document["device"]["simulated"]) == (0, True, True)
        assert [graph["outcome"] for graph in document["device"]["graphs"]] == ["launched"] * 5

    def test_a_planted_fault_is_found_with_its_place(self, command: CommandLine) -> None:
        capture = archive.read(command.work / "a.fdry")
        archive.write(with_kernel(capture, "add", name="subtract"), command.work / "a.fdry", force=True)
        status, document = told(command, "--device", "--sim", "a.fdry")
        assert (status, document["sound"], document["device"]["sound"]) == (1, True, False)
        first = document["device"]["problems"][0]
        assert (first["code"], first["kernel"], first["graph"]["key"]) == ("verify-device-kernel", "subtract", "16")
        result = command.run("verify", "--device", "--sim", "a.fdry")
        assert (result.returncode, result.stderr) == (1, "")
        check("verify-device-wrong", result.stdout)

    def test_without_a_gpu_it_is_a_mismatch(self, command: CommandLine) -> None:
        result = command.run("verify", "--device", "--sim", "a.fdry", environment={"FOUNDRY_SIM_DEVICES": "0"})
        assert result.returncode == 5
        assert "error: verify-device-none: " in result.stdout

    def test_an_archive_of_the_simulator_is_none_for_a_gpu(self, command: CommandLine) -> None:
        result = command.run("verify", "--device", "a.fdry")
        assert (result.returncode, result.stdout) == (5, "")
        assert result.stderr.endswith("hint: add `--sim`\n")

    def test_without_cuda_python_it_says_what_to_install(self, command: CommandLine) -> None:
        empty = command.folder / "empty" / "cuda"
        empty.mkdir(parents=True)
        (empty / "__init__.py").touch()
        path = f"{empty.parent}:{command.environment['PYTHONPATH']}"
        result = command.run("verify", "--device", "--sim", "a.fdry", environment={"PYTHONPATH": path})
        assert (result.returncode, result.stdout) == (125, "")
        assert "pip install 'foundry-graphs[device]'" in result.stderr

    def test_nothing_is_built_of_what_is_not_sound(self, command: CommandLine) -> None:
        path = command.work / "a.fdry"
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 0xFF
        path.write_bytes(content)
        status, document = told(command, "--device", "--sim", "a.fdry")
        assert (status, document["device"]) == (1, None)
