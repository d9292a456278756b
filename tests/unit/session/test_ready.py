from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator

import pytest

from foundry.errors import UsageError
from foundry.session.ready import LogWatch, UrlWatch


class Handler(http.server.BaseHTTPRequestHandler):
    answers: list[int]

    def do_GET(self) -> None:
        self.send_response(self.answers.pop(0) if len(self.answers) > 1 else self.answers[0])
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[http.server.HTTPServer]:
    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def wait(watch: UrlWatch, seconds: float) -> str:
    watch.start()
    watch._thread.join(seconds)
    return watch.seen()


def test_only_success_counts(server: http.server.HTTPServer) -> None:
    Handler.answers = [500, 404, 204]
    url = f"http://127.0.0.1:{server.server_port}/health"
    assert wait(UrlWatch(url), 10) == f"{url} answers"


def test_an_error_is_not_an_answer(server: http.server.HTTPServer) -> None:
    Handler.answers = [503]
    watch = UrlWatch(f"http://127.0.0.1:{server.server_port}/")
    assert wait(watch, 0.7) == ""
    watch.close()
    watch._thread.join(5)
    assert not watch._thread.is_alive()


def test_nobody_there_is_not_an_answer() -> None:
    watch = UrlWatch("http://127.0.0.1:1/")
    assert wait(watch, 0.3) == ""
    watch.close()


@pytest.mark.parametrize("url", ["", "localhost:80", "ftp://x/", "file:///etc/passwd", "http://"])
def test_only_http_addresses(url: str) -> None:
    with pytest.raises(UsageError):
        UrlWatch(url)


def test_the_first_line_that_matches_is_told() -> None:
    watch = LogWatch(r"ready \d")
    for line in ("starting", "ready x", "  is ready 1  ", "ready 2"):
        watch.look_at(line)
    assert watch.seen() == "it printed `is ready 1`"
