"""Starts the stand-in of a server, plainly or under foundry, and speaks to it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from helpers.commandline import CommandLine, wait_until
from helpers.engine_starts import STAND_INS

from foundry import native

SERVER = STAND_INS / "serve_http.py"


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


class Running:
    """A server that was started, and what is asked of it."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self.process = process
        self.address = f"http://127.0.0.1:{port}"

    def get(self, path: str, body: Any = None) -> tuple[int, Any]:
        """Status and JSON; status 0 where nobody answers."""
        data = None if body is None else json.dumps(body).encode()
        try:
            with urllib.request.urlopen(self.address + path, data, timeout=30) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)
        except OSError:
            return 0, None

    def wait_until_ready(self) -> None:
        """Wait until its health is good; it must not have ended."""

        def good() -> bool:
            assert self.process.poll() is None, self.process.communicate()
            return self.get("/health")[0] == 200

        wait_until(good)

    def generate(self, request: Mapping[str, Any]) -> Any:
        """The answer to a request, which must be a good one."""
        status, answer = self.get("/generate", request)
        assert status == 200, answer
        return answer

    def engine(self) -> int:
        """The process in which the engine runs."""
        return int(self.get("/health")[1]["engine"])

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """End it by a signal: its exit status, and what was said."""
        self.process.send_signal(number)
        return self.over()

    def over(self) -> tuple[int, str]:
        """Wait for its end."""
        _, errors = self.process.communicate(timeout=30)
        return self.process.returncode, errors


class Place:
    """A folder in which the server is captured and restored; each start on a port and at handles of its own."""

    def __init__(self, folder: Path, engine: str = "serve") -> None:
        self.engine = engine
        self.line = CommandLine(folder, native.library_directory())
        self.line.environment["PYTHONPATH"] += f":{STAND_INS}"
        self.archive = self.line.work / "a.fdry"
        self.report = self.line.work / "report.json"
        self.starts = 0
        self.program = [sys.executable, str(SERVER)]
        self.port = 0

    def install(self) -> None:
        """Start it by a console script from here on, as an installed engine is, and always on the same port."""
        self.port = free_port()
        script = self.line.folder / "serve"
        body = 'import sys\nfrom serve_http import main\nif __name__ == "__main__":\n    sys.exit(main())\n'
        script.write_text(f"#!{sys.executable}\n{body}", encoding="utf-8")
        script.chmod(0o755)
        self.program = [str(script)]

    @contextmanager
    def start(self, *words: object, options: tuple[str, ...] = (), **environment: str) -> Iterator[Running]:
        """Start it under `foundry WORDS`, plainly if there are none. `URL` in a word is where it tells its health."""
        self.starts += 1
        port = self.port or free_port()
        command = [*self.program, self.engine, "--port", str(port), *options]
        around = {**self.line.environment, "FOUNDRY_SIM_SEED": str(self.starts), **environment}
        if words:
            url = f"http://127.0.0.1:{port}/health"
            command = self.line.words(*(str(word).replace("URL", url) for word in words), "--", *command)
        else:
            around["LD_LIBRARY_PATH"] = str(native.simulator_directory())
        process = subprocess.Popen(
            command,
            env=around,
            cwd=self.line.work,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            yield Running(process, port)
            assert process.poll() is not None, "who starts a server ends it"
        except BaseException:
            # Only then: among what is there is the process with which foundry cleans up after itself.
            for left in self.processes():
                with suppress(ProcessLookupError):
                    os.kill(left, signal.SIGKILL)
            process.communicate()
            raise

    def processes(self) -> list[int]:
        """Living processes that were started here, by their environment: a spawned one has another command line."""
        mark, found = f"XDG_CACHE_HOME={self.line.cache}\0".encode(), []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and mark in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
        return found

    def nothing_is_left(self) -> None:
        """No process, and no folder of a session."""
        wait_until(lambda: self.processes() == [])
        wait_until(lambda: self.line.left_overs() == [])

    def restore(self, *words: str, options: tuple[str, ...] = (), **environment: str) -> Any:
        """Start it under a restore."""
        given = ("restore", "--sim", "--allow", "mismatch-arguments", *words, self.archive)
        return self.start(*given, options=options, **environment)

    def told(self) -> Any:
        """The last report."""
        return json.loads(self.report.read_text(encoding="utf-8"))

    def files(self) -> set[str]:
        """All files that foundry keeps, but those of the session that was the last."""
        found = (path.relative_to(self.line.cache) for path in self.line.cache.rglob("*") if path.is_file())
        return {str(path) for path in found if "sessions" not in path.parts}
