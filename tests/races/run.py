"""Run storms of threads, forks and shared memory with ThreadSanitizer in the hook; end with 1 if it reports a race.

    python tests/races/run.py [--build FOLDER] [--repeats 10] [--forks 1000]

Builds the hook with the sanitizer and the simulator without it (`FOUNDRY_SANITIZE=thread` in `foundry/native`). FOLDER
keeps the build for the next time. Needs a compiler with libtsan, cmake, and `setarch`: the sanitizer leaves no address
for the hook's range where addresses are random.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / "tests")]

from helpers.native_build import (  # noqa: E402
    PROGRAMS,
    base_environment,
    build_sanitized,
    compile_program,
    cxx,
    link_simulator,
    make_kernels,
    run_tool,
)
from native.fault_cases import build_images  # noqa: E402

from foundry import env, native  # noqa: E402

SOURCES = PROGRAMS / "hook_programs"
ROUNDS = 40
FOUND = 66
"""The sanitizer's exit status where it reported something."""


class Storms:
    """Compiled programs, and how they are run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.failures: list[str] = []
        self.suppressions = folder / "suppressions"
        self.suppressions.write_text("called_from_lib:libcuda.so.1\n")
        make_kernels(folder / "kernels.image", PROGRAMS / "sim_kernels.c")
        sources = [SOURCES / f"{name}.c" for name in ("thread_storm", "fork_storm", "sharing")]
        for source in (HERE / "canary.c", *sources):
            compile_program(
                folder / source.stem, [source], "-fsanitize=thread", "-O1", f"-I{SOURCES}", *link_simulator()
            )

    def run(
        self, program: str, *arguments: object, mode: str, says: str, code: int = 0, images: Path | None = None
    ) -> Path:
        """Run a program under the hook; note what it reports that is not wanted. Return its session folder."""
        session = Path(tempfile.mkdtemp(dir=self.folder))
        runtime = run_tool(cxx(), "-print-file-name=libtsan.so").strip()
        environment = base_environment() | {
            env.PRELOAD: f"{runtime} {native.hook_library()}", env.QUIET: "1", env.STATUS: str(session / "status"),
            "TSAN_OPTIONS": f"atexit_sleep_ms=0:exitcode={FOUND}:suppressions={self.suppressions}",
        }  # fmt: skip
        if mode:
            environment |= {env.MODE: mode, env.SPOOL: str(session), env.IMAGE: str(images or session)}
        command = ["setarch", "-R", str(self.folder / program), *map(str, arguments)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
        name = f"{program} {mode or 'without a mode'}"
        right = done.returncode == code and says in done.stdout + done.stderr
        print(f"{'passed' if right else 'FAILED'}  {name}", flush=True)
        if not right:
            self.failures.append(name)
            print(done.stdout + done.stderr, file=sys.stderr)
        return session


def storm(folder: Path, repeats: int, forks: int) -> list[str]:
    """Run all storms, and return those that failed."""
    storms = Storms(folder)
    storms.run("canary", mode="capture", says="data race", code=FOUND)
    kernels = folder / "kernels.image"
    captured = storms.run("thread_storm", kernels, ROUNDS, mode="capture", says="restored 0")
    images = build_images(captured, folder / "images")
    for _ in range(repeats):
        storms.run("thread_storm", kernels, ROUNDS, mode="capture", says="restored 0")
        storms.run("thread_storm", kernels, ROUNDS, mode="restore", says="restored 16", images=images)
        storms.run("sharing", "storm", mode="capture", says="rank 1 storm over")
    shutil.copy(images / "thread_storm-0.image", images / "fork_storm-0.image")
    for mode in ("", "capture", "restore"):
        storms.run("fork_storm", forks, mode=mode, says="failed 0", images=images)
    return storms.failures


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--build", type=Path)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--forks", type=int, default=1000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="foundry-races-") as temporary:
        folder = Path(temporary)
        built = build_sanitized((arguments.build or folder / "build").resolve(), "thread")
        os.environ[env.LIBRARY_DIRECTORY] = str(built)
        return 1 if storm(folder, arguments.repeats, arguments.forks) else 0


if __name__ == "__main__":
    sys.exit(main())
