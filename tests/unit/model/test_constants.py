"""The numbers are those of the spool's header."""

from __future__ import annotations

import re
from enum import IntEnum

import pytest
from helpers.source import NATIVE

from foundry.model import Api, Arena, Format, Origin, PhaseKind, RangeKind

HEADER = (NATIVE / "abi" / "spool_format.h").read_text()


@pytest.mark.parametrize("kind", [Arena, Origin, RangeKind, Api, Format])
def test_each_number_is_that_of_the_header(kind: type[IntEnum]) -> None:
    prefix = {"RangeKind": "RANGE"}.get(kind.__name__, kind.__name__.upper())
    found = dict(re.findall(rf"FOUNDRY_{prefix}_(\w+) = (\d+)", HEADER))
    found.pop("COUNT", None)
    assert {name: int(number) for name, number in found.items()} == {each.name: int(each) for each in kind}


def test_phases_too() -> None:
    assert re.search(r"FOUNDRY_PHASE_SCRATCH = 1, FOUNDRY_PHASE_NAMED = 2", HEADER)
    assert [int(each) for each in PhaseKind] == [1, 2]
