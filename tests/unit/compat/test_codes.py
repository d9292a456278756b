"""The codes of what may differ: their documentation, and which of them can be allowed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from foundry.compat import codes, compare
from foundry.compat.items import Item, Level, judged, usable
from foundry.errors import UsageError

ROOT = Path(__file__).resolve().parents[3]


def table() -> str:
    """The table of all codes as `cli/ALLOW.md` has it."""
    rows = ["| code | at worst | what differs | `--allow`, and what it risks |", "|---|---|---|---|"]
    for rule in codes.RULES.values():
        if rule.level is Level.NOTE:
            may = "not needed"
        elif rule.never:
            may = f"never: {rule.never}"
        else:
            may = rule.risk
        rows.append(f"| `{rule.code}` | {rule.level.value} | {rule.meaning} | {may} |")
    return "\n".join(rows)


def test_the_documentation_has_every_code_as_it_is() -> None:
    text = (ROOT / "cli" / "ALLOW.md").read_text(encoding="utf-8")
    assert table() in text
    assert ", ".join(f"`{name}`" for name in compare.HARMLESS_OPTIONS) in text


def test_the_registry_has_every_code_at_its_worst() -> None:
    text = (ROOT / "format_spec" / "registry.md").read_text(encoding="utf-8")
    part = text[text.index("What `foundry verify --host` compares") : text.index("Other errors of Foundry, as")]
    rows = dict(re.findall(r"^\| `([a-z-]+)` \| (refuse|warn|note) \|", part, re.M))
    assert rows == {code: rule.level.value for code, rule in codes.RULES.items()}


def test_each_rule_says_what_it_must() -> None:
    for code, rule in codes.RULES.items():
        assert rule.code == code and rule.meaning
        assert rule.level in (Level.REFUSE, Level.WARN, Level.NOTE)
        assert bool(rule.risk) != bool(rule.never), code
        assert codes.allowable(code) == (not rule.never)
        assert rule.level is not Level.NOTE or rule.never


def test_every_code_that_is_used_has_a_rule() -> None:
    named = {text for name, text in vars(codes).items() if name[0] != "_" and name.isupper() and isinstance(text, str)}
    assert named == set(codes.RULES)
    source = (ROOT / "foundry" / "native" / "restore" / "gate.cpp").read_text(encoding="utf-8")
    told = dict(re.findall(r'found\.add\("([a-z-]+)", Weight::(never|refused)', source))
    assert len(told) == 9
    assert {code: "never" if codes.RULES[code].never else "refused" for code in told} == told


def test_what_can_never_be_allowed() -> None:
    never = {code for code in codes.RULES if not codes.allowable(code)}
    assert {codes.SIMULATED, codes.NO_GRAPHS, codes.COMPUTE, codes.LIBRARY_NEEDED, codes.DEVICES} <= never
    for code in never:
        with pytest.raises(UsageError) as caught:
            codes.require_allowable([codes.DRIVER, code])
        assert codes.RULES[code].never in str(caught.value)
        assert caught.value.hint is not None and codes.DRIVER in caught.value.hint and code not in caught.value.hint
    for code in ("all", "", "mismatch-", "MISMATCH-DRIVER", f"{codes.DRIVER},{codes.MIG}"):
        with pytest.raises(UsageError, match="there is no such code"):
            codes.require_allowable([code])
    may = set(codes.RULES) - never
    assert codes.require_allowable([*may, *may]) == may
    assert codes.require_allowable([]) == frozenset()


def test_only_what_refuses_or_warns_is_allowed() -> None:
    items = [Item(codes.DRIVER, "", "", "", level) for level in Level]
    found = judged(items, {codes.DRIVER})
    assert [item.level for item in found] == [Level.ALLOWED, Level.ALLOWED, Level.ALLOWED, *list(Level)[3:]]
    assert usable(found) and not usable(judged(items, {codes.MIG}))


def test_the_code_of_a_reason() -> None:
    assert codes.code_of("mismatch-driver: CUDA of the driver: archive 13.0, here 12.8") == codes.DRIVER
    assert codes.code_of("range taken: device 0") is None
    assert codes.code_of("mismatch-driver") is None


def test_hints() -> None:
    again = "capture again: `foundry capture -- CMD`"
    assert codes.hint([]) == codes.hint([codes.COMPUTE, codes.DRIVER]) == again
    assert codes.hint([codes.MIG, codes.MIG, codes.DRIVER]) == (
        f"{again}; `--allow mismatch-mig --allow mismatch-driver` restores all the same"
    )
