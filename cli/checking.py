"""What `foundry verify` does. Imports neither typer nor rich: they take longer than many an archive."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from foundry.errors import UsageError

from .context import Context
from .existing import require
from .plain import read
from .render import plain, print_json, print_lines

if TYPE_CHECKING:
    from foundry.archive import Opened
    from foundry.compat.items import Item
    from foundry.verify import Report
    from foundry.verify.device.parent import DeviceReport

LIMIT_SECONDS = 60.0


@dataclass(frozen=True)
class Request:
    """What the user asked for, as the options are called. `allowed`: codes that exist and may be allowed."""

    archive: Path
    quick: bool = False
    deep: bool = False
    host: bool = False
    device: bool = False
    launch: bool = False
    limit: float = LIMIT_SECONDS
    allowed: frozenset[str] = frozenset()
    simulated: bool = False
    json: bool = False


def request_of(arguments: list[str]) -> Request | None:
    """Read plain, whole and correct arguments. None for all else: then typer reads them, and says what is wrong."""
    found = read(arguments[1:], flags=("--quick", "--deep", "--json"), values=(), short={}, most_others=1)
    if found is None or not found.others:
        return None
    quick, deep, json = (name in found.flags for name in ("--quick", "--deep", "--json"))
    return Request(Path(found.others[0]), quick=quick, deep=deep, json=json)


def run(session: Context, request: Request) -> int:
    """Check the archive, say what was found and return the exit status."""
    from foundry.archive import open_archive
    from foundry.session.hurry import hurried
    from foundry.verify import Level, verify

    if request.quick and request.deep:
        raise UsageError("`--quick` and `--deep` exclude one another")
    if request.launch and not request.device:
        raise UsageError("`--launch` goes with `--device`")
    if request.allowed and not request.host:
        raise UsageError("`--allow` goes with `--host`")
    archive = request.archive
    require(archive)
    with open_archive(archive) as opened:
        with session.step("reading"), hurried():
            report = verify(opened, Level.QUICK if request.quick else Level.DEEP if request.deep else Level.FULL)
        items = _compare(session, opened, request) if request.host and report.sound else None
    on_device = _build(session, request) if request.device and report.sound else None
    status = exit_status(report, items, on_device)
    if request.json:
        print_json(_document(archive, report, items, on_device))
    else:
        print_lines(*map(plain, _lines(archive, report, items, on_device)))
    sys.stdout.flush()
    return status


def exit_status(report: Report, items: list[Item] | None, device: DeviceReport | None) -> int:
    """Give the exit status, the worst of all that was found."""
    from foundry.compat.items import MISMATCH_CODE, usable

    if not report.sound or (device and not device.only_the_machine):
        return 1
    if (items and not usable(items)) or (device and device.problems):
        return MISMATCH_CODE
    return 3 if report.lacking or (device and device.lacking) else 0


def _compare(session: Context, opened: Opened, request: Request) -> list[Item]:
    from foundry.session import host

    from .version import version

    with session.step("asking the driver"):
        return host.examine(
            opened,
            command=session.command,
            environment=session.environment,
            simulated=request.simulated,
            version=version(),
            allowed=request.allowed,
        )


def _build(session: Context, request: Request) -> DeviceReport:
    from foundry.session.verification import check_on_device

    with session.step("building graphs"):
        return check_on_device(
            request.archive,
            session.environment,
            simulated=request.simulated,
            launching=request.launch,
            seconds=request.limit,
        )


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
    from .verifying import device_lines, report_lines

    told = report_lines(str(archive), report)
    if items is not None:
        from .hosting import item_lines

        told += item_lines(str(archive), items)
    if device is not None:
        told += device_lines(device)
    return told
