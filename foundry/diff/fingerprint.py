"""What the program and the machine were: devices, driver, libraries, packages, arguments, environment."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, TypeVar

from foundry.diff.report import Change, Kind, Strength, index_text, note, unequal
from foundry.model import Device, DeviceFlag, Library, Process

if TYPE_CHECKING:
    from foundry.archive.heads import Head

Key = TypeVar("Key")
KIND = Kind.FINGERPRINT
ARGUMENTS = "argv"


def head_changes(before: Head, after: Head) -> Iterator[Change]:
    """Compare what both archives say of the whole."""
    yield from _mappings("capture", "", before.context, after.context)
    yield from _mappings("capture", "package ", before.packages, after.packages)
    yield from _amounts("cache files", _files(before), _files(after))
    yield from _amounts("findings", Counter(map(str, before.findings)), Counter(map(str, after.findings)))
    outside = [sum(entry.library is not None for entry in head.blobs) for head in (before, after)]
    yield from note("capture", "blobs left in library files", *outside)


def _amounts(what: str, before: Counter[Key], after: Counter[Key]) -> Iterator[Change]:
    gone, new = sum((before - after).values()), sum((after - before).values())
    if gone or new:
        sides = f"{gone} not in B", f"{new} not in A"
        yield Change(Kind.NOTES, "capture", what, sides[0], sides[1], Strength.NOTE)


def process_changes(where: str, before: Process, after: Process) -> Iterator[Change]:
    """Compare what two processes of a role were."""
    devices = _devices(before), _devices(after)
    for ordinal in _union(*devices):
        yield from _device(f"{where}: device {ordinal}", devices[0].get(ordinal), devices[1].get(ordinal))
    yield from unequal(KIND, where, "driver", _driver(before), _driver(after))
    yield from unequal(KIND, where, "driver library", before.driver_library, after.driver_library)
    yield from unequal(KIND, where, "simulated", before.simulated, after.simulated)
    yield from _libraries(where, before.libraries, after.libraries)
    yield from unequal(KIND, where, "program", before.executable, after.executable)
    yield from _mappings(where, "rank variable ", before.ranks, after.ranks)
    contexts = [
        Counter((item.device, item.primary, item.ordinal) for item in process.contexts) for process in (before, after)
    ]
    if contexts[0] != contexts[1]:
        yield Change(KIND, where, "contexts", _contexts(contexts[0]), _contexts(contexts[1]))
    for what in ("mode", "complete"):
        yield from note(where, what, getattr(before, what), getattr(after, what))
    yield from note(where, "proof by a second capture", *map(_proof, (before, after)))
    yield from note(where, "step of the last commit", *map(index_text, (before.committed, after.committed)))
    for name in _union(before.counters, after.counters):
        yield from note(where, f"counter `{name}`", before.counters.get(name), after.counters.get(name))


def _proof(process: Process) -> str | None:
    """Say in numbers what a second capture proved."""
    proof = process.proof
    if proof is None:
        return None
    return f"{len(proof.graphs)} graphs, {proof.moving:,} words that move, {proof.noise:,} of noise"


def _device(where: str, before: Device | None, after: Device | None) -> Iterator[Change]:
    if before is None or after is None:
        yield Change(KIND, where, "device", before.name if before else "none", after.name if after else "none")
        return
    for what, left, right in (
        ("GPU model", before.name, after.name),
        ("compute capability", _capability(before), _capability(after)),
        ("multiprocessors", before.multiprocessors, after.multiprocessors),
        ("memory", before.total_memory, after.total_memory),
        ("MIG", bool(before.flags & DeviceFlag.MIG), bool(after.flags & DeviceFlag.MIG)),
        ("other flags", before.flags & ~DeviceFlag.MIG, after.flags & ~DeviceFlag.MIG),
    ):
        yield from unequal(KIND, where, what, left, right)
    yield from note(where, "uuid", before.uuid, after.uuid)


def _libraries(where: str, before: tuple[Library, ...], after: tuple[Library, ...]) -> Iterator[Change]:
    sides: list[dict[str, list[str]]] = []
    for libraries in (before, after):
        named: dict[str, list[str]] = {}
        for library in libraries:
            named.setdefault(library.name, []).append(_library(library))
        sides.append(named)
    for name in sorted({*sides[0], *sides[1]}):
        left, right = (", ".join(side.get(name, [])) or None for side in sides)
        yield from unequal(KIND, where, f"library `{name}`", left, right)


def _library(library: Library) -> str:
    package = f"{library.package} {library.version}".strip()
    build = f"build {library.build_id}" if library.build_id else "no build id"
    return f"{package}, {build}" if package else build


def _mappings(where: str, prefix: str, before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Change]:
    for name in sorted({*before, *after}):
        left, right = before.get(name), after.get(name)
        what = f"{prefix}`{name}`"
        if name == ARGUMENTS:
            left, right, what = _command(left), _command(right), "command"
        yield from unequal(KIND, where, what, left, right)


def _command(arguments: str | None) -> str | None:
    """Write a list of arguments as one would type it, if it is one."""
    try:
        return shlex.join(str(word) for word in json.loads(arguments or ""))
    except (ValueError, TypeError):
        return arguments


def _files(head: Head) -> Counter[tuple[str, str, int, bytes]]:
    return Counter((file.cache, file.path, file.mode, head.blobs[file.blob].sha256) for file in head.files)


def _devices(process: Process) -> dict[int, Device]:
    return {device.ordinal: device for device in process.devices}


def _driver(process: Process) -> str:
    version = process.driver_version
    return f"CUDA {version // 1000}.{version % 1000 // 10}" + (f".{version % 10}" if version % 10 else "")


def _capability(device: Device) -> str:
    return f"{device.compute_major}.{device.compute_minor}"


def _contexts(found: Counter[tuple[int, bool, int]]) -> str:
    return ", ".join(context_name(*item) for item in sorted(found.elements())) or "none"


def context_name(device: int, primary: bool, ordinal: int) -> str:
    """Name a context without the number that it has in this capture."""
    return f"{'primary' if primary else f'created {ordinal}'} of device {device}"


def _union(before: Mapping[Key, object], after: Mapping[Key, object]) -> list[Key]:
    return list(dict.fromkeys([*before, *after]))
