"""Capture and restore a program again and again, and let it replay, capture and update for long: does anything grow?

    python tests/soak/soak.py cycles|runs OUT_DIR [--sim] [--cycles N] [--at-once N] [--seconds LIMIT]
                                                        [--replays N] [--captures N]

`--sim` runs on the simulator, else on the GPU. OUT_DIR gets the logs, and `soak-cycles.json` or `soak-runs.json`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
PROGRAM = HERE / "program.py"
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))

from flat import BOUNDS, LEAST_SAMPLES, growing, rises  # noqa: E402

FOUNDRY = [sys.executable, "-m", "foundry"]
KEYS = 35
PATIENCE = 5.0
"""Seconds that an ended command's processes and device memory have to go."""
MARK = "SOAK_MARK"
CYCLE_BOUNDS = {
    "device_bytes": BOUNDS["device_bytes"], "captured_device_bytes": BOUNDS["device_bytes"],
    "restored_device_bytes": BOUNDS["device_bytes"], "cache_bytes": 0.5, "cache_files": 0.5,
}  # fmt: skip


class Place(NamedTuple):
    """Where commands run: with temporary files and caches of their own, and a mark that all their processes carry."""

    folder: Path
    simulated: bool
    mark: str

    @property
    def temporary(self) -> Path:
        return self.folder / "temporary"

    @property
    def cache(self) -> Path:
        return self.folder / "cache"

    @property
    def image(self) -> list[Any]:
        """Give the option that names the kernel's image."""
        return ["--image", self.folder / "kernels.image"] if self.simulated else []

    def environment(self) -> dict[str, str]:
        """Make the environment of a command."""
        named = {"TMPDIR": str(self.temporary), "XDG_CACHE_HOME": str(self.cache), MARK: self.mark}
        return {**os.environ, **named, "PYTHONDONTWRITEBYTECODE": "1"}

    def plain_environment(self) -> dict[str, str]:
        """Make the environment of a program without Foundry."""
        environment = self.environment()
        if self.simulated:
            from foundry import native

            environment["LD_LIBRARY_PATH"] = str(native.simulator_directory())
        return environment

    def program(self, kind: str, *options: Any) -> list[str]:
        """Give the command of the program."""
        return list(map(str, [sys.executable, PROGRAM, kind, *self.image, *options]))

    def foundry(self, command: str, *options: Any) -> list[str]:
        """Give the beginning of a command of Foundry."""
        return list(map(str, [*FOUNDRY, command, *(["--sim"] if self.simulated else []), "-q", *options, "--"]))

    def run(self, name: str, command: list[str], *, plain: bool = False) -> dict[str, Any]:
        """Run a command and return what it printed as JSON; AssertionError if it failed or left something."""
        environment = self.plain_environment() if plain else self.environment()
        with (self.folder / f"{name}.log").open("w") as log:
            done = subprocess.run(
                command, env=environment, cwd=self.folder, stdout=subprocess.PIPE, stderr=log, text=True, timeout=300
            )
        tail = (self.folder / f"{name}.log").read_text(errors="replace")[-3000:]
        assert done.returncode == 0, f"{name} ended with {done.returncode}:\n{tail}"
        left = eventually_none(lambda: marked(self.mark))
        assert not left, f"{name} left processes: {left}"
        result: dict[str, Any] = json.loads(done.stdout)
        return result


def marked(mark: str) -> list[str]:
    """Find living processes that carry a mark in their environment."""
    wanted, found = f"{MARK}={mark}".encode(), []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:200])
        except OSError:
            continue  # it is gone, or another user's
    return found


def eventually_none(look: Any) -> Any:
    """Look until nothing is found, for a while; return what was found last."""
    end = time.monotonic() + PATIENCE
    while True:
        found = look()
        if not found or time.monotonic() > end:
            return found
        time.sleep(0.02)


class Watch:
    """A process of its own that tells how much memory of the device is free."""

    def __init__(self, place: Place) -> None:
        environment = {**place.plain_environment(), MARK: "watch"}
        self._process = subprocess.Popen(
            place.program("watch"), env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)

    def used(self) -> int:
        """Return the device memory that is taken, as a number that grows with it."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return -int(self._process.stdout.readline())

    def settled(self, rest: int) -> int:
        """Return the same when it is back at rest, or does not come back for a while."""
        eventually_none(lambda: self.used() > rest)
        return self.used()


def make_place(folder: Path, simulated: bool) -> Place:
    """Make the folders, and the kernel's image for the simulator."""
    place = Place(folder.resolve(), simulated, f"{os.getpid()}-{time.monotonic_ns()}")
    for made in (place.folder, place.temporary, place.cache):
        made.mkdir(parents=True, exist_ok=True)
    if simulated:
        maker = ROOT / "foundry" / "native" / "sim" / "make_image.py"
        subprocess.run([sys.executable, maker, place.folder / "kernels.image", HERE / "kernels.c"], check=True)
    return place


def files_in(folder: Path) -> list[Path]:
    """List the files below a folder, but for those of sessions: the next start removes the last one."""
    return [path for path in folder.rglob("*") if path.is_file() and "sessions" not in path.parts]


class Lane:
    """One place in which cycle follows on cycle, with the first archive to compare with."""

    def __init__(self, folder: Path, simulated: bool) -> None:
        self.place = make_place(folder, simulated)
        self.first = self.place.folder / "first.fdry"
        self.identities: list[str] = []
        self.archive_bytes = 0
        self.wanted = self.place.run("plain", self.place.program("once"), plain=True)["digest"]

    def cycle(self) -> dict[str, float]:
        """Capture and restore once; AssertionError where something differs or stays."""
        place, path = self.place, self.place.folder / "cycle.fdry" if self.identities else self.first
        start = time.monotonic()
        captured = place.run("capture", place.foundry("capture", "-f", "-o", path) + place.program("once"))
        between = time.monotonic()
        restored = place.run("restore", place.foundry("restore", path) + place.program("once"))
        end = time.monotonic()
        assert captured["digest"] == restored["digest"] == self.wanted, "results differ from the plain run's"
        assert (captured["restored"], restored["restored"]) == (0, KEYS), restored["reasons"]
        self.compare(path)
        left = [entry.name for entry in place.temporary.iterdir()]
        assert not left, f"temporary files were left: {left}"
        sessions = list((place.cache / "foundry" / "sessions").iterdir())
        assert len(sessions) <= 1, "session folders pile up"
        cached = files_in(place.cache)
        return {
            "captured_device_bytes": captured["samples"][-1]["device_bytes"],
            "restored_device_bytes": restored["samples"][-1]["device_bytes"],
            "cache_bytes": sum(path.stat().st_size for path in cached), "cache_files": len(cached),
            "capture_seconds": between - start, "restore_seconds": end - between,
        }  # fmt: skip

    def compare(self, path: Path) -> None:
        """Two captures of the program are one: by their id, or at least by what `foundry diff` says."""
        from foundry import archive

        with archive.open_archive(path) as opened:
            identity, self.archive_bytes = opened.capture_id, opened.size
        if self.identities and identity not in self.identities:
            command = [*FOUNDRY, "diff", str(self.first), str(path)]
            told = subprocess.run(command, env=self.place.environment(), capture_output=True, text=True)
            assert told.returncode == 0, f"two captures differ:\n{told.stdout}"
        self.identities.append(identity)


def cycles(
    folder: Path, *, simulated: bool = False, count: int = 50, seconds: float = 1e9, at_once: int = 1
) -> dict[str, Any]:
    """Capture and restore so often, or until the time is up; AssertionError where something differs, stays or grows.

    `at_once` of them are done beside each other, and the device is looked at when all of these are done.
    """
    begin = time.monotonic()
    samples: list[dict[str, float]] = []
    bounds = {
        name: bound for name, bound in CYCLE_BOUNDS.items() if at_once == 1 or not name.endswith("ed_device_bytes")
    }
    with ThreadPoolExecutor(at_once) as pool:
        lanes = list(pool.map(lambda number: Lane(folder / f"lane-{number}", simulated), range(at_once)))
        with Watch(lanes[0].place) as watch:
            at_rest = rest = watch.used()
            while len(samples) < LEAST_SAMPLES or (
                len(samples) * at_once < count and time.monotonic() - begin < seconds
            ):
                done = list(pool.map(Lane.cycle, lanes))
                used = watch.settled(rest)
                rest = max(rest, used)
                samples.append({name: max(one[name] for one in done) for name in done[0]} | {"device_bytes": used})
    (folder / "samples.json").write_text(json.dumps(samples, indent=1))
    problems = growing(samples, bounds)
    assert not problems, "; ".join(problems)
    identities = {identity for lane in lanes for identity in lane.identities}
    return {
        "simulated": simulated, "cycles": len(samples) * at_once, "asked": count, "at_once": at_once, "keys": KEYS,
        "seconds": round(time.monotonic() - begin, 1), "capture_ids": len(identities),
        "archive_bytes": lanes[0].archive_bytes, "bounds": bounds, "rises": rises(samples, list(bounds)),
        "device_bytes_beyond_rest": samples[-1]["device_bytes"] - at_rest, "first": samples[0], "last": samples[-1],
    }  # fmt: skip


def runs(folder: Path, *, simulated: bool = False, replays: int = 10_000, captures: int = 2_000) -> dict[str, Any]:
    """Let one process replay, capture and update for long; AssertionError for a wrong result, or something that grows.

    Replays are done in a restored process; captures and updates in a captured one, in a restored one, and in a plain
    one. All results are compared with the processor's, and the modes' with each other. A hooked process may rise by the
    bound more than the plain one, whose driver is not ours to judge, unless it is the simulator.
    """
    place = make_place(folder, simulated)
    path = place.folder / "runs.fdry"
    place.run("capture", place.foundry("capture", "-f", "-o", path) + place.program("once"))
    capture = place.foundry("capture", "-f", "-o", place.folder / "long.fdry")
    restore = place.foundry("restore", "--allow", "mismatch-arguments", path)
    told: dict[str, Any] = {}
    problems: list[str] = []
    for kind, count in (("replays", replays), ("captures", captures), ("updates", captures)):
        digests = {}
        bounds = dict(BOUNDS)
        for mode, prefix in (("plain", []), ("capture", capture), ("restore", restore)):
            if (kind, mode) == ("replays", "capture"):
                continue
            name = f"{kind}-{mode}"
            result = place.run(name, prefix + place.program(kind, "--count", count), plain=mode == "plain")
            assert result["restored"] == (KEYS if mode == "restore" else 0), result["reasons"]
            digests[mode] = result["digest"]
            grown = rises(result["samples"], list(BOUNDS))
            if simulated or mode != "plain":
                problems += [f"{name}: {problem}" for problem in growing(result["samples"], bounds)]
            if mode == "plain":
                bounds = {name: bound + max(0.0, grown[name]) for name, bound in BOUNDS.items()}
            told[name] = {
                "count": count, "seconds": round(result["seconds"], 3),
                "rises": rises(result["samples"], [*BOUNDS, "spool_bytes"]), "last": result["samples"][-1],
            }  # fmt: skip
        assert len(set(digests.values())) == 1, f"{kind}: results differ between plain, captured and restored"
    (folder / "runs.json").write_text(json.dumps(told, indent=1))
    assert not problems, "; ".join(problems)
    return {"simulated": simulated, "keys": KEYS, "bounds": BOUNDS, "runs": told}


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("what", choices=("cycles", "runs"))
    parser.add_argument("out", type=Path)
    parser.add_argument("--sim", action="store_true")
    parser.add_argument("--cycles", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no cycle after so long")
    parser.add_argument("--at-once", type=int, default=1, help="cycles beside each other")
    parser.add_argument("--replays", type=int, default=10_000)
    parser.add_argument("--captures", type=int, default=2_000, help="captures, and updates")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="soak-") as temporary:
        folder = Path(temporary)
        if arguments.what == "cycles":
            told = cycles(
                folder, simulated=arguments.sim, count=arguments.cycles, seconds=arguments.seconds,
                at_once=arguments.at_once,
            )  # fmt: skip
        else:
            told = runs(folder, simulated=arguments.sim, replays=arguments.replays, captures=arguments.captures)
    arguments.out.mkdir(parents=True, exist_ok=True)
    text = json.dumps(told, indent=1)
    (arguments.out / f"soak-{arguments.what}.json").write_text(text + "\n")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
