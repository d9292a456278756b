"""One start of a SGLang scheduler process: the size of its KV cache, and the ground of its graphs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from foundry import capi
from foundry.capi import Hook, Mode
from foundry.engines import digests, garbage, notes, starting
from foundry.engines.passes import Pass
from foundry.engines.protocol import tell
from foundry.engines.sglang import settings
from foundry.engines.starting import line
from foundry.torch import commit

ENGINE = "sglang"
POOL = "memory_pool"
LEEWAY = 1.02
"""So much more than what would fit now a KV cache may hold: SGLang leaves a share of the memory free."""


class Start(starting.Start):
    """Made when the scheduler asks how many tokens its KV cache may hold."""

    def __init__(self, hook: Hook, configurator: Any) -> None:
        super().__init__(hook, ENGINE, "SGLang", settings.pins(configurator))
        self._shape_ran = False
        refusal = self.objection(settings.objection(configurator))
        if refusal is not None:
            self.refuse(refusal)

    def is_first_shape(self) -> bool:
        """Whether this is the first shape of prefill that asks. It runs: else the first request loads its kernels."""
        first, self._shape_ran = not self._shape_ran, True
        return first


_starts: list[Start | None] = []
"""The first target model of this process; None where a fault left it alone."""


def current() -> Start | None:
    """Return the start of this process, None if this adapter leaves it alone."""
    start = _starts[0] if _starts else None
    return start if start is not None and start.active else None


def current_pass() -> Pass | None:
    """Return the pass that an engine's capture loop is in, None outside of one."""
    start = current()
    return start.current if start is not None else None


def _begin(configurator: Any) -> Start | None:
    hook = capi.load()
    if hook.mode() is Mode.OFF or configurator.is_draft_worker:
        return None
    if _starts:
        tell(ENGINE, "graphs are captured as always: a second engine in one process is not done yet")
        return None
    _starts.append(None)
    try:
        _starts[0] = Start(hook, configurator)
    except Exception as error:
        tell(ENGINE, f"graphs are captured as always: {line(error)}")
    return current()


def pool_config(plain: Callable[..., Any], configurator: Any, pre_model_load_memory: Any) -> Any:
    """Stand in for `_resolve_memory_pool_config`: a restore takes the sizes of the pools from the capture."""
    start = _begin(configurator)
    found = plain(configurator, pre_model_load_memory)
    if start is None:
        return found
    try:
        if start.restores and start.note is not None:
            fits = found.max_total_num_tokens
            pinned = type(found)(**start.note[POOL])
            if pinned.max_total_num_tokens > fits * LEEWAY:
                start.refuse(f"GPU memory for {fits} tokens is free, the capture's KV cache has {start.note[POOL]}")
            else:
                found = pinned
        settled = start.settle()
        if start.captures:
            notes.keep(start.hook, start.begin_note, {"pins": start.pins, POOL: settings.of_pool(found), **settled})
    except Exception as error:
        start.refuse(line(error))
    return found


def load_model(plain: Callable[[Any], None], runner: Any) -> None:
    """Stand in for `ModelRunner.load_model`."""
    if capi.load().mode() is Mode.RESTORE:
        digests.ahead(digests.TRITON)
    plain(runner)


def cuda_graphs(plain: Callable[..., Any], runner: Any, *args: Any, **kwargs: Any) -> Any:
    """Stand in for `ModelRunner.init_cuda_graphs`: lay the ground, let the loops run, and say that they are done."""
    start = current()
    if start is None or runner.is_draft_worker:
        result = plain(runner, *args, **kwargs)
        if _starts and not runner.is_draft_worker:
            commit()
        return result
    if start.restores:
        digests.wait()
    try:
        start.lay(settings.ground(runner))
    except Exception as error:
        start.refuse(line(error))
    try:
        with garbage.spared() if start.restores else nullcontext():
            result = plain(runner, *args, **kwargs)
    finally:
        start.current = None
    try:
        if start.captures:
            notes.keep(start.hook, start.end_note, {"whole": True})
    except Exception as error:
        start.refuse(line(error))
    commit()
    return result
