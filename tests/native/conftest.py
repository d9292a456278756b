"""What the restore tests share: the program they run, and kernels for the simulator."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from native.restore_build import HERE, Outcome, compile_program, make_kernels, run_hooked
from native.restore_scene import (
    MEMORY,
    Scene,
)

Run = Callable[..., Outcome]


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_program(tmp_path_factory.mktemp("program") / "program", [HERE / "restore_program.cpp"])


@pytest.fixture(scope="session")
def kernels_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("kernels") / "kernels.image"
    make_kernels(path, HERE / "restore_kernels.c")
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
