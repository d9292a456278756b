"""The command line that all questions share, and the order of things: calibrate, measure, calibrate, write, compare."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from measuring import calibration, comparison, machine, process, results
from measuring.captures import LARGE, Captures
from measuring.comparison import Verdict
from measuring.figures import amount, spread


@dataclass(frozen=True)
class Asked:
    """What a question gets: a folder to work in, how often to run, captures to use, and its own options."""

    folder: Path
    runs: int
    captures: Captures
    options: argparse.Namespace = field(default_factory=argparse.Namespace)


class Answer(NamedTuple):
    """What a question gives. `about`: the work that was done; only results about the same work are compared.

    `problems`: what is missed beside goals. `suffix` tells the result's file from those of other work.
    """

    figures: dict[str, dict[str, Any]]
    about: dict[str, Any]
    details: Mapping[str, Any] = MappingProxyType({})
    problems: Sequence[str] = ()
    suffix: str = ""


@dataclass(frozen=True)
class Question:
    """A question. `name` begins its result's file name; `runs`: how often each thing is run if nobody says.

    A question that has an option `--sim` is asked on a GPU without it; the others need none.
    """

    name: str
    text: str
    measure: Callable[[Asked], Answer]
    runs: int = 5
    add_options: Callable[[argparse.ArgumentParser], None] = lambda _: None

    def main(self, words: Sequence[str] | None = None) -> int:
        """Measure, write, compare, and print. 1 if a goal is missed or, with `--strict`, if something became worse."""
        parser = argparse.ArgumentParser(description=self.text)
        parser.add_argument("--runs", type=int, default=self.runs)
        parser.add_argument("--shape", type=json.loads, default=LARGE, help="of the made-up capture, as JSON")
        parser.add_argument(
            "--captures", type=Path, help="a folder of captures of that shape to use and to leave there"
        )
        add_output_options(parser)
        self.add_options(parser)
        wanted = parser.parse_args(words)
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # what is installed is compiled, and that is what is measured
        folder = Path(tempfile.mkdtemp(prefix=f"{self.name}-"))
        try:
            captures = Captures(wanted.captures or folder / "captures", wanted.shape)
            result, suffix = self.ask(Asked(folder, wanted.runs, captures, wanted))
        finally:
            shutil.rmtree(folder)
        name = self.name + suffix
        kept = results.read(wanted.kept / results.file_name(name, result["machine"]))
        path = results.write(wanted.kept if wanted.keep else wanted.out, name, result)
        verdicts = report(name, result, kept)
        sys.stdout.write(f"written to {os.path.relpath(path)}\n")
        worse = wanted.strict and any(verdict.worse for verdict in verdicts)
        return 1 if worse or result["missed"] else 0

    def ask(self, asked: Asked) -> tuple[dict[str, Any], str]:
        """Measure between two calibrations; give the whole result, and what tells its name from those of other work."""
        load = os.getloadavg()[0]
        on_demand = getattr(asked.options, "sim", False)
        simulated = on_demand or not hasattr(asked.options, "sim")
        begin = time.monotonic()
        clock = calibration.measure()
        answer = self.measure(asked)
        clock += calibration.measure()
        result = {
            "question": self.text,
            "date": time.strftime("%Y-%m-%d"),
            "command": f"python benchmarks/{self.name.replace('-', '_')}.py --runs {asked.runs}{' --sim' * on_demand}",
            "simulated": simulated,
            "machine": machine.facts(simulated=simulated),
            "load_before": round(load, 2),
            "took_seconds": round(time.monotonic() - begin, 1),
            "calibration": {unit: spread([one[unit] for one in clock]) for unit in clock[0]},
            "about": answer.about,
            "figures": answer.figures,
            "instructions_counted": process.counts_instructions(),
            **answer.details,
            "missed": list(answer.problems),
        }
        result["missed"] += missed(result["figures"])
        return result, answer.suffix


def add_output_options(parser: argparse.ArgumentParser) -> None:
    """Say where results go and come from."""
    parser.add_argument("--out", type=Path, default=results.NEW, help="write the result into this folder")
    parser.add_argument("--keep", action="store_true", help="keep the result, for later ones to be compared with")
    parser.add_argument("--kept", type=Path, default=results.KEPT, help="where kept results lie")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if something became slower or larger")


def missed(figures: Mapping[str, Any]) -> list[str]:
    """Say which goals are missed."""
    return [
        f"{name}: {amount(figure['median'], figure['unit'])}, the goal is {amount(figure['goal'], figure['unit'])}"
        for name, figure in figures.items()
        if not figure.get("goal_met", True)
    ]


def report(name: str, result: Mapping[str, Any], kept: Mapping[str, Any] | None) -> list[Verdict]:
    """Print the figures beside the kept ones, and say what became of them; return that."""
    reason = comparison.why_not(kept, result, machine.kind(result["machine"]))
    verdicts = [] if reason or kept is None else comparison.compare(kept, result)
    told = {verdict.name: verdict for verdict in verdicts}
    width = max(map(len, result["figures"]), default=0)
    lines = [f"{name}: {result['question']}"]
    for label, figure in result["figures"].items():
        unit = figure["unit"]
        goal = f"  goal {amount(figure['goal'], unit)}" if "goal" in figure else ""
        verdict = told.get(label)
        change = f"  {verdict.ratio:.2f}x {verdict.kind}" if verdict and verdict.ratio else ""
        ends = f"({amount(figure['least'], unit)} to {amount(figure['most'], unit)})"
        lines.append(f"  {label:{width}}  {amount(figure['median'], unit):>9} {ends:26}{goal}{change}".rstrip())
    lines += [verdict.text for verdict in verdicts if verdict.text]
    lines += [f"missed: {problem}" for problem in result["missed"]]
    if reason:
        lines.append(f"not compared: {reason}")
    elif kept is not None and (other := comparison.differences(kept, result)):
        lines.append(f"differs from when it was kept: {'; '.join(other)}")
    sys.stdout.write("\n".join(lines) + "\n")
    return verdicts
