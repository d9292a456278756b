"""How much memory the page cache may take without anybody missing it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

PROC = Path("/proc")
GROUPS = Path("/sys/fs/cgroup")
SHARE = 2
"""Of what is available, one in so many bytes."""
SPARED = 1 << 28
"""Bytes that are left to others first."""


def room() -> int:
    """Give the number of bytes that may be read ahead now, for the machine and for the control groups of this process.

    What the page cache holds counts as available: it goes when something needs the memory.
    """
    machine = _available()
    if machine is None:
        return 0
    least = min([machine, *(limit for limit in _of_groups() if limit is not None)])
    return max(0, least - SPARED) // SHARE


def _available() -> int | None:
    with suppress(OSError, ValueError, IndexError):
        text = (PROC / "meminfo").read_text(encoding="ascii")
        return int(text.split("MemAvailable:")[1].split()[0]) << 10
    return None


def _of_groups() -> Iterator[int | None]:
    """Look at each control group above this process, of either version."""
    try:
        lines = (PROC / "self" / "cgroup").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2) if line.count(":") > 1 else ("", "none", "")
        names = ("memory.max", "memory.current", "inactive_file ")
        top = GROUPS
        if "memory" in controllers.split(","):
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file ")
            top = GROUPS / "memory"
        elif controllers:
            continue
        below = PurePosixPath(path.lstrip("/"))
        for group in (below, *below.parents):
            yield _left(top / group, *names)


def _left(group: Path, limit: str, current: str, reclaimable: str) -> int | None:
    with suppress(OSError, ValueError, IndexError):
        most, used = int((group / limit).read_text()), int((group / current).read_text())
        stat = "\n" + (group / "memory.stat").read_text()
        return most - used + int(stat.split("\n" + reclaimable)[1].split()[0])
    return None
