"""Where the sources lie: tests run against the installed package, which leaves most of the native part out."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NATIVE = ROOT / "foundry" / "native"
