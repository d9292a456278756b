"""Ask all questions, and compare the answers with the kept ones of this class of machine.

    python -m benchmarks [--gpu] [--only NAME,...] [--list] [--runs N] [--keep] [--strict]

Without `--gpu`: those that need none. Results are written to `build/bench/`, or kept in `benchmarks/results/`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from measuring import machine, question, results  # noqa: E402


class Item(NamedTuple):
    """A question of the suite: its name, and its options. Its script is called as it is."""

    name: str
    words: tuple[str, ...] = ()

    @property
    def script(self) -> Path:
        """The file that asks it."""
        return HERE / f"{self.name.replace('-', '_')}.py"


WITHOUT_GPU = (
    Item("start-overhead"),
    Item("open-speed"),
    Item("image-build"),
    Item("pack-speed"),
    Item("verify-speed"),
    Item("tool-speed"),
    Item("spool-cost"),
    Item("many-graphs", ("--sim", "--graphs", "32,64,128,256")),
    Item("restore-levers", ("--sim",)),
    Item("prefetch"),
    Item("launch-overhead", ("--sim", "--rounds", "30")),
)
WITH_GPU = (
    Item("decode-job"),
    Item("whole-start"),
    Item("restore-levers"),
    Item("many-graphs", ("--graphs", "64,256,1024,2048")),
    Item("launch-overhead"),
    Item("start-share"),
    Item("archive-sizes"),
)


def main(words: Sequence[str] | None = None) -> int:
    """Ask, and print what became of it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--gpu", action="store_true", help="ask those that need a GPU, and torch")
    parser.add_argument("--only", help="names of questions, with commas between")
    parser.add_argument("--list", action="store_true", help="name them, with the seconds that each took")
    parser.add_argument("--runs", type=int, help="how often each thing is run")
    parser.add_argument("--shape", type=json.loads, help="of the made-up captures, as JSON")
    question.add_output_options(parser)
    wanted = parser.parse_args(words)
    items = WITH_GPU if wanted.gpu else WITHOUT_GPU
    if wanted.only:
        names = wanted.only.split(",")
        if unknown := set(names) - {item.name for item in items}:
            parser.error(f"no such question: {', '.join(sorted(unknown))}; see --list")
        items = tuple(item for item in items if item.name in names)
    facts = machine.facts(simulated=not wanted.gpu)
    files = {item.name: results.file_name(item.name, facts) for item in items}
    kept = {item.name: results.read(wanted.kept / files[item.name]) for item in items}
    if wanted.list:
        sys.stdout.writelines(f"{item.name:16} {took(kept[item.name])}\n" for item in items)
        return 0
    answers: dict[str, dict[str, Any] | None] = {}
    with tempfile.TemporaryDirectory(prefix="bench-captures-") as captures:
        for number, item in enumerate(items, 1):
            sys.stderr.write(f"{number} of {len(items)}: {item.name}, {took(kept[item.name])}\n")
            answer = wanted.out / files[item.name]
            answer.unlink(missing_ok=True)
            subprocess.run(command(item, wanted, captures), stdout=subprocess.DEVNULL, check=False)
            answers[item.name] = results.read(answer)
            if wanted.keep and answer.exists():
                shutil.copy(answer, wanted.kept)
    return conclude(answers, kept, strict=wanted.strict)


def took(kept: dict[str, Any] | None) -> str:
    """Say how long a question took when its answer was kept."""
    return f"{kept['took_seconds']:.0f} s" if kept and "took_seconds" in kept else "not kept yet"


def command(item: Item, wanted: argparse.Namespace, captures: str) -> list[str]:
    """Give the command that asks a question."""
    made = [sys.executable, str(item.script), *item.words, "--captures", captures, "--out", str(wanted.out)]
    made += ["--runs", str(wanted.runs)] if wanted.runs else []
    return made + (["--shape", json.dumps(wanted.shape)] if wanted.shape else [])


def conclude(
    answers: Mapping[str, dict[str, Any] | None], kept: Mapping[str, dict[str, Any] | None], *, strict: bool
) -> int:
    """Print all answers, and then what became worse. 1 if one is missing or, if strict, something is worse."""
    worse = []
    for name, result in answers.items():
        if result is not None:
            worse += [verdict for verdict in question.report(name, result, kept[name]) if verdict.worse]
    missing = [name for name, result in answers.items() if result is None]
    lines = [f"failed: {name}" for name in missing]
    lines += [f"regression: {verdict.text}" for verdict in worse]
    sys.stdout.write("\n".join(lines or ["nothing became slower or larger than what is kept"]) + "\n")
    return 1 if missing or (strict and worse) else 0


if __name__ == "__main__":
    sys.exit(main())
