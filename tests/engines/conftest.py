"""What the tests of the C engine share: it is built once."""

from __future__ import annotations

import pytest
from helpers.tinyllm import PROMPTS, Engine, Foundry, generation


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    return Engine(tmp_path_factory.mktemp("tinyllm"))


@pytest.fixture(scope="session")
def captured(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Foundry:
    """Foundry with an archive: of a run that made a few tokens only, as the graphs are made before the first one."""
    foundry = Foundry(tmp_path_factory.mktemp("foundry") / "work", engine)
    options = generation(PROMPTS[:1], 4, 0)
    result = foundry.capture(*options)
    assert result.tokens() == engine.reference(*options).tokens()
    return foundry
