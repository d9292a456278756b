"""The C engine of `tests/engines/tinyllm` on a device: tokens of each way to launch, and what each way costs.

    python tests/gpu/tinyllm_engine.py FOLDER [--runs 5] [--sim]

Needs foundry, numpy, make and a C compiler; no torch. Figures of the simulator say nothing about a GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from scenarios import FOUNDRY, HERE, OTHER_FILES, run

ENGINE = HERE.parent / "engines" / "tinyllm"
SWITCH = "TINYLLM_GRAPHS"
PROMPTS = ("The graphs of a server", "A key", "x", "The pages of the cache")
KEYS = 36
LONGEST = 30
"""Seconds for one run of the engine."""
CASES = [(count, temperature) for count in (1, len(PROMPTS)) for temperature in (0, 0.9)]
MOVING = {"updated": ["--buffers", "2"], "dedicated": ["--buffers", "2", "--dedicated", "2"]}
"""Inputs lie in two buffers by turns: graphs are updated for each pass, or there is one for each buffer."""
FIGURES = {
    "seconds_ready": 6,
    "seconds_first_token": 6,
    "tokens_a_second": 1,
    "tokens_a_second_later": 1,
    "seconds_of_the_command": 4,
}
ROUNDS = 10
"""How often the prompts are answered where that is measured: the first round launches each graph for the first time."""


class Ways:
    """The ways to run the engine: on the CPU, launch by launch, with graphs, under capture and under restore."""

    def __init__(self, folder: Path, *, simulated: bool) -> None:
        self.folder = folder
        self.simulated = simulated
        self.stuck: set[str] = set()
        folder.mkdir(parents=True, exist_ok=True)
        import foundry

        native = Path(foundry.__file__).resolve().parent / "native"
        run(
            folder,
            "make",
            ["make", "-j4", "-C", ENGINE, f"BUILD={folder / 'build'}", f"PYTHON={sys.executable}", f"NATIVE={native}"],
        )
        run(folder, "weights", [sys.executable, ENGINE / "make_weights.py", folder / "model"])
        self.command = [
            folder / "build" / "tinyllm",
            "--model",
            folder / "model",
            "--once",
            "--statistics",
            "--ignore-end",
        ]

    def run(
        self, way: str, count: int, temperature: float, tokens: int = 600, rounds: int = 1
    ) -> tuple[list[list[int]], dict[str, Any]]:
        """Give the tokens of each prompt, and the engine's statistics. A way that took too long is not tried again."""
        assert way not in self.stuck, "it took too long before"
        command = [*self.command, "--temperature", temperature, "--seed", 5, "--tokens", tokens, "--rounds", rounds]
        command += [word for prompt in PROMPTS[:count] for word in ("--prompt", prompt)]
        environment = {SWITCH: "0" if way in ("cpu", "eager") else "1"}
        sim = ["--sim"] if self.simulated else []
        verb, _, moving = way.rpartition("-")
        command += MOVING.get(moving, [])
        archive = self.folder / f"{moving}.fdry"
        if way == "cpu":
            command += ["--device", "cpu"]
        elif "capture" in (verb, way):
            command = [*FOUNDRY, "capture", *sim, "-f", "-o", archive, "--", *command]
        elif "restore" in (verb, way):
            archive = archive if verb else self.folder / "capture.fdry"
            command = [*FOUNDRY, "restore", *sim, *OTHER_FILES, archive, "--", *command]
        elif self.simulated:
            from foundry import native

            environment["LD_LIBRARY_PATH"] = str(native.simulator_directory())
        begin = time.monotonic()
        try:
            output = run(self.folder, way, command, timeout=LONGEST, **environment)
        except subprocess.TimeoutExpired:
            self.stuck.add(way)
            raise
        seconds = time.monotonic() - begin
        log = (self.folder / f"{way}.log").read_text()
        told = [line for line in log.splitlines() if line.startswith('{"mode"')]
        assert told, f"{way} told no statistics"
        found = json.loads(told[-1])
        return [json.loads(line)["tokens"] for line in output.splitlines()], {
            **found,
            "tokens_a_second_later": statistics.median(found["rounds"][1:] or found["rounds"]),
            "seconds_of_the_command": seconds,
        }

    def parity(self, *before: object) -> str:
        """Compare passes through graphs with those without; give the line that says what was found."""
        sim = ["--sim"] if self.simulated else []
        program, *model = self.command[:3]
        run(
            self.folder,
            "parity",
            [*FOUNDRY, "parity", *sim, "--", *before, program, *model, "--parity"],
            **{SWITCH: "1"},
        )
        log = (self.folder / "parity.log").read_text().splitlines()
        told = [line for line in log if "parity of tinyllm: equal: " in line]
        assert told, "foundry parity told no report"
        return told[0]


def check_counts(way: str, found: dict[str, Any]) -> None:
    """A restored run replays only; the others do what their name says."""
    if way in MOVING:
        assert found["updated" if way == "updated" else "captured"] > 0, (way, found)
        assert way == "updated" or not found["updated"], (way, found)
        return
    counts = {name: found[name] for name in ("captured", "restored", "replayed", "hook_stream_captures")}
    passes = found["passes"]
    expected = {
        "eager": {"captured": 0, "restored": 0, "replayed": 0, "hook_stream_captures": 0},
        "graphs": {"captured": KEYS, "restored": 0, "replayed": passes, "hook_stream_captures": 0},
        "capture": {"captured": KEYS, "restored": 0, "replayed": passes, "hook_stream_captures": KEYS},
        "restore": {"captured": 0, "restored": KEYS, "replayed": passes, "hook_stream_captures": 0},
    }
    assert counts == expected[way], (way, counts)


def updating_restored(ways: Ways) -> dict[str, int]:
    """Update restored execs; say how often the driver let that be done in place, and how often another was made."""
    wanted, _ = ways.run("eager", 1, 0)
    for way in ("capture-updated", "restore-updated"):
        tokens, found = ways.run(way, 1, 0)
        assert tokens == wanted, f"{way}: other tokens than eager"
    assert found["restored"], "nothing was restored"
    return {name: found[name] for name in ("restored", "updated", "refused", "captured", "replayed")}


class Clock:
    """The time that is left for all of it."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def left(self) -> bool:
        """Whether there is any."""
        return time.monotonic() < self._end


def compare_tokens(ways: Ways, count: int, temperature: float) -> tuple[list[str], bool]:
    """Run all ways: what is wrong with them, and whether the CPU gives the same tokens."""
    wanted, found = ways.run("eager", count, temperature)
    check_counts("eager", found)
    problems = []
    for way in ("graphs", "capture", "restore", *MOVING):
        try:
            tokens, found = ways.run(way, count, temperature)
            assert tokens == wanted, "other tokens than eager"
            check_counts(way, found)
        except Exception as error:
            problems.append(f"{way}, {count} prompts at {temperature}: {type(error).__name__}: {error}")
    return problems, ways.run("cpu", count, temperature)[0] == wanted


def measure(ways: Ways, count: int, tokens: int, runs: int, clock: Clock, problems: list[str]) -> dict[str, Any]:
    """Run the ways by turns, once at least, until the time is over; give the medians. One that fails is left out."""
    measured: dict[str, list[dict[str, Any]]] = {way: [] for way in ("eager", "graphs", "restore", *MOVING)}
    for number in range(runs):
        if number and not clock.left():
            break
        for way, taken in list(measured.items()):
            try:
                taken.append(ways.run(way, count, 0, tokens, ROUNDS)[1])
            except Exception as error:
                problems.append(f"{way}, {count} prompts, {tokens} tokens: {type(error).__name__}: {error}")
                del measured[way]
    medians = {
        way: {name: round(statistics.median(one[name] for one in taken), digits) for name, digits in FIGURES.items()}
        for way, taken in measured.items()
    }
    return {"runs": max((len(taken) for taken in measured.values()), default=0), **medians}


def tinyllm_engine(
    folder: Path,
    runs: int = 5,
    *,
    simulated: bool = False,
    seconds: float | None = None,
    cases: Sequence[tuple[int, float]] = CASES,
) -> dict[str, Any]:
    """Compare the tokens of all ways, across the seams at 256 and 512 positions; then measure by turns.

    What was found stands in `figures.json` from the first part on. A part that fails does not keep the others from
    being run; all that failed is told at the end. `seconds` ends the measuring (TINYLLM_SECONDS, 120).
    """
    clock = Clock(float(os.environ.get("TINYLLM_SECONDS", "120")) if seconds is None else seconds)
    ways = Ways(folder, simulated=simulated)
    figures: dict[str, Any] = {"cpu_gives_the_same_tokens": {}, "problems": []}
    problems: list[str] = figures["problems"]

    def part(name: str, work: Callable[[], Any]) -> Any:
        found = None
        try:
            found = work()
        except Exception as error:
            problems.append(f"{name}: {type(error).__name__}: {error}")
        (folder / "figures.json").write_text(json.dumps(figures, indent=1))
        return found

    for count, temperature in cases:
        name = f"{count} at {temperature}"
        wrong, same = part(name, partial(compare_tokens, ways, count, temperature)) or ([], None)
        problems += wrong
        figures["cpu_gives_the_same_tokens"][name] = same
    figures["parity"] = part("parity", ways.parity)
    figures["updating_restored"] = part("updating restored graphs", partial(updating_restored, ways))
    for name, (count, tokens) in {"one_token": (1, 1), "one": (1, 600), "four": (len(PROMPTS), 600)}.items():
        figures[name] = part(name, partial(measure, ways, count, tokens, runs, clock, problems))
    part("end", dict)
    assert not problems, "; ".join(problems)
    return {"figures": figures}


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="the C engine on a device")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--sim", action="store_true")
    arguments = parser.parse_args()
    os.environ.pop(SWITCH, None)
    print(json.dumps(tinyllm_engine(arguments.folder.resolve(), arguments.runs, simulated=arguments.sim), indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
