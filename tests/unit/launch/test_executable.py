from __future__ import annotations

import contextlib
import errno
import os
import shutil
from pathlib import Path

import pytest

from foundry.errors import CommandNotExecutableError, CommandNotFoundError, FoundryError, UsageError
from foundry.launch import executable
from foundry.launch.executable import Executable


def make(path: Path, content: bytes, mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(mode)
    return path


def elf(*, interpreter: bool = True, bits: int = 64) -> bytes:
    header = bytearray(64)
    header[:5] = b"\x7fELF" + bytes([2 if bits == 64 else 1])
    header[32:40] = (64).to_bytes(8, "little")
    header[54:58] = (56).to_bytes(2, "little") + (2).to_bytes(2, "little")
    kinds = (1, 3 if interpreter else 4)
    return bytes(header) + b"".join(kind.to_bytes(4, "little") + bytes(52) for kind in kinds)


def hookable(path: Path, environment: dict[str, str] | None = None) -> None:
    executable.require_hookable(Executable(str(path), (str(path),)), environment or {})


def test_the_path_is_searched_in_order(tmp_path: Path) -> None:
    make(tmp_path / "a" / "tool", b"x", 0o644)
    make(tmp_path / "b" / "tool", elf())
    make(tmp_path / "c" / "tool", elf())
    path = f"{tmp_path / 'none'}:{tmp_path / 'a'}:{tmp_path / 'b'}:{tmp_path / 'c'}"
    found = executable.find(["tool", "x"], {"PATH": path})
    assert found == Executable(str(tmp_path / "b" / "tool"), ("tool", "x"))
    with pytest.raises(CommandNotExecutableError, match="permission denied: `tool`"):
        executable.find(["tool"], {"PATH": str(tmp_path / "a")})
    with pytest.raises(CommandNotFoundError):
        executable.find(["tool"], {"PATH": str(tmp_path / "none")})


def test_an_empty_entry_of_the_path_is_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "tool", elf())
    monkeypatch.chdir(tmp_path)
    assert executable.find(["tool"], {"PATH": ":/none"}).path == str(tmp_path / "tool")


def test_a_link_that_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    with pytest.raises(CommandNotFoundError, match="link to a file that is not there"):
        executable.find([str(tmp_path / "link")], {})


def test_no_command() -> None:
    with pytest.raises(UsageError):
        executable.find([], {})


def test_a_text_without_first_line_goes_to_the_shell(tmp_path: Path) -> None:
    path = make(tmp_path / "script", b"echo hi\n")
    assert executable.find([str(path), "x"], {}) == Executable("/bin/sh", ("sh", str(path), "x"))


def test_programs_that_can_be_hooked(tmp_path: Path) -> None:
    hookable(make(tmp_path / "program", elf()))
    hookable(Path(shutil.which("sh") or ""))
    hookable(make(tmp_path / "ld-linux-x86-64.so.2", elf(interpreter=False)))


def test_static_and_32_bit_programs_cannot(tmp_path: Path) -> None:
    with pytest.raises(CommandNotExecutableError, match="statically linked"):
        hookable(make(tmp_path / "static", elf(interpreter=False)))
    with pytest.raises(CommandNotExecutableError, match="32-bit"):
        hookable(make(tmp_path / "old", elf(bits=32)))


def test_scripts_are_followed_to_their_interpreter(tmp_path: Path) -> None:
    static = make(tmp_path / "static", elf(interpreter=False))
    one = make(tmp_path / "one", f"#!{static} -x\n".encode())
    two = make(tmp_path / "two", f"#!{one}\n".encode())
    with pytest.raises(CommandNotExecutableError, match="static"):
        hookable(two)
    by_env = make(tmp_path / "by-env", b"#!/usr/bin/env -S A=1 static\n")
    with pytest.raises(CommandNotExecutableError, match="static"):
        hookable(by_env, {"PATH": str(tmp_path)})
    with pytest.raises(CommandNotFoundError, match="asks for the interpreter `/gone`"):
        hookable(make(tmp_path / "lost", b"#!/gone\n"))
    circle = make(tmp_path / "circle", f"#!{tmp_path / 'circle'}\n".encode())
    hookable(circle)
    hookable(make(tmp_path / "bare", b"#!\n"))


def test_setuid_counts_only_for_another_user(tmp_path: Path) -> None:
    path = make(tmp_path / "program", elf())
    path.chmod(0o4755)
    hookable(path)
    if os.geteuid() == 0:
        os.chown(path, 65534, os.getegid())
        path.chmod(0o4755)
        with pytest.raises(CommandNotExecutableError, match="setuid"):
            hookable(path)
        os.chown(path, 0, 65534)
        path.chmod(0o2755)
        with pytest.raises(CommandNotExecutableError, match="setgid"):
            hookable(path)


@pytest.mark.parametrize(
    ("number", "code"),
    [(errno.ENOENT, 127), (errno.EACCES, 126), (errno.ENOEXEC, 126), (errno.E2BIG, 126), (errno.EIO, 125)],
)
def test_what_the_kernel_refuses(number: int, code: int) -> None:
    error = executable.could_not_start(Executable("/x", ("x",)), number)
    assert isinstance(error, FoundryError)
    assert error.exit_code == code


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"\x7fELF\2", b"#!", b"#!/", b"\0", b"\x7fELF\2" + b"\xff" * 60])
def test_broken_files_are_no_traceback(tmp_path: Path, content: bytes) -> None:
    path = make(tmp_path / "x", content)
    with contextlib.suppress(FoundryError):
        hookable(Path(executable.find([str(path)], {}).path))
