"""What a session knows of a command, as an archive may hold it: no secrets, no variables but the allow-listed ones."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence

from foundry import env
from foundry.compat import gpu
from foundry.compat.compare import ARGUMENTS, RELEASE, VARIABLE, VERSION, captured_arguments
from foundry.store.secrets import masked


def of_command(
    arguments: Sequence[str], environment: Mapping[str, str], *, version: str, simulated: bool
) -> dict[str, str]:
    """Make the context of a capture of this command."""
    context = {ARGUMENTS: json.dumps(masked(arguments)), VERSION: version}
    if not simulated and (release := gpu.driver_version()):
        context[RELEASE] = release
    for name in env.ALLOWED_VARIABLES:
        if name in environment:
            context[VARIABLE + name] = environment[name]
    return context


def unknown(*, version: str) -> dict[str, str]:
    """Make the context of a spool of which nothing else is known."""
    return {VERSION: version}


def command_line(context: Mapping[str, str]) -> str:
    """Write a captured command as one would type it; empty if it is not told."""
    return shlex.join(captured_arguments(context))
