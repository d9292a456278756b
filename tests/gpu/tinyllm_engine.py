"""The C engine of `tests/engines/tinyllm` on a device: tokens of each way to launch, and what each way costs.

    python tests/gpu/tinyllm_engine.py FOLDER [--runs 5] [--sim]

Needs foundry, numpy, make and a C compiler; no torch. Figures of the simulator say nothing about a GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from scenarios import FOUNDRY, HERE, OTHER_FILES, run

ENGINE = HERE.parent / "engines" / "tinyllm"
SWITCH = "TINYLLM_GRAPHS"
PROMPTS = ("The graphs of a server", "A key", "x", "The pages of the cache")
KEYS = 36
CASES = [(count, temperature) for count in (1, len(PROMPTS)) for temperature in (0, 0.9)]
MOVING = {"updated": ["--buffers", "2"], "dedicated": ["--buffers", "2", "--dedicated", "2"]}
"""Inputs lie in two buffers by turns: graphs are updated for each pass, or there is one for each buffer."""
FIGURES = {"seconds_ready": 6, "seconds_first_token": 6, "tokens_a_second": 1, "seconds_of_the_command": 4}


class Ways:
    """The ways to run the engine: on the CPU, launch by launch, with graphs, under capture and under restore."""

    def __init__(self, folder: Path, *, simulated: bool) -> None:
        self.folder = folder
        self.simulated = simulated
        folder.mkdir(parents=True, exist_ok=True)
        import foundry

        native = Path(foundry.__file__).resolve().parent / "native"
        run(
            folder,
            "make",
            ["make", "-C", ENGINE, f"BUILD={folder / 'build'}", f"PYTHON={sys.executable}", f"NATIVE={native}"],
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
        self.archive = folder / "engine.fdry"

    def run(
        self, way: str, count: int, temperature: float, tokens: int = 600
    ) -> tuple[list[list[int]], dict[str, Any]]:
        """Give the tokens of each prompt, and the engine's statistics."""
        command = [*self.command, "--temperature", temperature, "--seed", 5, "--tokens", tokens]
        command += [word for prompt in PROMPTS[:count] for word in ("--prompt", prompt)]
        environment = {SWITCH: "0" if way in ("cpu", "eager") else "1"}
        sim = ["--sim"] if self.simulated else []
        if way in MOVING:
            command += MOVING[way]
        if way == "cpu":
            command += ["--device", "cpu"]
        elif way == "capture":
            command = [*FOUNDRY, "capture", *sim, "-f", "-o", self.archive, "--", *command]
        elif way == "restore":
            command = [*FOUNDRY, "restore", *sim, *OTHER_FILES, self.archive, "--", *command]
        elif self.simulated:
            from foundry import native

            environment["LD_LIBRARY_PATH"] = str(native.simulator_directory())
        begin = time.monotonic()
        output = run(self.folder, way, command, **environment)
        seconds = time.monotonic() - begin
        log = (self.folder / f"{way}.log").read_text()
        found = json.loads([line for line in log.splitlines() if line.startswith('{"mode"')][-1])
        return [json.loads(line)["tokens"] for line in output.splitlines()], {
            **found,
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
        return next(line for line in log if "parity of tinyllm: equal: " in line)


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


def tinyllm_engine(folder: Path, runs: int = 5, *, simulated: bool = False) -> dict[str, Any]:
    """Compare the tokens of all ways, across the seams at 256 and 512 positions; then measure by turns."""
    ways = Ways(folder, simulated=simulated)
    on_cpu: dict[str, bool] = {}
    for count, temperature in CASES:
        wanted, found = ways.run("eager", count, temperature)
        check_counts("eager", found)
        for way in ("graphs", "capture", "restore", *MOVING):
            tokens, found = ways.run(way, count, temperature)
            assert tokens == wanted, f"{way} gives other tokens than eager, {count} prompts at {temperature}"
            check_counts(way, found)
        on_cpu[f"{count} at {temperature}"] = ways.run("cpu", count, temperature)[0] == wanted
    figures: dict[str, Any] = {"cpu_gives_the_same_tokens": on_cpu, "runs": runs, "parity": ways.parity()}
    for name, (count, tokens) in {"one_token": (1, 1), "one": (1, 600), "four": (len(PROMPTS), 600)}.items():
        measured: dict[str, list[dict[str, Any]]] = {way: [] for way in ("eager", "graphs", "restore", *MOVING)}
        for _ in range(runs):
            for way, taken in measured.items():
                taken.append(ways.run(way, count, 0, tokens)[1])
        figures[name] = {
            way: {
                figure: round(statistics.median(one[figure] for one in taken), digits)
                for figure, digits in FIGURES.items()
            }
            for way, taken in measured.items()
        }
    (folder / "figures.json").write_text(json.dumps(figures, indent=1))
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
