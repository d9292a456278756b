"""Entry points, called by engines in each of their processes: the second way in, where the first is not there.

A Python that is started with -I, -E or -S does not look at the folder that a hooked command is given; an engine in
whose environment foundry is installed still finds these.
"""

from __future__ import annotations

import os

from foundry import env


def load() -> None:
    """Have the adapters in this process if it is hooked and they are wanted; do nothing elsewhere."""
    if os.environ.get(env.MODE) and os.environ.get(env.ADAPTERS) != env.ADAPTERS_OFF:
        from foundry.engines import loader

        loader.begin()
