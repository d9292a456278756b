"""A headless Chromium, spoken to over WebDriver. Nothing beside Debian's `chromium` and `chromium-driver` is needed."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


def browser_path() -> str | None:
    return next((found for name in BROWSERS if (found := shutil.which(name))), None)


def missing() -> str:
    """What is missing to run it; empty if nothing is."""
    if browser_path() is None:
        return "there is no Chromium"
    return "" if shutil.which("chromedriver") else "there is no chromedriver"


class Browser:
    """One session. `width` and `scheme` are those of the device that it plays."""

    def __init__(self, address: str, profile: Path) -> None:
        self._base = address
        options = {"binary": browser_path(), "args": [*FLAGS, f"--user-data-dir={profile}"]}
        wanted = {
            "browserName": "chrome",
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }
        answer = self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self._session = f"/session/{answer['sessionId']}"

    def _call(self, method: str, path: str, body: object = None) -> Any:
        data = json.dumps(body if body is not None else {}).encode() if method == "POST" else None
        request = urllib.request.Request(self._base + path, data=data, method=method)
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)["value"]

    def command(self, name: str, **parameters: object) -> Any:
        """Run a command of the DevTools protocol."""
        return self._call("POST", f"{self._session}/goog/cdp/execute", {"cmd": name, "params": parameters})

    def device(self, width: int, height: int = 800, scheme: str = "light", *, mobile: bool = False) -> None:
        self.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=2, mobile=mobile
        )
        self.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, page: Path) -> None:
        self._call("POST", f"{self._session}/url", {"url": page.resolve().as_uri()})

    def run(self, script: str) -> Any:
        return self._call("POST", f"{self._session}/execute/sync", {"script": script, "args": []})

    def console(self) -> list[str]:
        """What was written to the console since the last call."""
        return [entry["message"] for entry in self._call("POST", f"{self._session}/se/log", {"type": "browser"})]

    def requests(self) -> list[str]:
        """The addresses that the page which is open has asked for since the last call."""
        here = self.run("return document.URL")
        entries = self._call("POST", f"{self._session}/se/log", {"type": "performance"})
        messages = [json.loads(entry["message"])["message"] for entry in entries]
        sent = [one["params"] for one in messages if one["method"] == "Network.requestWillBeSent"]
        return [one["request"]["url"] for one in sent if one.get("documentURL") == here]

    def screenshot(self, target: Path) -> None:
        """Take a picture of the whole page."""
        answer = self.command("Page.captureScreenshot", captureBeyondViewport=True, format="png")
        target.write_bytes(base64.b64decode(answer["data"]))

    def close(self) -> None:
        self._call("DELETE", self._session)


@contextmanager
def open_browser(profile: Path) -> Iterator[Browser]:
    """Start a browser with an empty profile, and end it."""
    driver = subprocess.Popen(
        ["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert driver.stdout is not None
        for line in driver.stdout:
            found = re.search(r"started successfully on port (\d+)", line)
            if found:
                break
        else:
            raise RuntimeError("chromedriver did not start")
        browser = Browser(f"http://127.0.0.1:{found.group(1)}", profile)
        try:
            yield browser
        finally:
            browser.close()
    finally:
        driver.terminate()
        driver.wait(30)
        if driver.stdout:
            driver.stdout.close()
