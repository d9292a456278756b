"""`foundry diff`."""

from __future__ import annotations

import textwrap
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from foundry.errors import FoundryError

from ..completion import archive_names
from ..existing import require
from ..options import Json
from ..render import plain, print_json, print_lines, width

if TYPE_CHECKING:
    from foundry.archive import Opened
    from foundry.diff.report import Change, Kind, Report

NAME = "diff"
SHORT = "Tell what differs between two archives."
EXIT_CODES = (
    "0  equal, or equal up to what --up-to accepts",
    "1  different",
    "2  the command line does not say what to do, or an archive cannot be read",
    "4  an archive was written by a newer foundry",
)
CANNOT_READ = 2
SCHEMA = 1
SHOWN = 3
WIDEST = 120
TITLES = {"edges": "edges and attributes"}
SURE = ("different", "relocated", "padding", "unread")
"""Judgements of words that are none by looks."""
NOISE = (
    "Leftovers are judged by their look, not proven: bytes of the program's stack and heap that libraries leave "
    "in the padding and unused slots of parameters."
)


class UpTo(str, Enum):
    """What two captures may differ by."""

    relocation = "relocation"
    noise = "noise"


def command(
    context: typer.Context,
    before: Annotated[
        Path, typer.Argument(metavar="A", help="An archive file.", show_default=False, autocompletion=archive_names)
    ],
    after: Annotated[
        Path, typer.Argument(metavar="B", help="Another one.", show_default=False, autocompletion=archive_names)
    ],
    every: Annotated[bool, typer.Option("--all", help="Show all differences, not the first few of each kind.")] = False,
    up_to: Annotated[
        Optional[UpTo],  # noqa: UP045 - see options.py
        typer.Option(
            "--up-to",
            help="Count as equal what differs by where memory lies (relocation), or also by what looks left over "
            "from the host's memory in parameters (noise).",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> int:
    """Tell what differs between two archives, most important first. Needs no GPU.

    The first line is the verdict: equal, equal up to relocation (memory lies elsewhere, and all that points there
    moved with it), equal up to noise (words differ that look like leftovers), or different.
    """
    from foundry import archive, diff
    from foundry.diff.report import Strength

    try:
        require(before)
        require(after)
        with archive.open_archive(before) as left, archive.open_archive(after) as right:
            report = diff.examine(left, right)
            sides = [_side(opened) for opened in (left, right)]
    except FoundryError as error:
        if error.exit_code == 1:
            error.exit_code = CANNOT_READ
        raise
    accepted = {None: Strength.NOTE, UpTo.relocation: Strength.RELOCATION, UpTo.noise: Strength.NOISE}[up_to]
    good = report.verdict <= accepted
    if json:
        print_json(_document(report, sides, accepted=good))
    else:
        _show(report, sides, every=every)
    return 0 if good else 1


def _side(opened: Opened) -> dict[str, str]:
    return {
        "archive": str(opened.path),
        "capture_id": opened.capture_id,
        "format": f"{opened.major}.{opened.minor}",
    }


def _document(report: Report, sides: list[dict[str, str]], *, accepted: bool) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "verdict": report.verdict.word,
        "accepted": accepted,
        "before": sides[0],
        "after": sides[1],
        "words": report.words,
        "kinds": [
            {
                "kind": kind.value,
                "counts": {strength.word: number for strength, number in sorted(report.counts[kind].items())},
                "changes": [
                    {
                        "where": change.where,
                        "what": change.what,
                        "before": change.before,
                        "after": change.after,
                        "strength": change.strength.word,
                        "count": change.count,
                    }
                    for change in report.strongest_first(kind)
                ],
            }
            for kind in report.counts
        ],
    }


def _show(report: Report, sides: list[dict[str, str]], *, every: bool) -> None:
    print_lines(_verdict(report), "")
    for name, side in zip(("A", "B"), sides, strict=True):
        print_lines(*_wrapped(f"{name}  {plain(side['archive'])}, capture {side['capture_id'][:16]}", "", "   "))
    for kind, counts in report.counts.items():
        if counts:
            _show_kind(report, kind, every=every)
    if report.words:
        print_lines("", *_wrapped(_words(report.words), "", "  "))
    if set(report.words).difference(SURE):
        print_lines("", *_wrapped(NOISE, "", ""))


def _words(words: dict[str, int]) -> str:
    """Say how many parameter words differ, and how they are judged."""
    plain_ones = [f"{words[name]:,} {name}" for name in SURE if name in words]
    left_over = {name: number for name, number in words.items() if name not in SURE}
    if left_over:
        told = ", ".join(f"{name.replace('_', ' ')} {number:,}" for name, number in left_over.items())
        plain_ones.append(f"{sum(left_over.values()):,} left over ({told})")
    return f"parameter words that differ: {sum(words.values()):,}: {', '.join(plain_ones)}"


def _verdict(report: Report) -> str:
    from foundry.diff.report import Strength

    if report.identical:
        return "equal: the same capture"
    different = [kind.value for kind, counts in report.counts.items() if Strength.DIFFERENT in counts]
    return {
        Strength.NOTE: "equal: nothing that counts differs",
        Strength.RELOCATION: "equal up to relocation: memory lies elsewhere, and what points there moved",
        Strength.NOISE: "equal up to noise: what differs looks like leftovers of the host's memory",
        Strength.DIFFERENT: f"different: {', '.join(different)}",
    }[report.verdict]


def _show_kind(report: Report, kind: Kind, *, every: bool) -> None:
    from foundry.diff.report import Strength

    words = {
        Strength.NOTE: "that count for nothing",
        Strength.RELOCATION: "moved",
        Strength.NOISE: "left over",
        Strength.DIFFERENT: "different",
    }
    counts = report.counts[kind]
    told = ", ".join(f"{counts[strength]:,} {words[strength]}" for strength in sorted(counts, reverse=True))
    print_lines("", f"{TITLES.get(kind.value, kind.value)}: {told}")
    changes = list(report.strongest_first(kind))
    shown = changes if every else changes[:SHOWN]
    for change in shown:
        _show_change(change, words[change.strength] if len(counts) > 1 else "")
    rest = sum(counts.values()) - len(shown)
    if rest:
        kept = "" if every else " (`--all` shows them)"
        print_lines(f"  and {rest:,} more{kept}")


def _show_change(change: Change, strength: str) -> None:
    where = f"{change.where}: " if change.where else ""
    aside = f" ({strength})" if strength else ""
    print_lines(*_wrapped(plain(f"{where}{change.what}{aside}"), "  ", "    "))
    for name, value in (("A", change.before), ("B", change.after)):
        print_lines(*_wrapped(f"{name}  {plain(value)}", "      ", "         "))


def _wrapped(text: str, first: str, rest: str) -> list[str]:
    return textwrap.wrap(
        text, min(width(), WIDEST), initial_indent=first, subsequent_indent=rest, break_on_hyphens=False
    )
