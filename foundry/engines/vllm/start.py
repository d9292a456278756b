"""One start of a vLLM engine in this process: whether it is captured or restored, and what was pinned for it."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from foundry import capi
from foundry.capi import Hook, Mode
from foundry.engines import digests, garbage, notes, starting
from foundry.engines.passes import Pass
from foundry.engines.protocol import tell, version_of
from foundry.engines.starting import line
from foundry.engines.vllm import compiled, settings
from foundry.torch import commit, memory

if TYPE_CHECKING:
    from foundry.engines.vllm.pieces import Pieces

ENGINE = "vllm"
ARTIFACT = "compiled_model"
"""In the note of the end: where the compiled model is kept."""


class Start(starting.Start):
    """Made when the engine asks how much memory its KV cache may take."""

    def __init__(self, hook: Hook, worker: Any) -> None:
        super().__init__(hook, ENGINE, "vLLM", settings.pins(worker.vllm_config, version_of(ENGINE)))
        self.pieces: Pieces | None = None
        """Who answers for the pieces of a compiled model, while the capture loop runs."""
        refusal = self._refusal(worker)
        if refusal is not None:
            self.refuse(refusal)
        elif self.captures:
            compiled.keep_as_one_artifact(worker.vllm_config)
        elif self.end is not None:
            compiled.keep_as_captured(worker.vllm_config, self.end.get(ARTIFACT))

    def _refusal(self, worker: Any) -> str | None:
        if self.end is not None and self.end["workspace_bytes"]:
            workspace = "an attention or expert workspace, whose size warm-ups find out,"
        else:
            workspace = None
        reason = self.objection(settings.objection(worker.vllm_config) or workspace)
        if reason is not None or self.note is None:
            return reason
        free = torch.cuda.mem_get_info(self.device)[0]
        if free < self.note["kv_cache_bytes"]:
            return f"{free} bytes of GPU memory are free, the capture's KV cache takes {self.note['kv_cache_bytes']}"
        return None

    def lay_ground(self, runner: Any) -> Pass | None:
        """Begin the pass over the graphs of a runner, where its capture loop begins; None if it was refused."""
        try:
            return self.lay(settings.ground(runner))
        except Exception as error:
            self.refuse(line(error))
            return None


_starts: weakref.WeakKeyDictionary[Any, Start] = weakref.WeakKeyDictionary()
_taken = False


def of(runner: Any) -> Start | None:
    """Return the start that a model runner belongs to, None if this adapter leaves it alone."""
    start = _starts.get(runner)
    return start if start is not None and start.active else None


def begin(worker: Any) -> Start | None:
    """Decide what happens to the engine of a worker; None where no hook is armed."""
    global _taken
    hook = capi.load()
    if hook.mode() is Mode.OFF:
        return None
    if _taken:
        tell(ENGINE, "graphs are captured as always: a second engine in one process is not done yet")
        return None
    _taken = True
    try:
        start = Start(hook, worker)
    except Exception as error:
        tell(ENGINE, f"graphs are captured as always: {line(error)}")
        return None
    _starts[worker.model_runner] = start
    return start if start.active else None


def init_device(plain: Callable[[Any], None], worker: Any) -> None:
    """Stand in for `Worker.init_device`, in which vLLM collects all garbage, as it does five times more until its end.

    A restore has the others look at what is made behind this one; vLLM itself sets all aside at last.
    """
    restores = capi.load().mode() is Mode.RESTORE
    if restores:
        digests.ahead(digests.TRITON, digests.TORCH)
    plain(worker)
    if restores:
        garbage.set_aside()


def available_memory(plain: Callable[[Any], int], worker: Any) -> int:
    """Stand in for `Worker.determine_available_memory`: a restore takes the KV cache's size from the capture.

    It profiles nothing. But where the model is compiled, one forward pass has it loaded, which would be left to the
    first request otherwise; and the V1 runner forbids later what was not seen in that pass.
    """
    start = begin(worker)
    if start is None:
        return plain(worker)
    if start.restores and start.note is not None:
        if _compiles(worker) or not worker.use_v2_model_runner:
            digests.wait()
            options = {"skip_attn": True} if worker.use_v2_model_runner else {}
            runner = worker.model_runner
            with _apart(start, "compiled model"), garbage.paused():
                runner._dummy_run(runner.max_num_tokens, is_profile=True, **options)
        start.hook.count("profile_runs_skipped")
        pinned = int(start.note["kv_cache_bytes"])
        worker.available_kv_cache_memory_bytes = pinned
        # What profiling gave back to the driver would else be free here, for the KV cache to lie in.
        start.settle()
        return pinned
    available = plain(worker)
    settled = start.settle()
    notes.keep(start.hook, start.begin_note, {"pins": start.pins, "kv_cache_bytes": int(available), **settled})
    return available


def profiled(plain: Callable[..., Any], runner: Any, name: str) -> Any:
    """Stand in for what a runner does to find out about memory: what it leaves behind, a restore does not have."""
    start = of(runner)
    if start is None:
        return plain(runner)
    with _apart(start, name):
        return plain(runner)


@contextmanager
def _apart(start: Start, name: str) -> Iterator[None]:
    """Open a scratch phase whose memory is given back at its end: the KV cache takes what is free then."""
    with memory.scratch(start.hook, f"{ENGINE} {name}", start.device):
        yield
        torch.cuda.synchronize(start.device)
        memory.clear_workspaces()
    memory.release_scratch()
    torch.cuda.empty_cache()


def _compiles(worker: Any) -> bool:
    mode = worker.vllm_config.compilation_config.mode
    return getattr(mode, "name", str(mode)) not in ("NONE", "None")


def ready(worker: Any) -> None:
    """Say that the engine has warmed up, and its capture is whole. Where it was refused, too: its graphs are stored."""
    start = _starts.get(worker.model_runner)
    if start is not None:
        start.current = None
        try:
            if start.captures:
                found = {"workspace_bytes": _workspace_bytes(), ARTIFACT: compiled.artifact(worker.vllm_config)}
                notes.keep(start.hook, start.end_note, found)
        except Exception as error:
            start.refuse(line(error))
        commit()


def _workspace_bytes() -> int:
    from vllm.v1.worker import workspace

    if not workspace.is_workspace_manager_initialized():
        return 0
    held = workspace.current_workspace_manager()._current_workspaces
    return sum(int(one.numel() * one.element_size()) for one in held if one is not None)
