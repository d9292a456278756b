"""Finds the file that a command names, and says whether a preloaded library can reach it."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from foundry.errors import CommandNotExecutableError, CommandNotFoundError, FoundryError, UsageError

DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"
SHELL_WORDS = frozenset(
    [
        ".",
        "alias",
        "bg",
        "builtin",
        "cd",
        "command",
        "declare",
        "eval",
        "exec",
        "exit",
        "export",
        "fg",
        "for",
        "function",
        "hash",
        "if",
        "jobs",
        "local",
        "read",
        "readonly",
        "set",
        "shift",
        "source",
        "time",
        "trap",
        "type",
        "ulimit",
        "umask",
        "unalias",
        "unset",
        "until",
        "wait",
        "while",
        "{",
        "(",
        "[[",
    ]
)
MOST_INTERPRETERS = 5
"""As many `#!` lines as the kernel follows."""
_ELF = b"\x7fELF"
_ELF_CLASS_64 = 2
_PT_INTERP = 3
_LOADERS = ("ld-linux", "ld-musl", "ld64.so", "ld.so")


@dataclass(frozen=True)
class Executable:
    """A command that can be started: the file to execute and the argument vector to hand to it."""

    path: str
    arguments: tuple[str, ...]


def find(command: Sequence[str], environment: Mapping[str, str]) -> Executable:
    """Find the file that a shell would execute. CommandNotFoundError or CommandNotExecutableError if there is none."""
    if not command:
        raise UsageError("no command given", hint="put it after `--`: `foundry capture -- python serve.py`")
    path = _search(command[0], environment)
    head = _first_bytes(path)
    if head and b"\0" not in head and not head.startswith((b"#!", _ELF)):
        # What a shell does with a script that has no `#!` line.
        return Executable("/bin/sh", ("sh", str(path), *command[1:]))
    return Executable(str(path), tuple(command))


def absolute(path: Path) -> Path:
    """Name a file by its whole path. FoundryError if that takes a working folder, and there is none."""
    try:
        return path.absolute()
    except OSError as error:
        raise FoundryError(
            f"cannot find `{path}`: the working folder is not there any more", hint="go to another folder"
        ) from error


def _search(name: str, environment: Mapping[str, str]) -> Path:
    if "/" in name:
        return _executable_or_raise(name, absolute(Path(name)))
    refused: CommandNotExecutableError | None = None
    for folder in environment.get("PATH", DEFAULT_PATH).split(":") if name else ():
        try:
            path = absolute(Path(folder)) / name
        except FoundryError:
            continue
        if path.is_file():
            try:
                return _executable_or_raise(name, path)
            except CommandNotExecutableError as error:
                refused = refused or error
    if refused:
        raise refused
    if name in SHELL_WORDS:
        hint = f"it is a word of the shell: `sh -c '{name} ...'`"
    else:
        hint = "name its file, or add its folder to `PATH`"
    raise CommandNotFoundError(f"command not found: `{name}`", hint=hint)


def _executable_or_raise(name: str, path: Path) -> Path:
    if path.is_dir():
        raise CommandNotExecutableError(f"`{name}` is a folder")
    if not path.exists():
        detail = " is a link to a file that is not there" if path.is_symlink() else ""
        raise CommandNotFoundError(f"command not found: `{name}`{detail}")
    if not os.access(path, os.X_OK):
        raise CommandNotExecutableError(
            f"permission denied: `{name}` is not executable",
            hint="make it executable, or put its interpreter before it",
        )
    return path


def _first_bytes(path: Path, count: int = 4096) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(count)
    except OSError:
        return b""


def could_not_start(executable: Executable, number: int) -> FoundryError:
    """Make the error that says why the kernel refused to execute the command."""
    text = f"cannot run `{executable.path}`: {os.strerror(number)}"
    if number == errno.ENOENT:
        return CommandNotFoundError(text, hint="its interpreter or its loader is missing")
    if number in (errno.EACCES, errno.ENOEXEC, errno.EPERM, errno.ELIBBAD, errno.ETXTBSY, errno.E2BIG):
        return CommandNotExecutableError(text)
    return FoundryError(text)


def require_hookable(executable: Executable, environment: Mapping[str, str]) -> None:
    """Raise CommandNotExecutableError if the loader would not preload the hook into this command."""
    for path in chain(executable, environment):
        head = _first_bytes(path, 64)
        if head.startswith(b"#!"):
            continue
        _require_unprivileged(path)
        if head.startswith(_ELF):
            _require_dynamic(path, head)


def chain(executable: Executable, environment: Mapping[str, str]) -> list[Path]:
    """List the file and the interpreters that its `#!` lines lead to."""
    path = Path(executable.path)
    chain = [path]
    while len(chain) < MOST_INTERPRETERS and (head := _first_bytes(path)).startswith(b"#!"):
        words = os.fsdecode(head[2:].split(b"\n", 1)[0]).split()
        if not words:
            break
        path = Path(words[0])
        if not path.exists():
            raise CommandNotFoundError(
                f"`{chain[-1]}` asks for the interpreter `{path}`, which is not there", hint="mend its first line"
            )
        chain.append(path)
        if path.name == "env":
            program = next((word for word in words[1:] if not word.startswith("-") and "=" not in word), None)
            if program is None:
                break
            path = _search(program, environment)
            chain.append(path)
    return chain


def _require_unprivileged(path: Path) -> None:
    status = path.stat()
    gains_user = status.st_mode & stat.S_ISUID and status.st_uid != os.geteuid()
    gains_group = status.st_mode & stat.S_ISGID and status.st_mode & stat.S_IXGRP and status.st_gid != os.getegid()
    if gains_user or gains_group or _has_capabilities(path):
        kind = "setuid" if gains_user else "setgid" if gains_group else "given capabilities"
        raise CommandNotExecutableError(
            f"`{path}` is {kind}, so the loader ignores LD_PRELOAD and it cannot be hooked",
            hint="run the program behind it directly",
        )


def _has_capabilities(path: Path) -> bool:
    if os.geteuid() == 0:
        return False
    try:
        return bool(os.getxattr(path, "security.capability"))
    except OSError:
        return False


def _require_dynamic(path: Path, head: bytes) -> None:
    if len(head) < 64:
        raise CommandNotExecutableError(f"`{path}` is not a whole program file")
    if head[4] != _ELF_CLASS_64:
        raise CommandNotExecutableError(f"`{path}` is a 32-bit program, which cannot be hooked")
    if not path.name.startswith(_LOADERS) and not _has_interpreter(path, head):
        raise CommandNotExecutableError(
            f"`{path}` is statically linked, so no loader runs and it cannot be hooked",
            hint="link it dynamically, or run the program that it starts directly",
        )


def _has_interpreter(path: Path, head: bytes) -> bool:
    offset = int.from_bytes(head[32:40], "little")
    size = int.from_bytes(head[54:56], "little")
    count = int.from_bytes(head[56:58], "little")
    try:
        with path.open("rb") as file:
            file.seek(offset)
            table = file.read(size * count)
    except (OSError, ValueError):
        return True
    starts = range(0, len(table), max(size, 1))
    return any(int.from_bytes(table[start : start + 4], "little") == _PT_INTERP for start in starts)
