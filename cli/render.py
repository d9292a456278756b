"""Tables and JSON for people and machines, on standard output."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from foundry.compat.compare import ARGUMENTS

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

MOST_OF_COMMAND = 400
"""Of an archive's command, where it is not what was asked for."""
WIDTH_WHEN_PIPED = 200


def print_json(value: object, indent: int | None = 2) -> None:
    """Print a value as JSON, indented unless it is very long."""
    sys.stdout.write(json.dumps(value, indent=indent) + "\n")


def print_lines(*lines: str) -> None:
    """Print lines, with what the terminal's encoding lacks as escapes."""
    encoding = sys.stdout.encoding or "utf-8"
    text = "".join(f"{line}\n" for line in lines)
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))


def plain(text: str) -> str:
    """Give a text that came out of a file without what a terminal would obey; it stays in one line."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def width() -> int:
    """Tell how many columns there are."""
    return _console().width


def bar(share: float, length: int) -> str:
    """Draw a share of a whole, in eighths of a column where the encoding has them."""
    if not (sys.stdout.encoding or "").lower().startswith("utf"):
        return "#" * round(share * length)
    eighths = max(round(share * length * 8), int(share > 0))
    return "\u2588" * (eighths // 8) + (
        "\u258f\u258e\u258d\u258c\u258b\u258a\u2589"[eighths % 8 - 1] if eighths % 8 else ""
    )


def print_table(columns: Sequence[tuple[str, str]], rows: Iterable[Sequence[str]]) -> None:
    """Print a table; a column is its heading and its side, `left` or `right`."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD if _console().is_terminal else None, pad_edge=False, header_style="bold")
    for heading, side in columns:
        table.add_column(heading, justify="right" if side == "right" else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(plain(cell)) for cell in row))
    print_rich(table)


def print_pairs(pairs: Iterable[tuple[str, str]]) -> None:
    """Print names and values in two columns."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs:
        table.add_row(Text(name, style="bold"), Text(plain(value)))
    print_rich(table)


def print_rich(table: Table) -> None:
    """Print without spaces at the ends of lines."""
    console = _console()
    with console.capture() as captured:
        console.print(table)
    print_lines(*(line.rstrip() for line in captured.get().split("\n")[:-1]))


def _console() -> Console:
    from rich.console import Console

    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else WIDTH_WHEN_PIPED
    return Console(file=sys.stdout, width=width, highlight=False, soft_wrap=False)


def command_line(context: dict[str, str]) -> str:
    """Write the captured command as one would type it."""
    try:
        words = json.loads(context.get(ARGUMENTS, "[]"))
        return shlex.join(str(word) for word in words)
    except (ValueError, TypeError):
        return ""


def shown_command(context: dict[str, str]) -> str:
    """Write the captured command for a screen that has more to show."""
    text = command_line(context)
    return text if len(text) <= MOST_OF_COMMAND else f"{text[: MOST_OF_COMMAND - 4]} ..."


def driver_version(number: int) -> str:
    """Write a CUDA version number as people write it."""
    return f"{number // 1000}.{number % 1000 // 10}" if number else "unknown"
