"""The entry point: takes the command after `--` apart from our own arguments, prints errors, and makes exit codes."""

from __future__ import annotations

import errno
import json
import os
import signal
import sys
from typing import Any, NoReturn

from foundry import env
from foundry.errors import FoundryError

RUNNERS = ("capture", "restore", "parity")
DATA_COMMANDS = ("inspect", "list", "verify", "diff", "pack", "image", "doctor")
"""Commands whose output is data: with --json an error is, too."""
USAGE_CODE = 2
FAILURE_CODE = 125
UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""What a standard stream may answer that cannot take more."""


def split(arguments: list[str]) -> tuple[list[str], list[str] | None]:
    """Our own arguments, and the command that stands after the first `--`, None if there is no `--`."""
    if "--" in arguments:
        at = arguments.index("--")
        if arguments[0] in RUNNERS or (arguments[0] == "verify" and "--host" in arguments[:at]):
            return arguments[:at], arguments[at + 1 :]
    return arguments, None


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run `foundry` and exit."""
    _open_closed_streams()
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")  # a file name need not be text
    words = sys.argv[1:] if arguments is None else arguments
    if words[:1] and words[0] in RUNNERS and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # Python's exception is lost where it comes within an import, and the command would start all the same.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(run(words))


def _open_closed_streams() -> None:
    """Put nothing where a standard stream is closed: no file that is opened later must be taken for it."""
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            nothing = os.open(os.devnull, os.O_RDWR)
            if nothing != number:
                os.dup2(nothing, number)
                os.close(nothing)
            os.set_inheritable(number, True)
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))


def run(arguments: list[str]) -> int:
    """Run `foundry` and return its exit status."""
    from .context import Context

    ours, command = split(arguments)
    context = Context(command, dict(os.environ))
    try:
        if ours[:1] and ours[0] in (*RUNNERS, "verify") and (result := _run_at_once(context, ours)) is not None:
            return result
        from .application import application

        result = application()(ours or ["--help"], obj=context, prog_name="foundry", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except FoundryError as error:
        report(str(error), error.hint, code=error.code, as_json=_wants_json(ours))
        return error.exit_code
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except BrokenPipeError:
        return _unread()
    except SystemExit as error:
        # What typer makes of a broken pipe.
        if isinstance(error.__context__, BrokenPipeError):
            return _unread()
        raise
    except Exception as error:
        if hasattr(error, "format_message") and hasattr(error, "exit_code"):
            return _usage(error, ours, command)
        if isinstance(error, OSError) and error.errno in UNWRITABLE and error.filename is None:
            _let_go_of_output()
            report(f"cannot write to standard output: {error.strerror}", code="disk-full")
            return FAILURE_CODE
        if os.environ.get(env.TRACEBACK):
            raise
        report(
            f"{type(error).__name__}: {error}",
            "this is a fault of foundry; `FOUNDRY_TRACEBACK=1` shows where, please report it",
            code="fault",
            as_json=_wants_json(ours),
        )
        return FAILURE_CODE


def _unread() -> int:
    """Whoever read our output has seen enough."""
    _let_go_of_output()
    return 128 + signal.SIGPIPE


def _let_go_of_output() -> None:
    """Drop what is not written, without Python's complaint when it closes that."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _run_at_once(context: Any, ours: list[str]) -> int | None:
    """Capture, restore or verify without typer. None if the command or the arguments need it."""
    if ours[0] == "verify":
        from . import checking

        wanted = checking.request_of(ours)
        return checking.run(context, wanted) if wanted else None
    if ours[0] == "restore":
        from . import restoring

        request = restoring.request_of(ours, context.command)
        return restoring.run(context, request) if request else None
    if ours[0] != "capture":
        return None
    from . import capturing

    found = capturing.request_of(ours, context.command)
    return capturing.run(context, found[0], json_line=found[1]) if found else None


def _usage(error: Any, ours: list[str], command: list[str] | None) -> int:
    """Say what is wrong with the command line."""
    message: str = error.format_message()
    if command is None and ours[0] in RUNNERS:
        hint = f"put the command after `--`: `foundry {ours[0]} -- python serve.py`"
    else:
        unnamed = f"foundry {ours[0]}" if ours and ours[0] in RUNNERS else "foundry"
        path = getattr(getattr(error, "ctx", None), "command_path", unnamed)
        hint = f"`{path} --help` shows what there is"
    text = message[:1].lower() + message[1:].rstrip(".").replace("'", "`")
    report(text, hint, code="usage", as_json=_wants_json(ours))
    return USAGE_CODE


def _wants_json(ours: list[str]) -> bool:
    """Whether the answer is read by a machine, so that an error must be, too."""
    return ours[:1] != [] and ours[0] in DATA_COMMANDS and "--json" in ours


def report(message: str, hint: str | None = None, *, code: str = "failed", as_json: bool = False) -> None:
    """Print an error: for people on standard error, for machines as the one JSON document on standard output."""
    try:
        if as_json:
            document = {"error": {"code": code, "message": message, "hint": hint}}
            sys.stdout.write(json.dumps(document, indent=2) + "\n")
            sys.stdout.flush()
            return
        sys.stdout.flush()
        sys.stderr.write(f"foundry: error: {message}\n" + (f"\nhint: {hint}\n" if hint else ""))
        sys.stderr.flush()
    except OSError:
        _let_go_of_output()  # nobody reads it; the exit status says it too
