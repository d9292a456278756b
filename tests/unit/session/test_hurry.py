"""What Python and numpy are told while somebody waits."""

from __future__ import annotations

import gc
import os
import subprocess
import sys

import pytest

from foundry.session.hurry import hurried

VARIABLE = "OPENBLAS_NUM_THREADS"
COUNT = """
import os
from foundry.session.hurry import hurried
with hurried():
    import numpy
print(len(os.listdir("/proc/self/task")))
"""


@pytest.mark.parametrize("given", [None, "3", ""])
@pytest.mark.parametrize("collecting", [True, False])
def test_all_is_as_before_at_the_end(monkeypatch: pytest.MonkeyPatch, given: str | None, collecting: bool) -> None:
    if given is None:
        monkeypatch.delenv(VARIABLE, raising=False)
    else:
        monkeypatch.setenv(VARIABLE, given)
    before, interval = dict(os.environ), sys.getswitchinterval()
    if not collecting:
        gc.disable()
    try:
        with pytest.raises(KeyError), hurried():
            assert os.environ[VARIABLE] == (given or "1")
            assert not gc.isenabled()
            assert sys.getswitchinterval() < interval
            raise KeyError
        assert gc.isenabled() == collecting
    finally:
        gc.enable()
    assert dict(os.environ) == before
    assert sys.getswitchinterval() == interval


def test_numpy_starts_no_threads() -> None:
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    done = subprocess.run([sys.executable, "-c", COUNT], env=environment, check=True, stdout=subprocess.PIPE)
    assert int(done.stdout) == 1
