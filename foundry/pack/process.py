"""One process: folds its events in order, then puts the pieces of the model together."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

import numpy as np
import numpy.typing as npt

from foundry.findings import (
    ALLOCATION_OUTSIDE,
    CAPTURE_FAILED,
    EXEC_CHANGED,
    LABEL_REPEATED,
    RANGE_MISSING,
    SPOOL_NO_DRIVER,
    Finding,
    Severity,
)
from foundry.machine import reads_of
from foundry.model import NONE, Context, Device, Graph, Image, Process
from foundry.model.constants import TIME_SUFFIXES
from foundry.model.memory import placed
from foundry.model.restorable import Problem, Restorable, graph_ends
from foundry.model.tables import frozen
from foundry.pack.audit import audit
from foundry.pack.blobs import BlobStore
from foundry.pack.bodies import ResolvedBody, Resolver
from foundry.pack.driver_events import DriverEvents
from foundry.pack.grouping import Grouping
from foundry.pack.images import Images, Keeper, model_kernel
from foundry.pack.libraries import Origin, model_libraries
from foundry.pack.memory import Memory
from foundry.spool import Entry, Spool, events


class PendingGraph:
    """A graph with ids for handles, before groups are made."""

    __slots__ = ("body", "event", "first_use", "problem", "step")

    def __init__(self, event: events.Graph, body: ResolvedBody, step: int) -> None:
        self.event = event
        self.body = body
        self.step = step
        self.first_use = NONE
        self.problem: Problem | None = body.problems[0] if body.problems else None


class ProcessPacker:
    """Folds the events of one process."""

    def __init__(self, spool: Spool, store: BlobStore, findings: list[Finding], origin: Origin) -> None:
        self.spool, self.store, self.findings, self.origin = spool, store, findings, origin
        self.role = re.sub(r"[^A-Za-z0-9._-]", "_", spool.folder.name)[:128]
        self.memory = Memory()
        self.images = Images()
        self.driver: events.Driver | None = None
        self.library_files: set[tuple[str, str]] = set()
        self.devices: dict[int, Device] = {}
        self.contexts: list[Context] = []
        self.graphs: list[PendingGraph] = []
        self.metadata: dict[tuple[str, str], str] = {}
        self.counters: dict[str, int] = {}
        self.driver_events = DriverEvents()
        self.committed = NONE
        self._context_ids: dict[int, int] = {}
        self._execs: dict[int, PendingGraph] = {}
        self._launched = 0
        self._ranked: int | None = None
        self._attribute_ids: dict[bytes, int] = {}
        self._attribute_sets: dict[tuple[tuple[int, bytes], ...], int] = {}
        self._reasons: dict[str, int] = {}

    def tell(self, code: str, severity: Severity, text: str, where: str = "") -> None:
        """Add a finding about this process."""
        self.findings.append(Finding(code, severity, text, f"{self.role}, {where}" if where else self.role))

    def fold(self, entry: Entry) -> None:
        """Take one event into account."""
        event, memory, images = entry.event, self.memory, self.images
        if isinstance(event, events.Allocation):
            memory.allocation(event, entry.thread)
        elif isinstance(event, events.Free):
            memory.free(event, entry.thread)
        elif isinstance(event, events.Range):
            memory.range(event, images.load_of(event.owner))
        elif isinstance(event, events.RangeGone):
            memory.range_gone(event)
        elif isinstance(event, events.Contents):
            memory.contents(event)
        elif isinstance(event, events.Allocator):
            memory.allocators.fold(event)
        elif isinstance(event, events.Phase):
            memory.phase(event)
        elif isinstance(event, events.Image):
            images.image(event, self._context_ids.get(event.context, NONE))
        elif isinstance(event, events.ImageRestored):
            images.restored(event)
        elif isinstance(event, events.ImageGone):
            memory.owner_gone(images.gone(event))
        elif isinstance(event, events.Kernel):
            images.kernel(event)
        elif isinstance(event, events.Graph):
            self._graph(event)
        else:
            self._fold_small(event)

    def _fold_small(self, event: tuple[object, ...]) -> None:
        if isinstance(event, events.Driver):
            self.driver = event
        elif isinstance(event, events.Device):
            device = Device(*event)
            none = not device.arena_size or not device.sound_range
            self.devices[event.ordinal] = replace(device, base=0, arena_size=0) if none else device
        elif isinstance(event, events.Context):
            self._context_ids[event.handle] = len(self.contexts)
            self.contexts.append(Context(event.device, bool(event.primary), event.ordinal))
        elif isinstance(event, events.Libraries):
            self.library_files.update(event.files)
        elif isinstance(event, events.GraphMetadata):
            self.metadata[event.set, event.key] = event.metadata
        elif isinstance(event, events.ExecGone):
            self._execs.pop(event.exec, None)
        elif isinstance(event, events.ExecChanged):
            pending = self._execs.get(event.exec)
            if pending is not None:
                pending.problem = Problem(EXEC_CHANGED, f"the exec was changed after it was made: {event.how}")
        elif isinstance(event, events.ExecLaunched):
            pending = self._execs.get(event.exec)
            if pending is not None and pending.first_use == NONE:
                pending.first_use, self._launched = self._launched, self._launched + 1
                pending.problem = pending.problem or self.driver_events.problem(pending.body)
        elif isinstance(event, events.EventCreated):
            self.driver_events.created(event.handle, event.flags)
        elif isinstance(event, events.EventGone):
            self.driver_events.destroyed(event.handle)
        elif isinstance(event, events.CaptureFailed):
            self.tell(CAPTURE_FAILED, Severity.WARN, f"a stream capture ended with driver error {event.result}")
        elif isinstance(event, events.Counters):
            self.counters.update(event.values)
        elif isinstance(event, events.Told):
            self.tell(event.code, Severity.WARN, event.text)
        elif isinstance(event, events.Commit):
            self.committed, self._ranked = self.memory.step, self._launched

    def _graph(self, event: events.Graph) -> None:
        if self.memory.in_scratch() and not (event.set or event.key):
            self._execs.pop(event.exec, None)
            return
        resolver = Resolver(
            kernel=lambda handle: self.images.kernel_id(handle, event.device),
            event=self.driver_events.number,
            context=lambda handle: self._context_ids.get(handle, NONE),
            graph_context=self._context_ids.get(event.context, NONE),
            attribute_ids=self._attribute_ids,
            attribute_sets=self._attribute_sets,
            reasons=self._reasons,
        )
        body = resolver.resolve(event.body)
        light = event._replace(context=resolver.graph_context, body=type(event.body)())
        pending = PendingGraph(light, body, self.memory.tick())
        self._execs[event.exec] = pending
        self.graphs.append(pending)

    def finish(self, all_kernels: bool, blobs: Callable[[Sequence[bytes]], None] | None) -> Process:
        """Put the process together. `blobs` is called with what is stored by then, once all images are."""
        graphs = self._named()
        if self.driver is None:
            self.tell(SPOOL_NO_DRIVER, Severity.WARN, "the spool does not name a driver")
        for device in self.devices.values():
            if not device.arena_size:
                self.tell(RANGE_MISSING, Severity.WARN, f"no address range was had on device {device.ordinal}")
        kernel_ids = self._renumber_kernels(graphs)
        states = self.images.kernels
        used = {states[old][0].load for old in kernel_ids}
        image_ids: dict[int, int] = {}
        images: list[Image] = []
        keeper = Keeper(self.spool, self.store, self._architecture(), self.findings)
        for number, load in enumerate(self.images.loads):
            if all_kernels or number in used:
                image_ids[number] = len(images)
                images.append(keeper.keep(load, number in used))
        if blobs:
            blobs(self.store.blobs)
        allocations = self.memory.table()
        inside = placed(allocations, tuple(self.devices.values()))
        if not inside.all():
            text = f"{int((~inside).sum())} allocations lie outside the arena that they name; they were left out"
            self.tell(ALLOCATION_OUTSIDE, Severity.ERROR, text)
            allocations = frozen(allocations[inside])
        kernels = [model_kernel(*states[old], image_ids) for old in kernel_ids]
        for pending in graphs:
            if pending.problem is None and pending.first_use == NONE:
                pending.problem = self.driver_events.problem(pending.body)
        event_ids = self._renumber_events(graphs)
        grouping = Grouping()
        tops = [grouping.add(pending.body) for pending in graphs]
        contents, doubts = self.memory.recorded.keep(
            self.spool.blob,
            self.store,
            self.memory.rows,
            tuple(self.devices.values()),
            self.memory.ranges,
            self.findings,
            self.role,
        )
        doubts.update(self.memory.races(max([self.committed, *(pending.step for pending in graphs)])))
        begin, driver = self.spool.begin, self.driver or events.Driver(0, 0, "")
        taken = {pending.event.key for pending in graphs if not pending.event.set}
        unlabelled = (key for key in map("#{}".format, itertools.count()) if key not in taken)
        process = Process(
            role=self.role,
            executable=PurePosixPath(begin.executable).name,
            mode=begin.mode,
            ranks=dict(begin.ranks),
            driver_version=driver.version,
            driver_library=PurePosixPath(driver.library).name,
            simulated=bool(driver.simulated),
            complete=self.spool.ended,
            committed=self.committed,
            devices=tuple(self.devices[ordinal] for ordinal in sorted(self.devices)),
            contexts=tuple(self.contexts),
            allocations=allocations,
            ranges=self.memory.kept_ranges(image_ids),
            contents=contents,
            images=tuple(images),
            kernels=tuple(kernels),
            attribute_sets=tuple(self._attribute_sets),
            node_reasons=tuple(self._reasons),
            groups=tuple(grouping.groups),
            graphs=tuple(
                self._model_graph(pending, top, unlabelled) for pending, top in zip(graphs, tops, strict=True)
            ),
            bodies=grouping.body_table(),
            children=grouping.child_table(),
            launches=grouping.launches(),
            parameters=grouping.parameters(),
            memsets=grouping.memsets(),
            copies=grouping.copies(),
            event_nodes=frozen(np.array(grouping.event_nodes(), np.uint32)),
            events=self.driver_events.flags(event_ids),
            phases=tuple(self.memory.phases),
            counters={name: value for name, value in self.counters.items() if not name.endswith(TIME_SUFFIXES)},
            libraries=model_libraries(self.library_files, self.origin),
            spent={name: value for name, value in self.counters.items() if name.endswith(TIME_SUFFIXES)},
        )
        process = replace(process, graphs=self._judged(process))
        reads = reads_of(process, self.store.blobs.__getitem__)
        return audit(process, self.memory.ranges, self.findings, reads, _renumbered(doubts, inside))

    def _judged(self, process: Process) -> tuple[Graph, ...]:
        """Give a reason to the graphs whose nodes name what is not there."""
        judge = Restorable(process, [len(blob) for blob in self.store.blobs])
        judged = []
        for graph, end in zip(process.graphs, graph_ends(process), strict=True):
            problem = judge.problem(graph, end) if graph.restorable else None
            judged.append(replace(graph, reason_code=problem.code, reason=problem.sentence()) if problem else graph)
        return tuple(judged)

    def _named(self) -> list[PendingGraph]:
        """Drop the earlier graphs of a label that was given twice."""
        last: dict[tuple[str, str], PendingGraph] = {}
        for pending in self.graphs:
            if pending.event.set or pending.event.key:
                last[pending.event.set, pending.event.key] = pending
        kept = []
        for pending in self.graphs:
            label = (pending.event.set, pending.event.key)
            if label != ("", "") and last[label] is not pending:
                text = f"the label `{label[0]}` `{label[1]}` was given again; the later graph has it"
                self.tell(LABEL_REPEATED, Severity.WARN, text)
            else:
                kept.append(pending)
        return kept

    def _architecture(self) -> int | None:
        found = {device.compute_major * 10 + device.compute_minor for device in self.devices.values()}
        return found.pop() if len(found) == 1 else None

    def _renumber_kernels(self, graphs: list[PendingGraph]) -> list[int]:
        """Renumber the kernels of the kept graphs in order of first use; return their old numbers."""
        order: dict[int, int] = {}
        for body in _all_bodies(graphs):
            column = body.nodes["kernel"]
            numbers, first = np.unique(column, return_index=True)
            for number in numbers[np.argsort(first)].tolist():
                if number != NONE:
                    order.setdefault(number, len(order))
            if len(numbers):
                mapped = np.array([order.get(number, NONE) for number in numbers.tolist()], np.uint32)
                body.nodes["kernel"] = mapped[np.searchsorted(numbers, column)]
        return list(order)

    def _renumber_events(self, graphs: list[PendingGraph]) -> list[int]:
        order: dict[int, int] = {}
        for body in _all_bodies(graphs):
            body.events = [number if number == NONE else order.setdefault(number, len(order)) for number in body.events]
        return list(order)

    def _rank(self, pending: PendingGraph) -> int:
        """Rank by first use up to the last commit: later ones depend on traffic, and on when the archive is written."""
        late = self._ranked is not None and pending.first_use != NONE and pending.first_use >= self._ranked
        return NONE if late else pending.first_use

    def _model_graph(self, pending: PendingGraph, top: int, unlabelled: Iterator[str]) -> Graph:
        event = pending.event
        labelled = bool(event.set or event.key)
        key = event.key if labelled else next(unlabelled)
        problem = pending.problem
        return Graph(
            set=event.set,
            key=key,
            metadata=self.metadata.get((event.set, event.key), "") if labelled else "",
            body=top,
            step=pending.step,
            device=event.device,
            context=event.context,
            instantiate_flags=event.instantiate_flags,
            captured=bool(event.captured),
            first_use=self._rank(pending),
            references=(),
            dangling_words=0,
            reason_code=problem.code if problem else "",
            reason=problem.sentence() if problem else "",
        )


def _renumbered(doubts: dict[int, Problem], kept: npt.NDArray[np.bool_]) -> dict[int, Problem]:
    """Give what is said of rows by their numbers in the table without those that were left out."""
    numbers = np.cumsum(kept) - 1
    return {int(numbers[row]): problem for row, problem in doubts.items() if kept[row]}


def _all_bodies(graphs: list[PendingGraph]) -> list[ResolvedBody]:
    found: list[ResolvedBody] = []

    def visit(body: ResolvedBody) -> None:
        found.append(body)
        for child in body.children:
            visit(child)

    for pending in graphs:
        visit(pending.body)
    return found
