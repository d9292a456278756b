"""What a Python process meets whose PYTHONPATH foundry has put its folder on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import foundry

PACKAGE = Path(foundry.__file__).parent
SITE = PACKAGE / "engines" / "site"
SHOW = """
import json, sys
print(json.dumps([sys.path, sorted(sys.modules), [type(one).__name__ for one in sys.meta_path]]))
"""


def python(
    *words: str,
    path: tuple[object, ...] = (),
    options: tuple[str, ...] = (),
    mode: str | None = "capture",
    variables: dict[str, str] | None = None,
):  # type: ignore[no-untyped-def]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("FOUNDRY_", "PYTHON"))}
    if mode:
        environment["FOUNDRY_MODE"] = mode
    environment.update(variables or {})
    if path:
        environment["PYTHONPATH"] = ":".join(map(str, path))
    return subprocess.run(
        [sys.executable, *options, *words], env=environment, cwd="/", capture_output=True, text=True, check=True
    )


def shown(*path: object, **how: object) -> tuple[list[str], set[str], list[str]]:
    entries, modules, finders = json.loads(python("-c", SHOW, path=path, **how).stdout)  # type: ignore[arg-type]
    return entries, set(modules), finders


def test_a_process_that_is_not_hooked_is_as_without_it(tmp_path: Path) -> None:
    plain, beside = shown(tmp_path, mode=None), shown(SITE, tmp_path, mode=None)
    assert beside[0] == plain[0]
    assert beside[1] - plain[1] <= {"sitecustomize"}
    assert beside[2] == plain[2]


def test_a_hooked_process_gets_one_finder_and_no_module_of_weight(tmp_path: Path) -> None:
    plain, beside = shown(tmp_path), shown(SITE, tmp_path)
    assert beside[0] == plain[0]
    assert beside[1] - plain[1] <= {"sitecustomize", "_foundry_start", "_foundry_names"}
    assert beside[2] == ["FirstImport", "Names", *plain[2]]


@pytest.mark.parametrize(("value", "there"), [("0", False), ("1", True), ("", True), ("off", True)])
def test_adapters_come_unless_they_are_switched_off(value: str, there: bool) -> None:
    assert ("FirstImport" in shown(SITE, variables={"FOUNDRY_ADAPTERS": value})[2]) == there


def test_a_process_of_multiprocessing_tells_its_name_and_its_children_do_not_take_it(tmp_path: Path) -> None:
    program = tmp_path / "named.py"
    program.write_text(
        "import multiprocessing, os, subprocess, sys\n"
        'SHOW = \'import os; print(os.environ.get("FOUNDRY_PROCESS", "0:").split(":", 1)[0] == str(os.getpid()))\'\n'
        "def work():\n"
        "    print(os.environ['FOUNDRY_PROCESS'] == f'{os.getpid()}:a b', flush=True)\n"
        "    subprocess.run([sys.executable, '-c', SHOW], check=True)\n"
        "if __name__ == '__main__':\n"
        "    for method in ('spawn', 'fork', 'forkserver'):\n"
        "        process = multiprocessing.get_context(method).Process(target=work, name='a b')\n"
        "        process.start(); process.join()\n"
        "        assert process.exitcode == 0\n"
        "    print('FOUNDRY_PROCESS' in os.environ, type(sys.meta_path[0]).__name__)\n"
    )
    assert python(str(program), path=(SITE,)).stdout.split() == ["True", "False"] * 3 + ["False", "FirstImport"]


@pytest.mark.parametrize("option", ["-I", "-E", "-S"])
def test_it_is_not_there_where_python_ignores_it(option: str) -> None:
    assert "FirstImport" not in shown(SITE, options=(option,))[2]


def test_the_sitecustomize_that_is_there_without_it_runs(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('theirs', __file__)\n")
    found = python("-c", "import sitecustomize; print(sitecustomize.__file__)", path=(SITE, tmp_path))
    theirs = str(tmp_path / "sitecustomize.py")
    assert found.stdout.splitlines() == [f"theirs {theirs}", theirs]


def test_one_that_fails_fails_as_without_it(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import nowhere_to_be_found\n")
    plain, beside = python("-c", "", path=(tmp_path,)), python("-c", "", path=(SITE, tmp_path))
    assert "nowhere_to_be_found" in plain.stderr
    assert beside.stderr == plain.stderr


def test_foundry_comes_by_a_path_of_its_own(tmp_path: Path) -> None:
    """Packages beside foundry, of another Python perhaps, stay out of a process that has no foundry."""
    (tmp_path / "vllm.py").write_text("")
    code = (
        "import sys; old = list(sys.path); import vllm, foundry.engines.loader as l; print(l.__file__, sys.path == old)"
    )
    found = python("-c", code, path=(SITE, tmp_path))
    assert found.stdout.split() == [str(PACKAGE / "engines" / "loader.py"), "True"]
    assert found.stderr == ""


def test_another_package_called_foundry_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "foundry.py").write_text("other = True\n")
    (tmp_path / "torch.py").write_text("")
    found = python("-c", "import torch, foundry; print(foundry.other)", path=(SITE, tmp_path))
    assert found.stdout == "True\n"
    assert found.stderr.splitlines() == [
        "foundry: no adapters in this process: ImportError: "
        "this process has another package, or another version, called foundry"
    ]


def test_a_child_has_it_too(tmp_path: Path) -> None:
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SHOW!r}], check=True)"
    assert "FirstImport" in python("-c", code, path=(SITE, tmp_path)).stdout


def test_a_spawned_worker_has_it_too(tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text(
        "import multiprocessing, sys\n"
        "def show(): print([type(one).__name__ for one in sys.meta_path][0])\n"
        "if __name__ == '__main__':\n"
        "    worker = multiprocessing.get_context('spawn').Process(target=show)\n"
        "    worker.start(); worker.join()\n"
    )
    assert python(str(tmp_path / "work.py"), path=(SITE,)).stdout == "FirstImport\n"


class TestOpened:
    """What a process opens is written down, where that is wanted."""

    def opened(self, tmp_path: Path, code: str, **variables: str) -> list[str]:
        log = tmp_path / "log"
        log.touch()
        wanted = {"FOUNDRY_OPENED": str(log), "FOUNDRY_ADAPTERS": "0", **variables}
        found = python("-c", code, path=(SITE, tmp_path), variables=wanted)
        assert found.stderr == ""
        return log.read_text().splitlines()

    def test_modules_and_files_once_and_in_order(self, tmp_path: Path) -> None:
        (tmp_path / "mine.py").write_text("x = 1\n")
        (tmp_path / "a").write_bytes(b"a")
        code = f"import os; os.chdir({str(tmp_path)!r}); open('a'); import mine; open('a'); os.open('a', os.O_RDONLY)"
        found = [line for line in self.opened(tmp_path, code) if line.startswith(str(tmp_path))]
        assert found[0] == str(tmp_path / "a")
        assert [line for line in found if "mine" in line]
        assert len(found) == len(set(found))

    def test_compiled_modules(self, tmp_path: Path) -> None:
        (tmp_path / "mine.py").write_text("x = 1\n")
        self.opened(tmp_path, "import mine")
        (compiled,) = (tmp_path / "__pycache__").glob("mine.*.pyc")
        (tmp_path / "log").unlink()
        assert str(compiled) in self.opened(tmp_path, "import mine")

    def test_nothing_that_is_written_or_no_file(self, tmp_path: Path) -> None:
        code = f"import os; open({str(tmp_path / 'new')!r}, 'w'); os.open({str(tmp_path)!r}, os.O_DIRECTORY); open(0)"
        assert [line for line in self.opened(tmp_path, code) if line.startswith(str(tmp_path))] == []

    def test_children_of_forks_and_the_end_without_farewell(self, tmp_path: Path) -> None:
        for name in "ab":
            (tmp_path / name).write_text("")
        code = (
            f"import os; os.chdir({str(tmp_path)!r}); p = os.fork(); open('ab'[p > 0]); p and os.waitpid(p, 0); "
            "os.closerange(3, 64); open('a'); os._exit(0)"
        )
        assert {str(tmp_path / "a"), str(tmp_path / "b")} <= set(self.opened(tmp_path, code))

    def test_a_log_that_is_gone_is_not_made_again_and_hurts_nobody(self, tmp_path: Path) -> None:
        log = tmp_path / "log"
        code = f"import os; os.unlink({str(log)!r}); open('/etc/passwd'); import json; print('well')"
        log.touch()
        found = python("-c", code, path=(SITE,), variables={"FOUNDRY_OPENED": str(log), "FOUNDRY_ADAPTERS": "0"})
        assert (found.stdout, found.stderr, log.exists()) == ("well\n", "", False)

    def test_it_brings_no_adapters(self, tmp_path: Path) -> None:
        (tmp_path / "log").touch()
        finders = shown(SITE, variables={"FOUNDRY_OPENED": str(tmp_path / "log"), "FOUNDRY_ADAPTERS": "0"})[2]
        assert "FirstImport" not in finders
