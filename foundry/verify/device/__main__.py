"""The fresh process: `python -m foundry.verify.device ARCHIVE PROCESS FIRST SECONDS LAUNCH DESCRIPTOR`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from foundry.verify.device.runner import run


def main(arguments: list[str]) -> int:
    """Run, and write what there is to tell to the descriptor."""
    archive, process, first, seconds, launching, descriptor = arguments
    lines = int(descriptor)

    def tell(line: dict[str, Any]) -> None:
        data = json.dumps(line).encode() + b"\n"
        while data:
            data = data[os.write(lines, data) :]

    run(Path(archive), int(process), int(first), launching=launching == "1", seconds=float(seconds), tell=tell)
    # No cleaning up: a driver with a launch that hangs would wait for it.
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
