"""The demo's server on the simulator, without a hook: what it prints is the yardstick for captures and restores."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from foundry import native

SERVER = Path(__file__).resolve().parent / "decode_server.py"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FOUNDRY_")}
    return {
        **kept,
        "LD_LIBRARY_PATH": str(native.simulator_directory()),
        "XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache")),
    }


def once(environment: dict[str, str], *more: str) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, SERVER, "--once", "--quiet", *more],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_graphs_give_the_tokens_that_eager_steps_give(environment: dict[str, str]) -> None:
    assert once(environment) == once(environment, "--eager")


def test_tokens_depend_on_the_prompt_and_on_nothing_else(environment: dict[str, str]) -> None:
    first = once({**environment, "FOUNDRY_SIM_SEED": "1"})
    assert first == once({**environment, "FOUNDRY_SIM_SEED": "2"})
    assert len({str(line["tokens"]) for line in first}) > len(first) // 2


class Client:
    """Speaks to a server that runs."""

    def __init__(self, address: str) -> None:
        self.address = address

    def get(self, path: str, body: bytes | None = None) -> tuple[int, dict[str, Any]]:
        try:
            with urllib.request.urlopen(self.address + path, body, timeout=20) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    def generate(self, prompt: str, tokens: int) -> list[int]:
        status, answer = self.get("/generate", json.dumps({"prompt": prompt, "tokens": tokens}).encode())
        assert status == 200, answer
        return list(answer["tokens"])


@pytest.fixture(scope="module")
def server(environment: dict[str, str]) -> Iterator[tuple[Client, subprocess.Popen[str]]]:
    process = subprocess.Popen(
        [sys.executable, SERVER, "--port", "0"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    address = process.stdout.readline().split()[-1]
    assert process.stdout.readline() == "ready\n"
    yield Client(address), process
    if process.poll() is None:
        process.kill()
        process.wait()


def test_a_server_answers_many_at_once_as_it_answers_one(
    server: tuple[Client, Any], environment: dict[str, str]
) -> None:
    client, _ = server
    assert client.get("/health") == (200, {"status": "ready"})
    lines = once(environment)
    with ThreadPoolExecutor(24) as threads:
        answers = list(threads.map(lambda line: client.generate(line["prompt"], len(line["tokens"])), lines))
    assert answers == [line["tokens"] for line in lines]


@pytest.mark.parametrize("body", [b"", b"x", b"[]", b'{"prompt": "a", "tokens": "many"}', b'{"tokens": 3}'])
def test_a_bad_request_is_told_so(server: tuple[Client, Any], body: bytes) -> None:
    assert server[0].get("/generate", body)[0] == 400


def test_another_path_is_not_found(server: tuple[Client, Any]) -> None:
    assert server[0].get("/nope")[0] == 404
    assert server[0].get("/nope", b"{}")[0] == 404


def test_prompts_may_be_empty_or_too_long(server: tuple[Client, Any]) -> None:
    assert len(server[0].generate("", 5)) == 5
    assert len(server[0].generate("x" * 1000, 5)) == 1
    assert len(server[0].generate("x", 1000)) == 127


def test_an_interrupt_ends_the_server_well(server: tuple[Client, subprocess.Popen[str]]) -> None:
    _, process = server
    process.send_signal(signal.SIGINT)
    begin = time.monotonic()
    assert process.wait(20) == 0
    assert time.monotonic() - begin < 10
