"""Run the benchmarks that need no GPU."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPTS = ("start_overhead.py", "tool_speed.py")

if __name__ == "__main__":
    sys.exit(max(subprocess.call([sys.executable, Path(__file__).with_name(script)]) for script in SCRIPTS))
