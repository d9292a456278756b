"""A program that writes a spool as the hook would, so that the command line can be tested without the native part.

Run as a script. It does nothing of the kind where the hook would not have been loaded.
"""

from __future__ import annotations

import argparse
import os
import signal
import struct
import sys
import time
from pathlib import Path
from types import FrameType

BEGIN, DRIVER, DEVICE, GRAPH, COUNTERS, COMMIT, RESTORED, TIMINGS, END = 1, 2, 3, 40, 51, 53, 60, 61, 99
EMPTY_NODE = 5


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<I", len(data)) + data


def table(values: dict[str, int]) -> bytes:
    return struct.pack("<I", len(values)) + b"".join(
        text(name) + struct.pack("<Q", value) for name, value in values.items()
    )


class Spool:
    """The spool of one process and its lines in the status file."""

    def __init__(self, role: str, *, mode: int, simulated: bool, gpu: str) -> None:
        self.role = role
        self.status = os.environ.get("FOUNDRY_STATUS")
        folder = Path(os.environ["FOUNDRY_SPOOL"]) / role
        folder.mkdir()
        self._file = (folder / "events").open("wb", buffering=0)
        self._graphs = 0
        from foundry.native import ABI

        self.write(BEGIN, struct.pack("<II", ABI, mode) + text(role) + text("python") + struct.pack("<I", 0))
        self.write(DRIVER, struct.pack("<II", 13000, simulated) + text("libcuda.so.1"))
        numbers = struct.pack("<IIIQIQQ", 9, 0, 132, 1 << 37, 1, 0x400000000000, 1 << 40)
        self.write(DEVICE, struct.pack("<I", 0) + text(gpu) + bytes(16) + numbers)
        self.say("armed")

    def write(self, kind: int, payload: bytes = b"") -> None:
        self._file.write(struct.pack("<HHIQ", kind, 0, crc32c(payload), len(payload)) + payload)

    def say(self, state: str, reason: str = "") -> None:
        if self.status:
            with Path(self.status).open("a") as file:
                file.write(f"{self.role} {state} {reason}".rstrip() + "\n")

    def graph(self, count: int) -> None:
        for _ in range(count):
            self._graphs += 1
            number = self._graphs
            head = struct.pack("<QQQIQB", number, 1000 + number, 0, 0, 0, 1)
            nodes = struct.pack("<I", 1) + struct.pack("<I", EMPTY_NODE) + text("")
            self.write(GRAPH, head + text("decode") + text(str(number)) + nodes + struct.pack("<I", 0))

    def commit(self) -> None:
        self.write(COMMIT, struct.pack("<I", 0))
        self.say("committed")

    def restored(self, names: list[str], given_up: list[str]) -> None:
        for name in names:
            self.write(RESTORED, text("decode") + text(name) + b"\1" + text("") + struct.pack("<Q", 1_000_000))
        for name in given_up:
            self.write(RESTORED, text("decode") + text(name) + b"\0" + text("a reason") + struct.pack("<Q", 0))
        self.write(COUNTERS, table({"stream_captures": 0, "kernel_launches": 7}))
        self.write(TIMINGS, table({"modules": 20_000_000}))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--role", default="python-0")
    parser.add_argument("--gpu", default="NVIDIA H200")
    parser.add_argument("--simulated", action="store_true")
    parser.add_argument("--graphs", type=int, default=1)
    parser.add_argument("--late-graphs", type=int, default=0, help="made after SIGUSR1")
    parser.add_argument("--say", default="")
    parser.add_argument("--commit", action="store_true")
    parser.add_argument("--serve", action="store_true", help="until SIGTERM or SIGINT")
    parser.add_argument("--deaf", action="store_true", help="do not end on SIGTERM")
    parser.add_argument("--port-file", default="")
    parser.add_argument("--disarm", default="")
    parser.add_argument("--exit", type=int, default=0)
    parser.add_argument("--kill", type=int, default=0)
    parser.add_argument("--api-key", default="")
    chosen = parser.parse_args()
    hooked = "FOUNDRY_SPOOL" in os.environ and "foundry_hook" in os.environ.get("LD_PRELOAD", "")
    spool = None
    if hooked:
        mode = 2 if os.environ["FOUNDRY_MODE"] == "restore" else 1
        spool = Spool(chosen.role, mode=mode, simulated=chosen.simulated, gpu=chosen.gpu)
        if chosen.disarm:
            spool.say("disarmed", chosen.disarm)
        elif mode == 2:
            spool.restored(["1"], [str(number) for number in range(2, chosen.graphs + 1)])
        else:
            spool.graph(chosen.graphs)
        if chosen.commit:
            spool.commit()
    if chosen.say:
        print(chosen.say, flush=True)
    if chosen.port_file:
        answer_health(chosen.port_file)
    if chosen.serve:
        serve(spool, chosen.late_graphs, deaf=chosen.deaf)
    if chosen.kill:
        os.kill(os.getpid(), chosen.kill)
    if spool:
        spool.write(END)
    sys.exit(chosen.exit)


def answer_health(port_file: str) -> None:
    """Answer /health with 503 twice, then with 200, in a thread."""
    import http.server
    import threading

    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200 if len(asked) > 2 else 503)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", int(port_file)), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()


def serve(spool: Spool | None, late_graphs: int, *, deaf: bool) -> None:
    stopped = []

    def stop(number: int, _: FrameType | None) -> None:
        print(f"got {signal.Signals(number).name}", flush=True)
        if not deaf:
            stopped.append(number)

    def more(_: int, __: FrameType | None) -> None:
        if spool:
            spool.graph(late_graphs)
        print("more graphs", flush=True)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)
    signal.signal(signal.SIGUSR1, more)
    print("serving", flush=True)
    while not stopped:
        time.sleep(0.02)


if __name__ == "__main__":
    main()
