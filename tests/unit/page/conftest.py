from __future__ import annotations

from pathlib import Path

import pytest
from helpers.page_archives import rich_archive


@pytest.fixture(scope="session")
def rich(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive with a bit of everything."""
    return rich_archive(tmp_path_factory.mktemp("rich"))
