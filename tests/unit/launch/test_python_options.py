from __future__ import annotations

import pytest

from foundry.launch import python_options


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("python -I serve.py", "-I"),
        ("/usr/bin/python3.12 -uE serve.py", "-E"),
        ("python3 -X dev -W error -S -m vllm", "-S"),
        ("python -Xdev -IS serve.py", "-I"),
        ("python3.13t --check-hash-based-pycs always -I x.py", "-I"),
        ("python serve.py -I", None),
        ("python -m vllm -E", None),
        ("python -c pass -S", None),
        ("python -X I serve.py", None),
        ("python -WI serve.py", None),
        ("python - -I", None),
        ("vllm serve -I", None),
        ("pythonish -I", None),
        ("python", None),
        ("", None),
    ],
)
def test_options_that_keep_the_adapters_out(command: str, option: str | None) -> None:
    assert python_options.keeps_adapters_out(command.split()) == option


@pytest.mark.parametrize(("value", "told"), [(None, True), ("1", True), ("0", False)])
def test_it_is_told_unless_nobody_wants_them(value: str | None, told: bool) -> None:
    around = {} if value is None else {"FOUNDRY_ADAPTERS": value}
    assert bool(python_options.note(["python", "-I", "x.py"], around)) == told
    assert python_options.note(["python", "x.py"], around) is None


@pytest.mark.parametrize("value", ["", "0", "1"])
def test_settings_that_say_something(value: str) -> None:
    assert python_options.warning({"FOUNDRY_ADAPTERS": value}) is None
    assert python_options.warning({}) is None


def test_a_setting_that_says_nothing_is_named() -> None:
    assert python_options.warning({"FOUNDRY_ADAPTERS": "off"}) == (
        "`FOUNDRY_ADAPTERS=off` is ignored, it is neither 0 nor 1: adapters for engines are loaded"
    )
