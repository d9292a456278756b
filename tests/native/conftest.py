"""What the native tests share: sanitized libraries if asked for; the program of the restore tests, and kernels."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.native_build import PROGRAMS, build_sanitized, compile_program, make_kernels
from native.restore_build import Outcome, run_hooked
from native.restore_scene import (
    MEMORY,
    Scene,
)

from foundry import env

Run = Callable[..., Outcome]


def pytest_configure(config: pytest.Config) -> None:
    """Build with sanitizers, before any test module asks for the libraries."""
    if os.environ.get("FOUNDRY_SANITIZE", "0") not in ("", "0"):
        folder = tempfile.TemporaryDirectory(prefix="foundry-sanitized-")
        config.add_cleanup(folder.cleanup)
        os.environ[env.LIBRARY_DIRECTORY] = str(build_sanitized(Path(folder.name)))


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_program(tmp_path_factory.mktemp("program") / "program", [PROGRAMS / "restore_program.cpp"])


@pytest.fixture(scope="session")
def kernels_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("kernels") / "kernels.image"
    make_kernels(path, PROGRAMS / "restore_kernels.c")
    return path


@pytest.fixture
def kernels(kernels_file: Path) -> bytes:
    return kernels_file.read_bytes()


@pytest.fixture
def run(program: Path, tmp_path: Path) -> Run:
    def run_scene(scene: Scene | None, *commands: str, **environment: str) -> Outcome:
        if scene is not None:
            scene.file.write(tmp_path)
        return run_hooked(program, tmp_path, list(commands), **{"FOUNDRY_SIM_MEMORY": str(MEMORY), **environment})

    return run_scene
