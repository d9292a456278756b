"""`foundry verify`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..context import Context
from ..options import Allow, Archive, Json, Simulated
from ..render import plain, print_json, print_lines
from .inspect import require

if TYPE_CHECKING:
    from foundry.archive import Opened
    from foundry.compat.items import Item
    from foundry.verify import Report
    from foundry.verify.device.parent import DeviceReport

NAME = "verify"
SHORT = "Check an archive: digests and structure, or all there is."
EXIT_CODES = (
    "0    it is sound",
    "1    it is not sound, or cannot be read",
    "2    the command line does not say what to do",
    "3    it is sound, but lacks something: it says so itself, or something could not be looked at",
    "4    the archive was written by a newer foundry",
    "5    it is sound, but cannot be restored on this machine (`--host`, `--device`)",
    "125  foundry itself failed",
)
LIMIT_SECONDS = 60.0


def command(
    context: typer.Context,
    archive: Archive,
    quick: Annotated[bool, typer.Option("--quick", help="Look at header, footer, table and summary only.")] = False,
    deep: Annotated[
        bool,
        typer.Option(
            "--deep",
            help="Also check that every kernel is in its image with the same parameters, every pointer in known "
            "memory, every graph without a cycle.",
        ),
    ] = False,
    host: Annotated[
        bool,
        typer.Option(
            "--host", help="Also compare with this machine: may it be restored here? A command may follow `--`."
        ),
    ] = False,
    device: Annotated[
        bool,
        typer.Option(
            "--device",
            help="Also build every graph on a GPU through cuda-python, in a fresh process, and compare what the "
            "driver then tells of it.",
        ),
    ] = False,
    launch: Annotated[
        bool,
        typer.Option(
            "--launch",
            help="With `--device`: launch the graphs too, each on zeros and recorded contents, where all memory that "
            "it points to is known.",
        ),
    ] = False,
    limit: Annotated[
        float, typer.Option("--limit", metavar="SECONDS", min=1, help="With `--device`: how long a graph may take.")
    ] = LIMIT_SECONDS,
    allow: Allow = None,
    sim: Simulated = False,
    json: Json = False,
) -> int:
    """Check an archive. Needs no GPU without `--device`.

    By default every section is unpacked and compared with its digest, and every index and count in it is checked.
    Problems are collected: one that cannot be decoded does not hide the others.
    """
    from foundry.archive import open_archive
    from foundry.compat.codes import require_allowable
    from foundry.errors import UsageError
    from foundry.session.hurry import hurried
    from foundry.verify import Level, verify

    if quick and deep:
        raise UsageError("`--quick` and `--deep` exclude one another")
    if launch and not device:
        raise UsageError("`--launch` goes with `--device`")
    if allow and not host:
        raise UsageError("`--allow` goes with `--host`")
    allowed = require_allowable(allow or ())
    session: Context = context.obj
    require(archive)
    with open_archive(archive) as opened:
        with session.step("reading"), hurried():
            report = verify(opened, Level.QUICK if quick else Level.DEEP if deep else Level.FULL)
        items = _compare(session, opened, sim, allowed) if host and report.sound else None
    on_device = _build(session, archive, sim=sim, launch=launch, limit=limit) if device and report.sound else None
    status = exit_status(report, items, on_device)
    if json:
        print_json(_document(archive, report, items, on_device))
    else:
        print_lines(*map(plain, _lines(archive, report, items, on_device)))
    return status


def exit_status(report: Report, items: list[Item] | None, device: DeviceReport | None) -> int:
    """Give the exit status, the worst of all that was found."""
    from foundry.compat.items import MISMATCH_CODE, usable

    if not report.sound or (device and not device.only_the_machine):
        return 1
    if (items and not usable(items)) or (device and device.problems):
        return MISMATCH_CODE
    return 3 if report.lacking or (device and device.lacking) else 0


def _compare(session: Context, opened: Opened, simulated: bool, allowed: frozenset[str]) -> list[Item]:
    from foundry.session import host

    from ..version import version

    with session.step("asking the driver"):
        return host.examine(
            opened,
            command=session.command,
            environment=session.environment,
            simulated=simulated,
            version=version(),
            allowed=allowed,
        )


def _build(session: Context, archive: Path, *, sim: bool, launch: bool, limit: float) -> DeviceReport:
    from foundry.session.verification import check_on_device

    with session.step("building graphs"):
        return check_on_device(archive, session.environment, simulated=sim, launching=launch, seconds=limit)


def _document(
    archive: Path, report: Report, items: list[Item] | None, device: DeviceReport | None
) -> dict[str, object]:
    from foundry.compat.codes import document
    from foundry.compat.items import usable

    compared = None
    if items is not None:
        compared = {"usable": usable(items), "items": [document(item) for item in items]}
    return {
        "schema": 1,
        "archive": str(archive),
        **report.as_dict(),
        "host": compared,
        "device": device.as_dict() if device else None,
    }


def _lines(archive: Path, report: Report, items: list[Item] | None, device: DeviceReport | None) -> list[str]:
    from ..verifying import device_lines, report_lines

    told = report_lines(str(archive), report)
    if items is not None:
        from ..hosting import item_lines

        told += item_lines(str(archive), items)
    if device is not None:
        told += device_lines(device)
    return told
