"""The commands, put together."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from .commands import capture, diff, doctor, inspect, pack, restore, verify
from .commands import list as list_command
from .options import exit_codes

COMMANDS = (capture, restore, inspect, diff, list_command, verify, pack, doctor)


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
    for module in (capture, restore):
        _show_usage(built.commands[module.NAME], module.USAGE)
    return built


def _show_usage(command: Any, usage: str) -> None:
    """Have the usage line name the command after `--`, which the parser never sees."""
    command.collect_usage_pieces = lambda _: [usage]


def _version(wanted: bool) -> None:
    if wanted:
        from .version import version

        typer.echo(f"foundry {version()}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Capture a GPU program's CUDA graphs and kernels once, and start from them in seconds."""
