"""Fixtures of the command line tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.commandline import CommandLine, build_stand_in


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_stand_in(tmp_path_factory.mktemp("libraries"))


@pytest.fixture
def foundry_command(tmp_path: Path, libraries: Path) -> CommandLine:
    return CommandLine(tmp_path, libraries)
