"""The hook's own check of restore images, built from its sources."""

from __future__ import annotations

import atexit
import functools
import shutil
import subprocess
import tempfile
from pathlib import Path

from helpers.source import NATIVE

PROGRAM = """
#include "restore/image.h"
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <cstring>
#include <vector>
int main(int count, char **paths) {
    for (int at = 1; at < count; at++) {
        std::ifstream stream(paths[at], std::ios::binary);
        std::vector<char> file{std::istreambuf_iterator<char>(stream), {}};
        auto *bytes = static_cast<uint8_t *>(aligned_alloc(4096, (file.size() + 4096) / 4096 * 4096));
        memcpy(bytes, file.data(), file.size());
        std::string reason = foundry::restore::check_image(bytes, file.size());
        puts(reason.empty() ? "ok" : reason.c_str());
        free(bytes);
    }
}
"""
SOURCES = ("restore/check.cpp", "restore/image.cpp", "hook/crc32c.cpp")


@functools.cache
def checker() -> Path | None:
    """Build the check; None where there is no compiler or the hook has no such part."""
    compiler = shutil.which("c++")
    if compiler is None or not all((NATIVE / name).is_file() for name in SOURCES):
        return None
    folder = Path(tempfile.mkdtemp(prefix="foundry-check-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "main.cpp").write_text(PROGRAM)
    program = folder / "check"
    command = [compiler, "-std=c++20", "-O1", f"-I{NATIVE}", str(folder / "main.cpp")]
    subprocess.run([*command, *(str(NATIVE / name) for name in SOURCES), "-o", str(program)], check=True)
    return program


def image_faults(*paths: Path) -> list[str]:
    """What the hook says of each image; "ok" if it would map it."""
    program = checker()
    assert program is not None
    return subprocess.run(
        [str(program), *map(str, paths)], check=True, capture_output=True, text=True
    ).stdout.splitlines()
