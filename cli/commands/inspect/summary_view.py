"""The first screen: what an archive is, where it comes from, and how much of what is in it.

All of it comes from the summary section and the table of contents.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from foundry.describe import names

from ...render import bar, driver_version, print_lines, print_pairs, print_table, shown_command
from .request import Request

if TYPE_CHECKING:
    from foundry.archive.opened import Opened

MOST_PROCESSES = 12
MOST_CODES = 4
MOST_SETS = 4
BAR = 24
ENGINES = ("foundry", "vllm", "sglang", "transformers", "torch", "triton", "python")
"""What the line of versions names, of what the capture knew."""


def document(opened: Opened, request: Request) -> dict[str, Any]:
    """Describe the archive in brief."""
    summary = opened.summary()
    found = asdict(summary)
    if request.process is not None:
        found["processes"] = [item for item in found["processes"] if item["role"] == request.process]
    for process in found["processes"]:
        for arena in process["arenas"]:
            arena["arena"] = names.name(names.ARENAS, arena["arena"])
    parts: dict[str, list[int]] = {}
    for section in summary.sections:
        sizes = parts.setdefault(section.kind, [0, 0])
        sizes[0] += section.stored
        sizes[1] += section.raw
    rest = summary.file_size - sum(stored for stored, _ in parts.values())
    found["parts"] = [
        {"part": part, "stored": stored, "raw": raw}
        for part, (stored, raw) in sorted(parts.items(), key=lambda item: -item[1][0])
    ] + [{"part": "container", "stored": rest, "raw": rest}]
    found["thin"] = summary.thin
    return found


def show(found: dict[str, Any]) -> None:
    """Print the screen."""
    from foundry.session.words import count, readable_size

    processes = found["processes"]
    simulated = any(process["simulated"] for process in processes)
    sizes = f"{readable_size(found['file_size'])}, {readable_size(found['raw_size'])} unpacked"
    thin = f"thin: {count(found['outside'], 'kernel image')} in library files of the machine it was made on"
    print_pairs(
        [
            ("archive", found["archive"]),
            ("what", f"{sizes}, format {found['major']}.{found['minor']}{', simulated GPU' if simulated else ''}"),
            ("capture", found["capture_id"]),
            ("command", shown_command(found["context"]) or "not known"),
            ("versions", _versions(found) or "not known"),
            ("needs", thin if found["thin"] else "nothing beside it"),
            *([("noise", noise)] if (noise := _noise(found["codes"])) else []),
        ]
    )
    print_lines("")
    if len(processes) == 1:
        _one(processes[0], found["context"].get("driver_release", ""))
    else:
        _many(processes)
    print_lines("")
    print_table(
        [("part", "left"), ("stored", "right"), ("unpacked", "right"), ("share of the file", "left")],
        [
            (
                part["part"],
                readable_size(part["stored"]),
                readable_size(part["raw"]),
                f"{part['stored'] / found['file_size']:6.1%} {bar(part['stored'] / found['file_size'], BAR)}",
            )
            for part in found["parts"]
        ],
    )
    print_lines("")
    _findings(found["codes"])


def _versions(found: dict[str, Any]) -> str:
    from foundry.session.words import count

    known = found["context"] | found["packages"]
    told = [f"{name} {known[name]}" for name in ENGINES if known.get(name)]
    more = len(set(found["packages"]) - set(ENGINES))
    return ", ".join(told + ([count(more, "other package")] if more else []))


def _one(process: dict[str, Any], release: str) -> None:
    from foundry.session.words import count, readable_size

    graphs, restorable = process["graphs"], process["restorable"]
    state = "all restorable" if restorable == graphs else f"{restorable} restorable, {graphs - restorable} not"
    pairs = [
        ("process", process["role"]),
        ("ranks", ", ".join(f"{name}={value}" for name, value in sorted(process["ranks"].items()))),
        *(("GPU" if not index else "", _gpu(device)) for index, device in enumerate(process["devices"][:4])),
        ("driver", _driver(process, release)),
        ("graphs", f"{graphs}, {state if graphs else 'none to restore'}"),
        ("proven", _proven(process)),
        ("sets", _sets(process["sets"])),
        ("groups", f"{process['groups']}: graphs of one group have the same nodes and edges"),
        ("nodes", f"{process['nodes']:,}"),
        ("kernels", f"{process['kernels']} in {count(process['images'], 'image')}"),
    ]
    print_pairs([(name, value) for name, value in pairs if value])
    if process["arenas"]:
        print_lines("")
        several = len(process["devices"]) > 1
        print_table(
            [
                ("memory", "left"),
                ("allocations", "right"),
                ("bytes", "right"),
                ("live at the end", "right"),
                ("dead", "right"),
            ],
            [
                (
                    arena["arena"] + (f" of GPU {arena['device']}" if several else ""),
                    f"{arena['allocations']:,}",
                    readable_size(arena["bytes"]),
                    f"{arena['live']:,}, {readable_size(arena['live_bytes'])}",
                    f"{arena['allocations'] - arena['live']:,}",
                )
                for arena in process["arenas"][:8]
            ],
        )


def _proven(process: dict[str, Any]) -> str:
    """Say which graphs may lie elsewhere than at capture; nothing where no second capture told."""
    from foundry.session.words import count

    proof = process.get("proof") or {}
    if not proof:
        return ""
    graphs, words, noise = (proof.get(name, 0) for name in ("graphs", "words", "noise"))
    which = (
        f"all {count(graphs, 'graph')}" if graphs == process["graphs"] else f"{graphs} of {process['graphs']} graphs"
    )
    return f"{which} may lie elsewhere: {words:,} words move, {noise:,} are noise"


def _noise(codes: list[dict[str, Any]]) -> str:
    """Say what scrubbing left; nothing where it was not asked for."""
    from foundry.findings import SCRUB_KEPT, SCRUBBED
    from foundry.session.words import count

    counts = {code["code"]: code["count"] for code in codes}
    kept = counts.get(SCRUB_KEPT, 0)
    if kept:
        return f"{count(kept, 'graph')} kept what may be noise in parameters: `--findings` says why"
    return "made zero in parameters: replays gave the same without it" if SCRUBBED in counts else ""


def _many(processes: list[dict[str, Any]]) -> None:
    from foundry.session.words import readable_size

    rows = [
        (
            process["role"],
            ", ".join(sorted({device["name"] for device in process["devices"]})) or "none",
            f"{process['graphs']:,}",
            f"{process['restorable']:,}",
            f"{process['groups']:,}",
            f"{process['nodes']:,}",
            f"{process['kernels']:,}",
            readable_size(sum(arena["live_bytes"] for arena in process["arenas"])),
        )
        for process in processes
    ]
    print_table(
        [
            ("process", "left"),
            ("GPU", "left"),
            ("graphs", "right"),
            ("can be restored", "right"),
            ("groups", "right"),
            ("nodes", "right"),
            ("kernels", "right"),
            ("live memory", "right"),
        ],
        rows[:MOST_PROCESSES],
    )
    if len(rows) > MOST_PROCESSES:
        print_lines(f"and {len(rows) - MOST_PROCESSES} more: `--json` lists all, `--process ROLE` shows one")


def _driver(process: dict[str, Any], release: str) -> str:
    told = [f"CUDA {driver_version(process['driver_version'])}", *([release] if release else [])]
    return ", ".join([*told, "simulated"] if process["simulated"] else told)


def _gpu(device: dict[str, Any]) -> str:
    from foundry.session.words import readable_size

    mig = ", MIG" if device["mig"] else ""
    return (
        f"{device['ordinal']}: {device['name']}, compute {device['compute_major']}.{device['compute_minor']}, "
        f"{device['multiprocessors']} multiprocessors, {readable_size(device['total_memory'])}{mig}"
    )


def _sets(sets: dict[str, int]) -> str:
    from foundry.session.words import count

    named = sorted(sets.items(), key=lambda item: -item[1])
    told = [f"{name or '(no set)'} {number}" for name, number in named[:MOST_SETS]]
    more = [count(len(named) - MOST_SETS, "more set")] if len(named) > MOST_SETS else []
    return ", ".join(told + more)


def _findings(codes: list[dict[str, Any]]) -> None:
    from foundry.session.words import count

    if not codes:
        print_lines("no findings")
        return
    print_table(
        [("findings", "right"), ("", "left"), ("code", "left")],
        [(f"{code['count']:,}", code["severity"], code["code"]) for code in codes[:MOST_CODES]],
    )
    if len(codes) > MOST_CODES:
        print_lines(f"and {count(len(codes) - MOST_CODES, 'other kind')}: `--findings` shows all")
