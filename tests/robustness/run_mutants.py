"""Gives numbered mutants to every reader and tool, under limits of memory and time, and tells what went wrong.

    python run_mutants.py --seed 1 --first 0 --count 1000 [--keep FOLDER]

One JSON object on stdout: how many there were by strategy and by verdict, and the failures. A failure's number makes
the same mutant again: `--first NUMBER --count 1`; `--keep` writes it to a file.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import sys
import tempfile
import traceback
from collections import Counter
from pathlib import Path
from types import FrameType

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from robustness import tools, verdicts
from robustness.mutants import VECTORS, Mutants

SECONDS_EACH = 20
MEMORY = 768 << 20
"""Address space beyond what the modules took. A section may be of 1 GiB, so that a bomb dies of it."""
MOST_FAILURES = 25
READ_TWICE_ONE_IN = 4
VERIFIED_ONE_IN = 8
SHOWN_ONE_IN = 20
COMPARED = VECTORS / "rich.fdry"


class TooSlowError(BaseException):
    """A mutant took longer than any may. No handler of an ordinary exception may swallow it."""


def limit_memory() -> None:
    """Bound the address space."""
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + MEMORY, taken + MEMORY))


def limit_time() -> None:
    """Have an alarm end what hangs."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise TooSlowError(f"more than {SECONDS_EACH} s")

    signal.signal(signal.SIGALRM, ring)


def tried(number: int, data: bytes, path: Path) -> tuple[str, str]:
    """Give the verdict on a mutant, and what is wrong, if anything. What takes longer is done with some only."""
    twice, verified, shown = (number % one_in == 0 for one_in in (READ_TWICE_ONE_IN, VERIFIED_ONE_IN, SHOWN_ONE_IN))
    path.write_bytes(data)
    signal.alarm(SECONDS_EACH)
    try:
        ours = verdicts.of_reader(path)
        verdicts.of_summary(path)
        opened = verdicts.of_opened(path) if twice else ours
        wrong = verdicts.contradiction(ours, opened, verdicts.of_small(data))
        accepted = ours == verdicts.ACCEPTED
        if not wrong and verified:
            wrong = tools.check(path, accepted)
        if not wrong and shown and accepted:
            tools.describe(path)
            tools.page(path)
            wrong = tools.compare(path, COMPARED)
        return ours, wrong
    except (Exception, TooSlowError) as error:
        signal.alarm(0)
        place = traceback.extract_tb(error.__traceback__)[-1]
        return "failed", f"{type(error).__name__}: {str(error)[:200]} ({Path(place.filename).name}:{place.lineno})"
    finally:
        signal.alarm(0)


def main() -> None:
    """Try the mutants."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--one-core", type=int, help="which, of those that there are, over and over")
    wanted = parser.parse_args()
    mutants = Mutants(wanted.seed)
    strategies: Counter[str] = Counter()
    found: Counter[str] = Counter()
    failures: list[dict[str, object]] = []
    if wanted.one_core is not None:
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[wanted.one_core % len(cores)]})
    limit_time()
    limit_memory()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        path = Path(folder, "mutant.fdry")
        for number in range(wanted.first, wanted.first + wanted.count):
            strategy, data = mutants.mutant(number)
            verdict, wrong = tried(number, data, path)
            strategies[strategy] += 1
            found[verdict] += 1
            if wrong and len(failures) < MOST_FAILURES:
                failures.append({"number": number, "strategy": strategy, "verdict": verdict, "wrong": wrong})
                if wanted.keep:
                    (wanted.keep / f"mutant-{wanted.seed}-{number}.fdry").write_bytes(data)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    json.dump({"strategies": strategies, "verdicts": found, "failures": failures, "peak_bytes": peak}, sys.stdout)


if __name__ == "__main__":
    main()
