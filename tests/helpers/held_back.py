"""Runs `foundry` with the making of restore images held back: until a file is there, or until it fails.

python held_back.py HOW ARGUMENT... where HOW is `until:PATH`, `full`, `fault`, `dies`, or `second:PATH`: only the
images after the first one are held back.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from foundry import image
from foundry.errors import DiskFullError

HOW, _, GO = sys.argv.pop(1).partition(":")
MADE = Path(os.environ["XDG_CACHE_HOME"]) / "made"
honest = image.build


def build(*arguments: Any, **named: Any) -> None:
    """Make an image, sooner or later, or not at all, and count it."""
    if HOW == "full":
        raise DiskFullError("cannot write the restore image: the file system is full", hint="make room")
    if HOW == "fault":
        raise ZeroDivisionError("a fault\nof ours")
    if HOW == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    while not Path(GO).exists() and (HOW == "until" or MADE.exists()):
        time.sleep(0.01)
    honest(*arguments, **named)
    with MADE.open("a") as file:
        file.write(f"{arguments[1]}\n")


image.build = build  # type: ignore[assignment]

if __name__ == "__main__":
    from foundry.cli.main import main

    sys.exit(main())
