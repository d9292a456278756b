"""What a session knows of a command, as an archive may hold it: no secrets, no variables but the allow-listed ones."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from foundry import env
from foundry.compat.gate import ARGUMENTS, VARIABLE
from foundry.store.secrets import masked

VERSION = "foundry"


def of_command(arguments: Sequence[str], environment: Mapping[str, str], *, version: str) -> dict[str, str]:
    """Make the context of a capture of this command."""
    context = {ARGUMENTS: json.dumps(masked(arguments)), VERSION: version}
    for name in env.ALLOWED_VARIABLES:
        if name in environment:
            context[VARIABLE + name] = environment[name]
    return context
