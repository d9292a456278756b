#!/usr/bin/env python3
"""A small decode server: greedy tokens over HTTP, a CUDA graph for each of several batch sizes.

    decode_server.py [--port 8000]     serve GET /health and POST /generate {"prompt": "...", "tokens": 16} on 127.0.0.1
    decode_server.py --once            print the tokens of fixed prompts, in batches of several sizes, and end

It knows nothing of a hook: run it plainly, under `foundry capture`, or under `foundry restore`.
"""

from __future__ import annotations

import argparse
import json
import queue
import signal
import sys
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from decode_model import BATCH_SIZES, POSITIONS, Model

from foundry import graphs

WAVES = (1, 2, 3, 7, 16)
LONGEST_BODY = 1 << 20


@dataclass
class Request:
    """A prompt and the tokens that were made for it so far."""

    text: bytes
    count: int
    tokens: list[int] = field(default_factory=list)
    position: int = 0
    done: threading.Event = field(default_factory=threading.Event)
    error: str | None = None

    def __post_init__(self) -> None:
        self.text = (self.text or b"\0")[: POSITIONS - 1]
        self.count = max(1, min(self.count, POSITIONS - len(self.text)))

    def following(self) -> int:
        """Return the token to feed at the request's position."""
        if self.position < len(self.text):
            return self.text[self.position]
        return self.tokens[self.position - len(self.text)]

    def take(self, token: int) -> None:
        """Go on by one position."""
        if self.position >= len(self.text) - 1:
            self.tokens.append(token)
        self.position += 1
        if len(self.tokens) == self.count:
            self.done.set()


class Scheduler:
    """Keeps one request a cache slot; each step runs the rows up to the last slot that is taken."""

    def __init__(self, model: Model, *, eager: bool = False) -> None:
        self.model = model
        self.eager = eager
        self.slots: list[Request | None] = [None] * model.batch

    def add(self, request: Request) -> bool:
        """Give the request a slot, if one is free."""
        for index, held in enumerate(self.slots):
            if held is None:
                self.slots[index] = request
                return True
        return False

    def busy(self) -> bool:
        """Whether any slot is taken."""
        return any(self.slots)

    def step(self) -> None:
        """Run one decode step and let go of the requests that it finished."""
        rows = 1 + max(index for index, held in enumerate(self.slots) if held is not None)
        held = self.slots[:rows]
        ids = [request.following() if request else 0 for request in held]
        positions = [request.position if request else 0 for request in held]
        for index, token in enumerate(self.model.run(ids, positions, eager=self.eager)):
            request = held[index]
            if request is not None:
                request.take(token)
                if request.done.is_set():
                    self.slots[index] = None


def once(model: Model, count: int, *, eager: bool) -> None:
    """Print the tokens of fixed prompts, one JSON line each."""
    scheduler = Scheduler(model, eager=eager)
    for size in WAVES:
        wave = [Request(f"wave {size}, prompt {index}".encode() * (1 + index % 3), count) for index in range(size)]
        for request in wave:
            scheduler.add(request)
        while scheduler.busy():
            scheduler.step()
        for request in wave:
            print(json.dumps({"prompt": request.text.decode(), "tokens": request.tokens}))


class Server(ThreadingHTTPServer):
    """Answers requests; one thread of its own runs the model."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.ready = threading.Event()
        self.requests: queue.Queue[Request | None] = queue.Queue()

    def decode(self, model: Model) -> None:
        """Serve from the queue until it holds None."""
        model.bind()
        scheduler = Scheduler(model)
        while True:
            try:
                while any(slot is None for slot in scheduler.slots):
                    request = self.requests.get(block=not scheduler.busy())
                    if request is None:
                        return
                    scheduler.add(request)
            except queue.Empty:
                pass
            try:
                scheduler.step()
            except RuntimeError as error:
                for index, held in enumerate(scheduler.slots):
                    if held is not None:
                        held.error = str(error)
                        held.done.set()
                        scheduler.slots[index] = None


class Handler(BaseHTTPRequestHandler):
    """GET /health, POST /generate."""

    server: Server
    protocol_version = "HTTP/1.1"

    def answer(self, status: int, body: dict[str, Any]) -> None:
        """Send a JSON answer."""
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        """Tell whether the server is ready."""
        if self.path != "/health":
            self.answer(404, {"error": "there is GET /health and POST /generate"})
        elif self.server.ready.is_set():
            self.answer(200, {"status": "ready"})
        else:
            self.answer(503, {"status": "starting"})

    def do_POST(self) -> None:
        """Make tokens for a prompt."""
        length = int(self.headers.get("Content-Length") or 0)
        if self.path != "/generate" or length > LONGEST_BODY:
            self.close_connection = True
            self.answer(404 if length <= LONGEST_BODY else 413, {"error": "there is POST /generate, up to 1 MiB"})
            return
        try:
            body = json.loads(self.rfile.read(length))
            request = Request(str(body["prompt"]).encode(), int(body.get("tokens", 16)))
        except (ValueError, KeyError, TypeError, AttributeError):
            self.answer(400, {"error": 'send {"prompt": "...", "tokens": 16}'})
            return
        if not self.server.ready.is_set():
            self.answer(503, {"error": "starting"})
            return
        self.server.requests.put(request)
        request.done.wait()
        if request.error is not None:
            self.answer(500, {"error": request.error})
        else:
            self.answer(200, {"tokens": request.tokens})

    def log_message(self, format: str, *arguments: Any) -> None:
        """Stay quiet."""


def serve(port: int, quiet: bool) -> None:
    """Serve until SIGINT or SIGTERM. Health answers 503 until the graphs are there."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    server = Server(port)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
    model = start(quiet)
    worker = threading.Thread(target=server.decode, args=(model,))
    worker.start()
    server.ready.set()
    print("ready", flush=True)
    stop.wait()
    server.requests.put(None)
    worker.join()
    server.shutdown()


def start(quiet: bool, *, eager: bool = False) -> Model:
    """Make the model and its graphs, and say how long that took."""
    begin = time.perf_counter()
    model = Model()
    if not eager:
        model.make_graphs(BATCH_SIZES)
        graphs.commit()
    if not quiet:
        seconds = time.perf_counter() - begin
        print(f"{model.restored} of {len(model.launches)} graphs restored, ready in {seconds:.3f} s", file=sys.stderr)
    return model


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="a small decode server on the CUDA driver")
    parser.add_argument("--port", type=int, default=8000, help="0 takes a free port and prints it")
    parser.add_argument("--once", action="store_true", help="print the tokens of fixed prompts and end")
    parser.add_argument("--eager", action="store_true", help="with --once: without graphs")
    parser.add_argument("--tokens", type=int, default=12, help="with --once: tokens a prompt")
    parser.add_argument("--quiet", action="store_true", help="say nothing on stderr")
    arguments = parser.parse_args()
    if arguments.once:
        once(start(arguments.quiet, eager=arguments.eager), arguments.tokens, eager=arguments.eager)
    else:
        serve(arguments.port, arguments.quiet)
    return 0


if __name__ == "__main__":
    sys.exit(main())
