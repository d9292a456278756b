"""Follows a kernel's code for one launch: which instructions it can reach, given the words that decide its branches.

Libraries pass structs with room for 25 dimensions, and code that stops at the number of them: what stands behind is
left as the stack had it, and is read by code that this launch never reaches. Only numbers that the launch itself holds
decide a branch here, and only those that stay what they are when its memory lies elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from foundry.machine.architectures import ARCHITECTURES, Architecture
from foundry.machine.code import INSTRUCTION, LOADED, UNIFORM_LOADS
from foundry.machine.opcodes import Access, table
from foundry.machine.values import (
    ALWAYS,
    COMPARISONS,
    UNDERSTOOD,
    Launch,
    State,
    Value,
    compared,
    guard,
    made,
    predicate,
    register,
    uniform_register,
    written,
)

BRANCH, BRANCH_UNIFORM, EXIT, BEGIN_SYNC, SYNC = 0x947, 0x547, 0x94D, 0x945, 0x941
CALLS_AWAY = (0x343, 0x943)
CALL, RETURN = 0x944, 0x950
MOVE = 0x802
LEAVE = frozenset((0x344, 0x348, 0x355, 0x356, 0x949, 0x958))
"""Branches to places that only registers tell, and what makes branches of a warp depend on one another."""
PLAIN = ((1 << 23) - 1) & ~(0xF << 5)
"""Bits of a branch or exit from 82 on, without its predicate, that are 0 if nothing else decides it."""
DECIDING = COMPARISONS | UNDERSTOOD | {BRANCH, BRANCH_UNIFORM, EXIT, CALL, RETURN, SYNC}
"""Instructions after which more is known than what they may have written, or which go elsewhere."""
MOST_STEPS = 200_000
CALL_REACH = 24


@dataclass(frozen=True)
class Reached:
    """What a launch can read: begins and ends in bank 0, and what of the launch decided that. None: all of it."""

    spans: frozenset[tuple[int, int]]
    sources: frozenset[object]


class Flow:
    """The code of a kernel, ready to be followed. `followed` is false if it goes where this cannot follow."""

    def __init__(self, code: bytes, architecture: Architecture, *, calls_away: bool) -> None:
        self._architecture = architecture
        self._split = (BRANCH, BRANCH_UNIFORM, CALL) if architecture is ARCHITECTURES[90] else ()
        words = np.frombuffer(code, "<u8").reshape(-1, 2)
        opcodes = words[:, 0] & np.uint64(0xFFF)
        self._low: list[int] = words[:, 0].tolist()
        self._high: list[int] = words[:, 1].tolist()
        self._opcode: list[int] = opcodes.tolist()
        self._kind: list[int] = table(False)[opcodes].tolist()
        guards = (words[:, 0] >> np.uint64(12)) & np.uint64(0xF)
        plain = (guards == ALWAYS) & ~np.isin(opcodes, list(DECIDING)) & (np.array(self._kind) == Access.NOTHING)
        self._plain: list[bool] = plain.tolist()
        self._stretches: dict[int, tuple[int, tuple[int, ...] | None]] = {}
        present = set(self._opcode)
        self._written: dict[int, tuple[int, ...] | None] = {}
        self._ends: dict[int, list[int]] = {}
        self._leaders: set[int] = set()
        self._returns: list[int] = []
        for at, opcode in enumerate(self._opcode):
            if opcode in (BRANCH, BRANCH_UNIFORM, CALL):
                self._leaders |= {at + 1, self._target(at)}
            elif opcode == BEGIN_SYNC:
                self._ends.setdefault(self._low[at] >> 16 & 0xF, []).append(self._target(at))
                self._leaders.add(self._target(at))
            elif opcode in (EXIT, SYNC, RETURN):
                self._leaders.add(at + 1)
            if opcode == CALL:
                self._returns.append(at + 1)
        self.followed = (
            not present & LEAVE
            and (not present.intersection(CALLS_AWAY) or calls_away)
            and (RETURN not in present or self._returns_known())
        )

    def follow(self, launch: Launch) -> Reached | None:
        """Follow all ways that a launch may take; None if it may read anything, or the ways are too many."""
        states: dict[int, State] = {0: {}}
        waiting = [0]
        spans: set[tuple[int, int]] = set()
        sources: set[object] = set()
        steps = 0
        while waiting:
            at = waiting.pop()
            state = dict(states[at])
            successors: tuple[int, ...] = ()
            while True:
                end, forgotten = self._stretch(at)
                if end > at:
                    steps += end - at
                    if steps > MOST_STEPS:
                        return None
                    _forget(state, forgotten)
                    at = end
                    if at in self._leaders:
                        successors = (at,)
                        break
                steps += 1
                if steps > MOST_STEPS or not 0 <= at < len(self._low):
                    return None
                successors = (at + 1,)
                held = guard(state, self._opcode[at], self._low[at])
                if held is not None:
                    sources |= held[2]
                if held is None or held[1]:
                    if self._kind[at] != Access.NOTHING and not self._read(at, state, launch, spans, sources):
                        return None
                    successors = self._after(at, state, held is not None, sources)
                    self._change(at, state, held is not None, launch)
                if len(successors) != 1 or successors[0] != at + 1 or at + 1 in self._leaders:
                    break
                at += 1
            for successor in successors:
                known = states.get(successor)
                joined = dict(state) if known is None else _joined(known, state)
                if joined is not known:
                    states[successor] = joined
                    waiting.append(successor)
        return Reached(frozenset(spans), frozenset(sources))

    def _stretch(self, at: int) -> tuple[int, tuple[int, ...] | None]:
        """Give the end of the instructions from here on that decide and read nothing, and all they may write."""
        found = self._stretches.get(at)
        if found is None:
            end, numbers, any_register = at, set[int](), False
            while 0 <= end < len(self._low) and self._plain[end] and (end == at or end not in self._leaders):
                forgotten = self._forgotten(end)
                any_register |= forgotten is None
                numbers.update(forgotten or ())
                end += 1
            found = self._stretches[at] = (end, None if any_register else tuple(numbers))
        return found

    def _forgotten(self, at: int) -> tuple[int, ...] | None:
        """Give what an instruction may write; None if that may be anything."""
        if at not in self._written:
            self._written[at] = written(self._opcode[at], self._low[at], self._high[at])
        return self._written[at]

    def _target(self, at: int) -> int:
        """Give where a branch goes, as the number of an instruction; -1 if between two."""
        distance = self._low[at] >> 34 | (self._high[at] & (1 << 18) - 1) << 30
        if distance >> 47:
            distance -= 1 << 48
        if self._opcode[at] in self._split:
            distance = distance << 8 | self._low[at] >> 16 & 0xFF
        place = (at + 1) * INSTRUCTION + distance * 4
        return place // INSTRUCTION if place % INSTRUCTION == 0 else -1

    def _after(self, at: int, state: State, sure: bool, sources: set[object]) -> tuple[int, ...]:
        """Give what may come after an instruction; `sure` if its guard is known to hold."""
        opcode, low, high = self._opcode[at], self._low[at], self._high[at]
        if opcode in (BRANCH, EXIT):
            asked = predicate(state, high >> 23 & 7, high >> 26 & 1)
            if asked is not None:
                sources |= asked[2]
            target = (self._target(at),) if opcode == BRANCH else ()
            if high >> 18 & PLAIN:
                return (*target, at + 1)
            if asked is not None and not asked[1]:
                return (at + 1,)
            return target if sure and asked is not None else (*target, at + 1)
        if opcode == BRANCH_UNIFORM:
            return self._target(at), at + 1
        if opcode == CALL:
            return self._target(at), at + 1
        if opcode == RETURN:
            return (*self._returns, at + 1)
        if opcode == SYNC:
            return (at + 1, *self._ends.get(low >> 16 & 0xF, ()))
        return (at + 1,)

    def _change(self, at: int, state: State, sure: bool, launch: Launch) -> None:
        """Bring a state to what it is after an instruction."""
        opcode, low, high = self._opcode[at], self._low[at], self._high[at]
        values = made(state, opcode, low, high, launch) if sure and opcode in UNDERSTOOD else ()
        outcome = compared(state, opcode, low, high, launch) if sure and opcode in COMPARISONS else None
        _forget(state, self._forgotten(at))
        state.update(values)
        if outcome is not None:
            state[outcome[0]] = outcome[1]

    def _read(self, at: int, state: State, launch: Launch, spans: set[tuple[int, int]], sources: set[object]) -> bool:
        """Note what an instruction reads of bank 0; false if that may be anything."""
        low, high, kind = self._low[at], self._high[at], self._kind[at]
        if kind == Access.UNKNOWN or (high >> 27 & 1) != (self._opcode[at] in UNIFORM_LOADS):
            return False
        if low >> 54 & 0x1F:
            return not (kind in (Access.LOAD, Access.INDEXED) and high >> 14 & 7)
        begin = low >> 38 & 0xFFFF
        if self._architecture.gives_address(begin):
            return False
        if kind not in (Access.LOAD, Access.INDEXED):
            size = 4 if kind == Access.WORD else 8
            spans.add((begin, begin + size) if begin % 4 == 0 else (begin // 4 * 4, begin // 4 * 4 + 12))
            return True
        size = LOADED[high >> 9 & 7]
        if not size or high >> 14 & 7:
            return False
        number, opcode = low >> 24 & 0xFF, self._opcode[at]
        index: Value | None = (0, 0, frozenset())
        if opcode == 0xB82:
            index = register(state, number)
        elif opcode == 0xABB:
            index = uniform_register(state, number)
        elif number:
            return False
        if index is None or begin + index[1] + size > 1 << 16:
            return False
        if index[1] and self._architecture.gives_address(begin + index[0]):
            return False
        sources |= index[2]
        spans.add((begin + index[0], begin + index[1] + size))
        return True

    def _returns_known(self) -> bool:
        """Tell whether each call hands the place behind it to the function as the one to return to."""
        for back in self._returns:
            begin = max(back - 1 - CALL_REACH, 0)
            if not any(
                self._opcode[at] == MOVE and self._low[at] >> 32 == back * INSTRUCTION for at in range(begin, back - 1)
            ):
                return False
        return True


def _forget(state: State, numbers: tuple[int, ...] | None) -> None:
    """Leave out registers; None: all."""
    if numbers is None:
        state.clear()
    elif state:
        for number in numbers:
            state.pop(number, None)


def _joined(known: State, other: State) -> State:
    """Keep what both agree on: `known` itself, if that is all of it."""
    lost: list[int] = []
    wider: State = {}
    for number, value in known.items():
        partner = other.get(number)
        if partner is value:
            continue
        if partner is None or partner[:2] != value[:2]:
            lost.append(number)
        elif not partner[2] <= value[2]:
            wider[number] = (value[0], value[1], value[2] | partner[2])
    if not lost and not wider:
        return known
    found = {**known, **wider}
    for number in lost:
        del found[number]
    return found
