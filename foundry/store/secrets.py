"""Which words of a command line are secrets. They are never stored; a command's key holds a digest of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

MASK = "***"
_WORDS = frozenset(
    {"token", "secret", "password", "passwd", "passphrase", "apikey", "credential", "credentials", "bearer"}
)
_BEFORE_KEY = frozenset({"api", "access", "secret", "private", "auth", "encryption", "license", "signing"})
_TEXT_TOKENS = frozenset({"bos", "eos", "pad", "unk", "sep", "cls", "mask", "stop", "start", "end", "image", "video"})
"""`--eos-token` names a token of text."""
_SECRET_VALUE = re.compile(
    r"(?:hf_|sk-|sk_|ghp_|gho_|github_pat_|glpat-|xox[abp]-|nvapi-)[A-Za-z0-9_\-]{8,}|AKIA[A-Z0-9]{12,}|eyJ[\w-]+\.[\w-]+\.[\w-]+"
)
_ADDRESS_PASSWORD = re.compile(r"(?<=://)([^/@\s:]*):([^/@\s]+)(?=@)")
_HEADER = re.compile(r"(?i)^(authorization|proxy-authorization|x-api-key|cookie)\s*[:=]\s*(.+)$", re.DOTALL)
_ASSIGNMENT = re.compile(r"^(-{0,2}[A-Za-z][\w.\-]*)=(.*)$", re.DOTALL)
_OPTION = re.compile(r"^-{1,2}[A-Za-z][\w.\-]*$")

Replace = Callable[[str], str]


def masked(arguments: Sequence[str], replace: Replace = lambda _: MASK) -> list[str]:
    """Replace each secret: values of options and variables that name one, and what looks like one."""
    result: list[str] = []
    next_is_secret = False
    for argument in arguments:
        if next_is_secret and not argument.startswith("--"):
            result.append(replace(argument))
            next_is_secret = False
            continue
        next_is_secret = bool(_OPTION.match(argument)) and names_secret(argument)
        result.append(_masked_one(argument, replace))
    return result


def _masked_one(argument: str, replace: Replace) -> str:
    header = _HEADER.match(argument)
    if header:
        return f"{header[1]}: {replace(header[2])}"
    assignment = _ASSIGNMENT.match(argument)
    if assignment and names_secret(assignment[1]):
        return f"{assignment[1]}={replace(assignment[2])}"
    argument = _ADDRESS_PASSWORD.sub(lambda found: f"{found[1]}:{replace(found[2])}", argument)
    return _SECRET_VALUE.sub(lambda found: replace(found[0]), argument)


def names_secret(name: str) -> bool:
    """Whether an option or variable of this name holds a secret."""
    words = [word for word in re.split(r"[^a-z0-9]+", _split_capitals(name).lower()) if word]
    for before, word in zip(["", *words], words, strict=False):
        if word in _WORDS and not (word == "token" and before in _TEXT_TOKENS):
            return True
        if word == "key" and (before in _BEFORE_KEY or len(words) == 1):
            return True
    return False


def _split_capitals(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name)
