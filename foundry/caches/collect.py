"""What a command needs of the caches: what it made there, changed or opened, and what goes with that."""

from __future__ import annotations

import json
import posixpath
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from foundry.caches.below import Below, mark
from foundry.caches.kinds import TIMES, Folder, entry_of, folders, is_head, unit_of
from foundry.caches.snapshot import Snapshot, take
from foundry.caches.twins import TRITON, twins
from foundry.caches.watching import Watch
from foundry.findings import CACHE_LEFT_OUT, Finding, Severity

LARGEST_FILE = 1 << 28
LARGEST_TOTAL = 1 << 30
LARGEST_WHOLE = 1 << 26
"""Of a cache that is only kept whole: most of it may be other programs'."""
MOST_FILES = 50_000
"""Of one archive. An entry that does not fit any more is left out as a whole, and a finding says so."""
LONGEST_NAMES = 1 << 23
"""Of all paths together: an archive lists them in a text that must not become too long."""
LONGEST_LOOK = 10.0
"""Seconds that looking at all folders may take: the command waits for it once. What is left then is not kept."""
MOST_TOLD = 5


CacheFile = tuple[str, str, int, bytes]
"""As `foundry.pack.add_files` takes it: cache, path, mode, bytes."""


@dataclass
class Collected:
    """What a command needs of its caches. `findings` tell what is left out."""

    files: list[CacheFile] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    size: int = 0
    names: int = 0

    def add(self, found: Sequence[CacheFile]) -> None:
        """Take an entry that is within the limits."""
        self.files += found
        self.size += sum(len(file[3]) for file in found)
        self.names += _names(found)

    def leave_out(self, where: str, why: str) -> None:
        """Note that something is not in it."""
        self.findings.append(Finding(CACHE_LEFT_OUT, Severity.WARN, why, where))


class Collector:
    """Looks at the caches of a command before it starts; afterwards, or while it runs, tells what it needs of them."""

    def __init__(self, environment: Mapping[str, str], working_folder: str) -> None:
        self._folders = folders(environment, working_folder)
        self._before = _taken(self._folders)
        self._watch = Watch(
            posixpath.join(self._folders[name].path, folder).rstrip("/")
            for name, snapshot in self._before.items()
            if not snapshot.fault
            for folder in snapshot.folders
        )

    def listen(self) -> None:
        """Begin to follow what is opened. Call it after every fork, once or more."""
        self._watch.listen()

    def close(self) -> None:
        """Watch no longer."""
        self._watch.close()

    def collect(self) -> Collected:
        """Read what the command needs up to now."""
        opened = self._watch.opened()  # before anything is read here, which is opening, too
        result = Collected()
        now = _taken(self._folders)
        for name, folder in self._folders.items():
            before, after = self._before[name], now[name]
            if fault := before.fault or after.fault:
                if Path(folder.path).is_dir():
                    result.leave_out(name, f"the cache is not kept: {fault}")
                continue
            entries = self._entries(folder, before, after, opened)
            size = sum(after.files[path][1] for paths in entries.values() for path in paths)
            if folder.kind.whole and size > LARGEST_WHOLE:
                result.leave_out(
                    name, f"the cache is not kept: past the limit of {LARGEST_WHOLE} bytes for one of its kind"
                )
                continue
            if not entries and after.files and self._is_blind(folder, after):
                result.leave_out(name, "the cache is not kept: nobody tells what is opened there, and nothing was made")
            if after.unnameable and entries:
                result.leave_out(name, f"{after.unnameable} files have names that an archive cannot hold")
            try:
                if entries:
                    self._read(folder, entries, result)
            except OSError as error:
                result.leave_out(name, f"the cache is not kept: `{folder.path}`: {error.strerror or error}")
        if TRITON in self._folders and not self._folders[TRITON].fault:
            self._add_twins(result)
        return result

    def _add_twins(self, result: Collected) -> None:
        found = twins(result.files)
        if why := _past_limit(result, found):
            result.leave_out(TRITON, f"kernels of other caches are not kept for this one: {why}")
            return
        result.add(found)

    def _entries(self, folder: Folder, before: Snapshot, after: Snapshot, opened: set[str]) -> dict[str, list[str]]:
        """Give the entries that the command touched, with all their files, heads first.

        Where nobody tells what was opened they are all, but only of a cache that the command is known to have used.
        """
        touched = {
            unit_of(folder.kind, path)
            for path, seen in after.files.items()
            if before.files.get(path) != seen or f"{folder.path}/{path}" in opened
        }
        touched.update(
            unit_of(folder.kind, _source(path[len(folder.path) + 1 :]))
            for path in opened
            if path.startswith(folder.path + "/") and path.endswith(".pyc")
        )
        if touched:
            touched.update(unit_of(folder.kind, path) for path in after.files if self._unseen(folder, path))
        result: dict[str, list[str]] = {}
        for path in sorted(after.files, key=lambda path: (not is_head(path), path)):
            if unit_of(folder.kind, path) in touched:
                result.setdefault(entry_of(folder.kind, path), []).append(path)
        return dict(sorted(result.items()))

    def _unseen(self, folder: Folder, path: str) -> bool:
        return self._watch.is_blind(posixpath.dirname(f"{folder.path}/{path}"))

    def _is_blind(self, folder: Folder, after: Snapshot) -> bool:
        return any(self._unseen(folder, path) for path in after.files)

    def _read(self, folder: Folder, entries: dict[str, list[str]], result: Collected) -> None:
        name = folder.kind.name
        times: dict[str, int] = {}
        left_out: list[str] = []
        with Below(folder.path) as below:
            for entry, paths in entries.items():
                found: list[CacheFile] = []
                seen: dict[str, int] = {}
                marks = []
                try:
                    for path in paths:
                        data, status = below.read(path, LARGEST_FILE)
                        found.append((name, path, status.st_mode & 0o777, data))
                        seen[path] = status.st_mtime_ns
                        marks.append((path, mark(status)))
                    changed = next((path for path, seen_as in marks if mark(below.status(path)) != seen_as), "")
                    why = f"`{changed}` is being written" if changed else _past_limit(result, found)
                except OSError as error:
                    why = str(error) if error.errno is None else f"{error.strerror}"
                if why:
                    left_out.append(f"`{entry or name}`: {why}")
                    continue
                result.add(found)
                times.update(seen)
        if folder.kind.ninja and times:
            result.files.append((TIMES, f"{name}.json", 0o600, json.dumps(times, sort_keys=True).encode()))
        for text in left_out[:MOST_TOLD]:
            result.leave_out(name, text)
        if len(left_out) > MOST_TOLD:
            result.leave_out(name, f"and {len(left_out) - MOST_TOLD} more entries are left out")


def together(earlier: Sequence[CacheFile], found: Collected) -> list[CacheFile]:
    """Give what an archive holds together with what a later run needed; of a file that both have the later one."""
    made = {file[:2]: file for file in earlier}
    for file in found.files:
        before = made.get(file[:2])
        if before and file[0] == TIMES:
            times = json.dumps({**json.loads(before[3]), **json.loads(file[3])}, sort_keys=True)
            file = (*file[:3], times.encode())
        made[file[:2]] = file
    if why := _past_limit(Collected(), list(made.values())):
        found.leave_out("", f"what this run needed is not added: {why}")
        return list(earlier)
    return list(made.values())


def _taken(all_folders: Mapping[str, Folder]) -> dict[str, Snapshot]:
    until = time.monotonic() + LONGEST_LOOK
    return {name: take(folder, until) for name, folder in all_folders.items()}


def _past_limit(result: Collected, found: list[CacheFile]) -> str:
    if result.size + sum(len(file[3]) for file in found) > LARGEST_TOTAL:
        return f"past the limit of {LARGEST_TOTAL} bytes for all caches"
    if len(result.files) + len(found) > MOST_FILES or result.names + _names(found) > LONGEST_NAMES:
        return f"past the limit of {MOST_FILES} files for all caches"
    return ""


def _names(found: Sequence[CacheFile]) -> int:
    return sum(len(json.dumps(path)) for _, path, _, _ in found)


def _source(path: str) -> str:
    """Name the source of a compiled Python file."""
    folder = posixpath.dirname(posixpath.dirname(path))
    name = posixpath.basename(path).partition(".")[0] + ".py"
    return f"{folder}/{name}" if folder else name
