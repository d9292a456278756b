"""Arguments that are read without typer mean what typer makes of them; all that is odd is left to typer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from foundry.cli import capturing, main, restoring
from foundry.session import capture_run, restore

CAPTURES = [
    [],
    ["-o", "a b.fdry", "-f", "-q"],
    ["--output=x=y.fdry", "--force", "--quiet", "--json"],
    ["--ready", "http://127.0.0.1:1/health", "--ready-log", "up (now|soon)", "--ready-timeout", "2.5"],
    ["--stop-when-ready", "--sim", "--all-kernels", "--thin", "--witness", "--no-contents", "--prove", "--scrub"],
    ["--ready-timeout=1e3", "-o", "1", "-o", "2"],
    ["--no-caches", "--no-prefetch", "--update", "a.fdry"],
    ["--caches", "--prefetch"],
]
RESTORES = [
    [],
    ["a.fdry"],
    ["--sim", "-q", "--check", "--json", "a.fdry"],
    ["a.fdry", "--report=r.json", "--on-mismatch", "fail"],
    ["--caches", "--early", "a.fdry"],
    ["--no-caches", "--no-early", "--no-prefetch"],
    ["--allow", "mismatch-arguments", "--allow=mismatch-engine", "--on-mismatch=fallback"],
]
ODD = [
    ["capture", "-qf"],
    ["capture", "-ofile"],
    ["capture", "--output"],
    ["capture", "--output="],
    ["capture", "--output", "-f"],
    ["capture", "--forc"],
    ["capture", "--force=1"],
    ["capture", "file"],
    ["capture", "--ready-timeout", "soon"],
    ["capture", "--help"],
    ["capture", "--caches", "--no-caches"],
    ["restore", "a.fdry", "b.fdry"],
    ["restore", ""],
    ["restore", "--on-mismatch", "perhaps"],
    ["restore", "--on-mismatch", "FAIL"],
    ["restore", "-h"],
    ["restore", "-"],
]


class Told(Exception):
    """Carries what a command was asked for."""


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Any:
    def take(session: Any, request: Any, **more: Any) -> int:
        raise Told(request, more)

    monkeypatch.setattr(capturing, "run", take)
    monkeypatch.setattr(restoring, "run", take)
    monkeypatch.setenv("FOUNDRY_TRACEBACK", "1")

    def ask(arguments: list[str]) -> tuple[Any, ...]:
        with pytest.raises(Told) as caught:
            main.run([*arguments, "--", "true", "-o", "--sim"])
        return caught.value.args

    return ask


@pytest.mark.parametrize(
    "words", [["capture", *words] for words in CAPTURES] + [["restore", *words] for words in RESTORES]
)
def test_both_ways_read_the_same(words: list[str], told: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = told(words)
    assert isinstance(at_once[0], capture_run.Request if words[0] == "capture" else restore.Request)
    monkeypatch.setattr(main, "_run_at_once", lambda context, ours: None)
    assert told(words) == at_once


@pytest.mark.parametrize("words", ODD)
def test_what_is_odd_is_left_to_typer(words: list[str]) -> None:
    read = capturing.request_of if words[0] == "capture" else restoring.request_of
    assert read(words, ["true"]) is None
    assert read([words[0]], None) is None


def test_typer_is_not_imported_for_plain_arguments(tmp_path: Path) -> None:
    program = (
        "import sys; from foundry.cli import main\n"
        "try: main.run(['capture', '--ready-log', '(', '--', 'true'])\n"
        "finally: print(sorted({'typer', 'rich', 'pydantic', 'numpy', 'logging'} & set(sys.modules)))"
    )
    # Elsewhere: a source checkout in the working folder would be met first.
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
