"""What machines are told by `inspect`, `list`, `verify` and `doctor`."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
from pathlib import Path

import pytest
from helpers.commandline import CommandLine, program


@pytest.fixture
def captured(foundry_command: CommandLine) -> CommandLine:
    for words in (["-o", "a.fdry"], []):
        result = foundry_command.run("capture", "-q", *words, "--", *program("--graphs", 3))
        assert result.returncode == 0
    return foundry_command


def told(command: CommandLine, *words: object) -> object:
    return json.loads(command.run(*words).stdout)


def test_inspect(captured: CommandLine) -> None:
    value = told(captured, "inspect", "--json", "a.fdry")
    assert isinstance(value, dict)
    assert value["processes"][0]["graphs"] == 3
    assert value["processes"][0]["devices"][0]["name"] == "NVIDIA H200"
    assert json.loads(value["context"]["argv"])[1:] == program("--graphs", 3)[1:]


def test_list(captured: CommandLine) -> None:
    value = told(captured, "list", "--json")
    assert isinstance(value, list)
    assert [(entry["graphs"], entry["gpus"], entry["simulated"]) for entry in value] == [(3, ["NVIDIA H200"], False)]


def test_verify(captured: CommandLine) -> None:
    value = told(captured, "verify", "--json", "a.fdry")
    assert isinstance(value, dict)
    assert (value["sound"], value["graphs"]) == (True, 3)


@pytest.mark.parametrize("verb", ["inspect", "verify"])
def test_what_is_not_an_archive(foundry_command: CommandLine, verb: str) -> None:
    path = foundry_command.work / "x"
    result = foundry_command.run(verb, path)
    assert (result.returncode, result.stdout) == (1, "")
    assert f"no archive at `{path}`" in result.stderr
    path.write_text("something else entirely")
    result = foundry_command.run(verb, path)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("foundry: error: ")
    path.write_text("")
    assert foundry_command.run(verb, path).returncode == 1
    assert foundry_command.run(verb, foundry_command.work).returncode == 1


@pytest.mark.parametrize(
    "verb", [["doctor", "--table"], ["inspect", "a.fdry"], ["verify", "--json", "a.fdry"], ["list"]]
)
def test_a_pipe_that_nobody_reads_is_no_traceback(captured: CommandLine, verb: list[str]) -> None:
    words = shlex.join(captured.words(*verb))
    result = subprocess.run(
        ["bash", "-c", f"{words} | true; echo ${{PIPESTATUS[0]}}"],
        env=captured.environment, cwd=captured.work, capture_output=True, text=True, timeout=30,
    )  # fmt: skip
    assert (result.stdout, result.stderr.partition("Traceback")[1]) == (f"{128 + signal.SIGPIPE}\n", "")


class TestDoctor:
    def test_it_names_each_thing(self, foundry_command: CommandLine) -> None:
        value = told(foundry_command, "doctor", "--json", "--no-self-test")
        assert isinstance(value, dict)
        names = {check["what"] for check in value["checks"]}
        assert names >= {"system", "C library", "hook", "simulator", "driver", "import name", "LD_PRELOAD", "store"}

    def test_a_missing_hook_is_bad(self, foundry_command: CommandLine) -> None:
        result = foundry_command.run("doctor", environment={"FOUNDRY_LIBRARY_DIR": "/not/there"})
        assert result.returncode == 1
        assert "bad" in result.stdout

    def test_the_table(self, foundry_command: CommandLine) -> None:
        value = told(foundry_command, "doctor", "--table", "--json")
        assert value == [{"family": "init", "symbol": "cuInit", "since": "2000", "capture": "record", "restore": "own"}]

    def test_another_owner_of_the_import_name(self, foundry_command: CommandLine) -> None:
        other = foundry_command.folder / "site" / "foundry_core-0.1.dist-info"
        other.mkdir(parents=True)
        (other / "RECORD").write_text("foundry/__init__.py,sha256=x,1\n")
        path = f"{foundry_command.environment['PYTHONPATH']}:{other.parent}"
        result = foundry_command.run("doctor", "--no-self-test", "--json", environment={"PYTHONPATH": path})
        assert result.returncode == 1
        (check,) = [one for one in json.loads(result.stdout)["checks"] if one["what"] == "import name"]
        assert (check["state"], "foundry-core 0.1" in check["found"]) == ("bad", True), check


def test_a_peer_beside_the_package_is_named_at_each_start(foundry_command: CommandLine) -> None:
    site = foundry_command.folder / "site"
    site.mkdir()
    source = Path(foundry_command.environment["PYTHONPATH"]) / "foundry"
    (site / "foundry").symlink_to(source)
    (site / "foundry_core-0.1.dist-info").mkdir()
    (site / "foundry_core-0.1.dist-info" / "RECORD").write_text("foundry/__init__.py,,\n")
    result = foundry_command.run("restore", "--", "true", environment={"PYTHONPATH": str(site)})
    assert "warning: `foundry-core 0.1` is installed too and owns the same import name" in result.stderr
