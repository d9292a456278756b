"""The commands, put together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from .commands import capture, diff, doctor, image, inspect, pack, parity, restore, verify
from .commands import list as list_command
from .options import exit_codes

COMMANDS = (capture, restore, parity, inspect, diff, list_command, verify, pack, image, doctor)


def application() -> Any:
    """Build the command, ready to be called with arguments."""
    app = typer.Typer(
        name="foundry",
        help="Capture a GPU program's CUDA graphs and kernels once, and start from them in seconds.",
        epilog=exit_codes("each command's help lists its own"),
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    app.callback()(_root)
    for module in COMMANDS:
        app.command(name=module.NAME, short_help=module.SHORT, epilog=exit_codes(*module.EXIT_CODES))(module.command)
    built: Any = typer.main.get_command(app)
    for module in (capture, restore, parity):
        _show_usage(built.commands[module.NAME], module.USAGE)
    return built


def _show_usage(command: Any, usage: str) -> None:
    """Have the usage line name the command after `--`, which the parser never sees."""
    command.collect_usage_pieces = lambda _: [usage]


def _version() -> str:
    from .version import version

    return f"foundry {version()}"


def _include() -> str:
    from foundry import get_include

    return get_include()


def _library() -> str:
    from foundry import get_library

    return get_library()


def _printed(name: str, text: Callable[[], str], what: str) -> Any:
    """Make an option that prints one line, and nothing else is done."""

    def callback(wanted: bool) -> None:
        if wanted:
            typer.echo(text())
            raise typer.Exit

    return typer.Option(name, help=f"Print {what} and exit.", callback=callback, is_eager=True)


def _root(
    version: Annotated[bool, _printed("--version", _version, "the version")] = False,
    include: Annotated[bool, _printed("--include", _include, "the folder of foundry.h")] = False,
    library: Annotated[bool, _printed("--library", _library, "the path of libfoundry_restore.a")] = False,
) -> None:
    """Capture a GPU program's CUDA graphs and kernels once, and start from them in seconds."""
