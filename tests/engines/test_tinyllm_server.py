"""The C engine's server: plain, with graphs, and restored; and what it answers to requests that cannot be."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from helpers.native_build import base_environment
from helpers.tinyllm import CONTEXT, KEYS, PROMPTS, SWITCH, Engine, Foundry, generation

READY = {"status": "ready"}


class Client:
    """Speaks to a server that runs."""

    def __init__(self, process: subprocess.Popen[str], address: str) -> None:
        self.process = process
        self.address = address

    def ask(self, path: str, body: bytes | None = None) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(self.address + path, body, timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def generate(self, prompt: str, **more: Any) -> dict[str, Any]:
        status, text = self.ask("/generate", json.dumps({"prompt": prompt, **more}).encode())
        assert status == 200, text
        return dict(json.loads(text))

    def metrics(self) -> dict[str, int]:
        status, text = self.ask("/metrics")
        assert status == 200
        return {name: int(value) for name, value in re.findall(r"^tinyllm_(\w+)_total (\d+)$", text, re.MULTILINE)}

    def raw(self, *parts: bytes) -> bytes:
        host, port = self.address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=20) as connection:
            for part in parts:
                connection.sendall(part)
            answer = b""
            while piece := connection.recv(65536):
                answer += piece
        return answer


@contextmanager
def serving(process: subprocess.Popen[str]) -> Iterator[Client]:
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("listening on http://127.0.0.1:"), line
        yield Client(process, line.split()[-1])
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture(scope="module", params=["eager", "graphs", "captured", "restored"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def client(
    kind: str, request: pytest.FixtureRequest, engine: Engine, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Client]:
    environment, words = base_environment(), engine.words("--port", "0")
    own = tmp_path_factory.mktemp("server") / "server.fdry"
    if kind in ("captured", "restored"):
        captured: Foundry = request.getfixturevalue("captured")
        environment = captured.commands.environment
        capturing = ["capture", "--sim", "-o", own, "--", *words]
        words = captured.commands.words(*(capturing if kind == "captured" else captured.restoring(*words)))
    process = subprocess.Popen(
        words,
        env=environment if kind == "eager" else {**environment, SWITCH: "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    with serving(process) as client:
        yield client
        metrics = client.metrics()
        graphs = metrics["graphs_captured"], metrics["graphs_restored"]
        expected = {"eager": (0, 0), "graphs": (KEYS, 0), "captured": (KEYS, 0), "restored": (0, KEYS)}
        assert graphs == expected[kind]
        assert metrics["graphs_replayed"] == (metrics["passes"] if kind != "eager" else 0)
        assert kind != "restored" or metrics["hook_stream_captures"] == 0
        held = re.search(
            r"^# TYPE tinyllm_graphs_held gauge\ntinyllm_graphs_held (\d+)$", client.ask("/metrics")[1], re.M
        )
        assert held
        assert int(held[1]) == (0 if kind == "eager" else KEYS)
        assert [metrics[name] for name in ("graphs_updated", "updates_refused", "caches_emptied")] == [0, 0, 0]
    assert own.exists() is (kind == "captured")


@pytest.mark.parametrize("temperature", [0, 0.9], ids=["greedy", "sampled"])
@pytest.mark.parametrize("tokens", [20, 530])
def test_many_requests_at_once_are_answered_as_one_is(
    client: Client, engine: Engine, temperature: float, tokens: int
) -> None:
    before = client.metrics()
    expected = engine.reference(*generation(PROMPTS + PROMPTS[:2], tokens, temperature))

    def ask(index: int) -> dict[str, Any]:
        wanted = {"max_tokens": tokens, "seed": 5 + index, "temperature": temperature, "ignore_end": True}
        return client.generate(expected.lines[index]["prompt"], **wanted)

    with ThreadPoolExecutor(6) as threads:
        answers = list(threads.map(ask, range(6)))
    assert answers == [{"tokens": line["tokens"], "text": line["text"]} for line in expected.lines]
    after = client.metrics()
    assert after["tokens"] - before["tokens"] == 6 * tokens
    assert after["passes"] - before["passes"] < 6 * tokens


def test_a_server_that_listens_is_ready(client: Client) -> None:
    status, text = client.ask("/health")
    assert (status, json.loads(text)) == (200, READY)


def test_a_request_need_not_say_more_than_its_prompt(client: Client, engine: Engine) -> None:
    (line,) = engine.run("--device", "cpu", "--once", "--statistics", "--prompt", "A key").lines
    assert client.generate("A key") == {"tokens": line["tokens"], "text": line["text"]}
    assert len(client.generate("")["tokens"]) <= 16


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "send"),
        (b"{", "send"),
        (b"[]", "send"),
        (b'{"prompt": 1}', "send"),
        (b'{"prompt": "x"} {}', "send"),
        (b"[" * 100000, "send"),
        (b'{"prompt": "x", "max_tokens": 0}', "max_tokens"),
        (b'{"prompt": "x", "max_tokens": 1.5}', "max_tokens"),
        (b'{"prompt": "x", "max_tokens": "9"}', "max_tokens"),
        (b'{"prompt": "x", "seed": -1}', "seed"),
        (b'{"prompt": "x", "temperature": -0.1}', "temperature"),
        (b'{"prompt": "x", "temperature": NaN}', "send"),
        (b'{"prompt": "x", "ignore_end": 1}', "ignore_end"),
        (json.dumps({"prompt": "x", "max_tokens": CONTEXT}).encode(), "longer than the context"),
        (json.dumps({"prompt": "\u00e9" * CONTEXT}).encode(), "longer than the context"),
        (json.dumps({"prompt": "the" * 340000}).encode(), "longer than the context"),
    ],
)
def test_a_bad_request_is_told_what_is_wrong(client: Client, body: bytes, message: str) -> None:
    status, text = client.ask("/generate", body)
    assert status == 400
    assert message in json.loads(text)["error"]


def test_paths_and_methods_that_are_not_there(client: Client) -> None:
    assert client.ask("/nope")[0] == 404
    assert client.ask("/generate")[0] == 405
    assert client.ask("/health", b"{}")[0] == 405


HEAD = b"POST /generate HTTP/1.1\r\nHost: x\r\n"


@pytest.mark.parametrize(
    ("parts", "status"),
    [
        ([b"nonsense\r\n\r\n"], 400),
        ([b"GET /health HTTP/2\r\n\r\n"], 505),
        ([HEAD + b"Content-Length: -1\r\n\r\n"], 400),
        ([HEAD + b"Content-Length: 1048577\r\n\r\n"], 413),
        ([HEAD + b"Content-Length: 99999999999999999999\r\n\r\n"], 413),
        ([HEAD + b"Transfer-Encoding: chunked\r\n\r\n"], 411),
        ([b"GET /" + b"x" * 20000], 431),
        ([b"GET /hea", b"lth?x=1 HTTP/1.0\r\n\r", b"\n"], 200),
        ([HEAD + b"content-length:  15\r\n\r\n", b'{"prompt"', b': "x"}'], 200),
        ([HEAD + b'Content-Length: 26\r\n\r\n{"prompt": "\\ud83d\\ude00"}'], 200),
    ],
)
def test_requests_as_bytes(client: Client, parts: list[bytes], status: int) -> None:
    answer = client.raw(*parts)
    assert answer.startswith(f"HTTP/1.1 {status} ".encode())
    head, _, body = answer.partition(b"\r\n\r\n")
    assert f"Content-Length: {len(body)}".encode() in head
    json.loads(body)


def test_clients_that_go_away_do_no_harm(client: Client) -> None:
    host, port = client.address.removeprefix("http://").split(":")
    body = json.dumps({"prompt": "x", "max_tokens": 600}).encode()
    for data in (b"", b"GET", HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body):
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(data)
    assert json.loads(client.ask("/health")[1]) == READY


def test_a_port_that_is_taken_is_named(client: Client, engine: Engine) -> None:
    port = client.address.rpartition(":")[2]
    done = engine.start("--device", "cpu", "--port", port)
    assert done.returncode == 1
    assert done.stderr == f"tinyllm: cannot listen on 127.0.0.1 port {port}: Address already in use\n"
