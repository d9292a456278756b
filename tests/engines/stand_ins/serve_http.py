"""Serves a stand-in as `vllm serve` serves vLLM: HTTP in one process, the engine in another that it spawns.

    serve_http.py (serve|serve_transformers) --port PORT [OPTION...]

GET /health answers 503 until the engine is ready, and 500 once it is gone; POST /generate {"tokens": [...], ...}
answers with what a batch of these tokens gives. SIGTERM ends it well; without its engine it ends with status 1.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import json
import multiprocessing
import os
import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from typing import Any


def engine_core(name: str, arguments: list[str], pipe: Connection) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    kind = importlib.import_module(name)
    engine = kind.Engine(kind.options().parse_args(arguments))
    pipe.send("ready")
    while (request := pipe.recv()) is not None:
        number, asked = request
        pipe.send((number, engine.answer(asked)))


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, name: str, arguments: list[str]) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.state, self.dead = 503, threading.Event()
        self.lock, self.numbers = threading.Lock(), itertools.count()
        self.answers: dict[int, Any] = {}
        self.waiting: dict[int, threading.Event] = {}
        spawn = multiprocessing.get_context("spawn")
        self.pipe, theirs = spawn.Pipe()
        self.core = spawn.Process(target=engine_core, args=(name, arguments, theirs))
        self.core.start()
        theirs.close()
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self) -> None:
        """Hand the engine's answers on until it is gone."""
        try:
            self.pipe.recv()
            self.state = 200
            while True:
                number, answer = self.pipe.recv()
                self.answers[number] = answer
                self.waiting.pop(number).set()
        except (EOFError, OSError):
            self.state = 500
            self.dead.set()

    def ask(self, request: Any) -> Any:
        done = threading.Event()
        with self.lock:
            number = next(self.numbers)
            self.waiting[number] = done
            self.pipe.send((number, request))
        while not done.wait(0.1):
            if self.dead.is_set():
                return None
        return self.answers.pop(number)


class Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def answer(self, status: int, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        self.answer(self.server.state if self.path == "/health" else 404, {"engine": self.server.core.pid})

    def do_POST(self) -> None:
        answer = self.server.ask(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.answer(500 if answer is None else 200, answer)

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


def main() -> int:
    name, _, port, *arguments = sys.argv[1:]
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    server = Server(int(port), name, arguments)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"serving on http://127.0.0.1:{server.server_port}, process {os.getpid()}", flush=True)
    while not ended.wait(0.02) and not server.dead.is_set():
        pass
    server.shutdown()
    if ended.is_set():
        with contextlib.suppress(OSError), server.lock:  # the signal may have ended it before it could mask it
            server.pipe.send(None)
        server.core.join()
        return 0
    print("the engine is gone", file=sys.stderr, flush=True)
    return 1


if __name__ == "__main__":
    sys.exit(main())
