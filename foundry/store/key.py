"""The name under which the archive of a command is kept: commands that differ never share one."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from foundry import env
from foundry.store.secrets import masked

SUFFIX = ".fdry"
_ARGUMENT_DIGITS = 6
_PLACE_DIGITS = 10
_READABLE = re.compile(r"[^A-Za-z0-9._-]+")
_LAYOUT = (*env.RANK_VARIABLES, "WORLD_SIZE")


@dataclass(frozen=True)
class CommandKey:
    """`name` is the file name. One command in another folder, on another GPU or as another rank shares `family`."""

    name: str
    family: str


def command_key(
    executable: str,
    arguments: Sequence[str],
    *,
    folder: str,
    gpus: Sequence[str],
    environment: Mapping[str, str],
    salt: bytes,
) -> CommandKey:
    """Make the key of a command.

    It counts the file that is executed, the other arguments, the working folder (a relative script is another one
    elsewhere), the GPU models as far as they are known, and the rank variables. Secrets count through a salted digest.
    """

    def digest_of_secret(text: str) -> str:
        import hmac  # few commands have secrets, and a restore waits for what is imported

        return "secret:" + hmac.new(salt, text.encode(errors="surrogateescape"), "sha256").hexdigest()

    words = [executable, *masked(arguments[1:], digest_of_secret)]
    layout = {name: environment[name] for name in _LAYOUT if name in environment}
    family = _digest(words)[:_ARGUMENT_DIGITS]
    place = _digest([words, folder, sorted(set(gpus)), layout])[:_PLACE_DIGITS]
    prefix = f"{readable(words)}-{family}"
    return CommandKey(f"{prefix}{place}{SUFFIX}", prefix)


def working_folder() -> str:
    """Tell the folder in which the command starts; empty if it was removed."""
    try:
        return str(Path.cwd())
    except OSError:
        return ""


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def readable(words: Sequence[str]) -> str:
    """Name what a reader takes for the command's name: the script or module of an interpreter, else the program."""
    program = Path(words[0]).name
    name = program
    if re.match(r"^(python|pypy|bash|sh|dash)[\d.]*$", program):
        for word, following in zip(words[1:], [*words[2:], ""], strict=True):
            if word == "-m" and following:
                name = following
                break
            if word.startswith("-c"):
                break
            if not word.startswith("-"):
                name = Path(word).stem
                break
    return _READABLE.sub("_", name).lstrip(".")[:40] or "command"
