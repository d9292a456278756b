from __future__ import annotations

import pytest

from foundry.store.key import CommandKey, command_key, readable


def key(*arguments: str, executable: str = "/usr/bin/python", **changes: object) -> CommandKey:
    given: dict[str, object] = {"folder": "/work", "gpus": ["NVIDIA H200"], "environment": {}, "salt": b"s"}
    given.update(changes)
    return command_key(executable, ["python", *arguments], **given)  # type: ignore[arg-type]


SAME = key("serve.py", "--port", "80")


def test_the_same_command_has_the_same_key() -> None:
    assert key("serve.py", "--port", "80") == SAME
    assert key("serve.py", "--port", "80", gpus=["NVIDIA H200", "NVIDIA H200"]) == SAME
    assert key("serve.py", "--port", "80", environment={"PATH": "/x", "HF_TOKEN": "y"}) == SAME


@pytest.mark.parametrize(
    "other",
    [
        key("serve.py", "--port", "81"),
        key("serve.py", "--port 80"),
        key("serve.py", "--port", "80", ""),
        key("serve.py", "--port", "80", executable="/venv/bin/python"),
    ],
)
def test_another_command_is_of_another_family(other: CommandKey) -> None:
    assert other.name != SAME.name
    assert other.family != SAME.family


@pytest.mark.parametrize(
    "other",
    [
        key("serve.py", "--port", "80", folder="/elsewhere"),
        key("serve.py", "--port", "80", gpus=["NVIDIA H100"]),
        key("serve.py", "--port", "80", gpus=[]),
        key("serve.py", "--port", "80", environment={"RANK": "0"}),
        key("serve.py", "--port", "80", environment={"WORLD_SIZE": "2"}),
    ],
)
def test_the_same_command_elsewhere_is_of_the_same_family(other: CommandKey) -> None:
    assert other.name != SAME.name
    assert other.family == SAME.family


def test_secrets_count_but_only_through_the_salt() -> None:
    one = key("serve.py", "--api-key", "one")
    assert one != key("serve.py", "--api-key", "two")
    assert one == key("serve.py", "--api-key", "one")
    assert one != key("serve.py", "--api-key", "one", salt=b"t")
    assert key("serve.py", "--port", "80", salt=b"t") == SAME


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["/usr/bin/python3.11", "/x/serve.py"], "serve"),
        (["/usr/bin/python", "-u", "-m", "vllm.entrypoints"], "vllm.entrypoints"),
        (["/usr/bin/python", "-c", "print()"], "python"),
        (["/bin/sh", "-c", "x"], "sh"),
        (["/opt/my server/run it"], "run_it"),
        (["/x/vllm", "serve"], "vllm"),
        (["/x/" + "a" * 200], "a" * 40),
        (["/x/é"], "_"),
    ],
)
def test_names_can_be_read(words: list[str], name: str) -> None:
    assert readable(words) == name


def test_a_name_is_a_plain_file_name() -> None:
    assert "/" not in key("../../x").name
    assert not key("../../x").name.startswith(".")
    assert not key("x", executable="/x/..").name.startswith("..")
