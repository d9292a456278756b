"""Measure how fast the tools that show and compare archives are, on 256 graphs of about 1,000 nodes each.

    python benchmarks/tool_speed.py [--runs 3] [--keep]

Each figure is of a whole process, from start to exit, with its files in the page cache; the captures are made up
(`measuring/captures.py`). `diff` compares with a second capture whose stack and heap words stand elsewhere, as they do
in a second run.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

from measuring import captures, process
from measuring.process import FOUNDRY
from measuring.question import Answer, Asked, Question


class Tool(NamedTuple):
    """A command, the exit codes that it may end with, and the seconds that it may take."""

    name: str
    words: tuple[str, ...]
    codes: tuple[int, ...] = (0,)
    goal: float | None = None


TOOLS = (
    Tool("nothing", ("--version",)),
    Tool("inspect", ("inspect", captures.ONE), goal=0.4),
    Tool("inspect --json", ("inspect", captures.ONE, "--json")),
    Tool("inspect --html", ("inspect", captures.ONE, "--html", "report.html", "--force")),
    Tool("diff", ("diff", captures.ONE, captures.TWO), (0, 1)),
)


def measure(asked: Asked) -> Answer:
    """Run each tool."""
    folder = asked.captures.have(captures.ONE, captures.TWO)
    found = {}
    for tool in TOOLS:
        command = [*FOUNDRY, *tool.words]
        found |= process.figures(tool.name, command, folder, asked.runs, codes=tool.codes, goal=tool.goal)
    return Answer(found, asked.captures.sizes())


QUESTION = Question("tool-speed", "how fast are the tools that show and compare archives", measure, runs=3)

if __name__ == "__main__":
    sys.exit(QUESTION.main())
