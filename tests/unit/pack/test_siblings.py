"""Processes of one name that ran beside each other are refused, whatever number they have."""

from __future__ import annotations

import pytest

from foundry.pack.siblings import name_of


@pytest.mark.parametrize(
    ("role", "name"),
    [
        ("python3.12-0", "python3.12"),
        ("python3.12-11", "python3.12"),
        ("python3.12.0a1b2c3d-1", "python3.12.0a1b2c3d"),
        ("Process-1-0", "Process-1"),
        ("rank-0", "rank-0"),
        ("rank-0.1", "rank-0"),
        ("rank-10", "rank-10"),
        ("rank-3.Worker-0-0", "rank-3.Worker-0"),
        ("rank-3.Worker-1", "rank-3.Worker"),
    ],
)
def test_the_name_of_a_role_is_all_but_its_number(role: str, name: str) -> None:
    assert name_of(role) == name
