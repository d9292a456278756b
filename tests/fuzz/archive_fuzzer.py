"""A fuzz target for both readers of archives, guided by coverage (atheris, a libFuzzer for Python).

    python tests/fuzz/archive_fuzzer.py CORPUS [-max_total_time=1800] [-rss_limit_mb=2048] ...

Half of the new inputs are libFuzzer's own changes of the bytes. For the others an archive is taken apart, the contents
of a section are changed, and all checksums are made to fit again. What is refused must be refused with a code, by both
readers alike; everything else is a crash.
"""

from __future__ import annotations

import random
import sys
import tempfile
import zlib
from dataclasses import replace
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

PARTS = ["foundry.archive", "foundry.model", "foundry.verify", "foundry.binary", "minireader"]
with atheris.instrument_imports(include=PARTS):
    # Parts that are imported when they are called would be too late to be instrumented.
    from robustness import tools, verdicts

    import foundry.archive.brief
    import foundry.archive.processes
    import foundry.archive.reader
    import foundry.verify.deep  # noqa: F401

from helpers.archive_builder import build  # noqa: E402
from robustness import changes, mutants  # noqa: E402

FOLDER = tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None)
INPUT = Path(FOLDER.name, "input.fdry")
VECTORS = mutants.vectors()
VERIFIED_ONE_IN = 4


def test_one_input(data: bytes) -> None:
    """Give the bytes to the readers, and some to `verify`."""
    INPUT.write_bytes(data)
    ours = verdicts.of_reader(INPUT)
    verdicts.of_summary(INPUT)
    wrong = verdicts.contradiction(ours, verdicts.of_opened(INPUT), verdicts.of_small(data))
    if not wrong and zlib.crc32(data) % VERIFIED_ONE_IN == 0:
        wrong = tools.check(INPUT, ours == verdicts.ACCEPTED)
    if wrong:
        raise AssertionError(wrong)


def changed(data: bytes, largest: int, seed: int) -> bytes:
    """Give the bytes with a change: libFuzzer's, or one of a section's content with all around it made to fit."""
    rng = random.Random(seed)
    kind = rng.randrange(8)
    if kind < 3:
        return bytes(atheris.Mutate(data, largest))
    archive = mutants.taken_apart(data) or rng.choice(VECTORS)
    pieces = list(archive.pieces)
    if kind < 6 and pieces:
        at = rng.randrange(len(pieces))
        if kind < 5:
            content = changes.of_content(rng, pieces[at].kind, pieces[at].data)
        else:
            content = bytes(atheris.Mutate(pieces[at].data, len(pieces[at].data) + 64))
        pieces[at] = replace(pieces[at], data=content, stored=None)
        found = build(pieces, major=archive.major, minor=archive.minor)
    else:
        found = rng.choice(mutants.STRATEGIES)(rng, archive, VECTORS)
    return found if len(found) <= largest else data


def main() -> None:
    """Run libFuzzer."""
    atheris.Setup(sys.argv, test_one_input, custom_mutator=changed)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
