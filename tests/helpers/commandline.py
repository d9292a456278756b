"""Runs `foundry` as a process, with a stand-in for the hook: a library that does nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import foundry

FOUNDRY = Path(__file__).with_name("run_foundry.py")
PROGRAM = Path(__file__).with_name("fake_program.py")
STAND_IN = """
#include <stdio.h>
#include <string.h>
int foundry_capi_version(void) { return 1; }
static char reason[200] = "";
const char *foundry_reason(void) { return reason; }
const char *foundry_table_row(unsigned i) { return i == 0 ? "init cuInit 2000 record own" : NULL; }
int foundry_image_check(const char *path) {
    char magic[8] = {0};
    FILE *file = fopen(path, "rb");
    if (!file || fread(magic, 1, 8, file) != 8 || memcmp(magic, "FDRYIMG1", 8)) {
        snprintf(reason, sizeof reason, "not an image");
        if (file) fclose(file);
        return -1;
    }
    fclose(file);
    return 0;
}
"""


def build_stand_in(folder: Path) -> Path:
    """A library folder with a hook that does nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / "hook.c"
    source.write_text(STAND_IN)
    library = folder / "libfoundry_hook.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    return folder


class CommandLine:
    """`foundry` with a cache, a home and a library folder of its own."""

    def __init__(self, folder: Path, libraries: Path) -> None:
        self.folder = folder
        self.cache = folder / "cache"
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("FOUNDRY_") and name not in ("LD_PRELOAD", "COLUMNS", "RANK", "WORLD_SIZE")
        }
        self.environment.update(
            HOME=str(folder / "home"),
            XDG_CACHE_HOME=str(self.cache),
            FOUNDRY_LIBRARY_DIR=str(libraries),
            PYTHONPATH=str(Path(foundry.__file__).parents[1]),
            TMPDIR=str(folder / "tmp"),
            FOUNDRY_TRACEBACK="1",
            TERM="dumb",
        )
        (folder / "home").mkdir()
        (folder / "tmp").mkdir()
        self.work = folder / "work"
        self.work.mkdir()

    @property
    def store(self) -> Path:
        return self.cache / "foundry"

    def words(self, *arguments: object) -> list[str]:
        return [sys.executable, str(FOUNDRY), *map(str, arguments)]

    def run(
        self, *arguments: object, environment: Mapping[str, str] | None = None, **options: object
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.words(*arguments),
            env={**self.environment, **(environment or {})},
            cwd=options.pop("cwd", self.work),  # type: ignore[call-overload]
            capture_output=True,
            text=True,
            timeout=60,
            stdin=subprocess.DEVNULL,
            check=False,
            **options,
        )

    def start(self, *arguments: object, **options: object) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.words(*arguments),
            env=self.environment,
            cwd=self.work,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,  # type: ignore[call-overload]
        )

    def archives(self) -> list[Path]:
        return sorted(self.store.glob("*.fdry"))

    def left_overs(self) -> list[str]:
        """Session folders that were not removed. Links to libraries in a folder with a blank in its name are kept."""
        names = [path.name for path in (self.folder / "tmp").iterdir()]
        return [name for name in names if not name.startswith("foundry-links-")]


def program(*arguments: object) -> list[str]:
    """The fake program as a command."""
    return [sys.executable, str(PROGRAM), *map(str, arguments)]


def wait_until(condition: Callable[[], object], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def read_until(stream: object, wanted: str) -> str:
    """Lines of a text stream up to the one that holds `wanted`."""
    seen = ""
    for line in stream:  # type: ignore[attr-defined]
        seen += line
        if wanted in line:
            return seen
    raise AssertionError(f"{wanted!r} did not come, only {seen!r}")


def processes_with(marker: str) -> list[int]:
    """Living processes whose command line holds the marker, without this one."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            words = (entry / "cmdline").read_bytes()
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if marker.encode() in words and state not in "ZX":
            found.append(int(entry.name))
    return found


def shell(text: str) -> list[str]:
    return ["sh", "-c", text]
