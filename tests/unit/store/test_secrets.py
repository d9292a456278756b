from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foundry.store.secrets import MASK, masked, names_secret


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--api-key", "x1"], ["--api-key", MASK]),
        (["--token=x1"], [f"--token={MASK}"]),
        (["HF_TOKEN=x1", "serve"], [f"HF_TOKEN={MASK}", "serve"]),
        (["--hf-token", "x1", "--port", "80"], ["--hf-token", MASK, "--port", "80"]),
        (["--apiKey", "x1"], ["--apiKey", MASK]),
        (["--key", "x1"], ["--key", MASK]),
        (["--password="], [f"--password={MASK}"]),
        (["--api-key", "-starts-with-dash"], ["--api-key", MASK]),
        (["--db", "postgres://me:pass@host/x"], ["--db", f"postgres://me:{MASK}@host/x"]),
        (["-H", "Authorization: Bearer abc"], ["-H", f"Authorization: {MASK}"]),
        (["hf_abcdefghijkl"], [MASK]),
        (["x", "sk-abcdefghijkl"], ["x", MASK]),
    ],
)
def test_secrets_are_masked(arguments: list[str], expected: list[str]) -> None:
    assert masked(arguments) == expected


@pytest.mark.parametrize(
    "arguments",
    [
        ["--tokenizer", "gpt2"],
        ["--max-tokens", "5"],
        ["--eos-token", "</s>"],
        ["--tokenizer-mode=auto"],
        ["--key-cache", "x"],
        ["--num-keys", "3"],
        ["--token"],
        ["--api-key", "--port", "80"],
        ["serve", "meta-llama/Llama", "--port=80"],
        ["-c", "print('a=b')"],
        ["http://host:80/x"],
    ],
)
def test_other_words_stay(arguments: list[str]) -> None:
    assert masked(arguments) == arguments


@pytest.mark.parametrize(
    "name", ["TOKEN", "--aws-secret-access-key", "HUGGING_FACE_HUB_TOKEN", "--ssl-keyfile-password"]
)
def test_names(name: str) -> None:
    assert names_secret(name)


@given(st.text(min_size=1).filter(lambda text: not text.startswith("--")), st.sampled_from(["--api-key", "--token"]))
def test_no_value_of_a_secret_option_survives(value: str, option: str) -> None:
    assert masked(["serve", option, value]) == ["serve", option, MASK]


@given(st.lists(st.text()))
def test_any_command_line_keeps_its_length(arguments: list[str]) -> None:
    assert len(masked(arguments)) == len(arguments)
