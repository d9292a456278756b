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
