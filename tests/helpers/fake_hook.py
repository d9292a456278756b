"""A hook without a driver: remembers what it was told, answers from a dictionary."""

from __future__ import annotations

from collections.abc import Callable

from foundry.capi import DriverError, MisuseError, Mode, UnavailableError


class FakeHook:
    """Stands in for `foundry.capi.Hook`. What a capture left in `archive` is what a restore is given."""

    def __init__(self, mode: Mode = Mode.OFF, archive: dict[tuple[str, str], str | None] | None = None) -> None:
        self.state = mode
        self.archive = dict(archive or {})
        self.events: list[str] = []
        self.totals: dict[str, int] = {}
        self.scratch_depth = 0
        self.label: tuple[str, str] | None = None
        self.instantiated = False
        self.given_up: dict[str, str] = {}
        self.unavailable: dict[str, str] = {}
        """Calls that answer no, with the reason."""
        self.launch_result = 0
        self.kernels: dict[str, Callable[[], object]] = {}
        """What a launch of a restored graph does, by key."""
        self.base = 0

    def _maybe_fail(self, name: str) -> None:
        if name in self.unavailable:
            raise UnavailableError(self.unavailable[name])

    def mode(self) -> Mode:
        return self.state

    def reason(self) -> str:
        return "fake"

    def scratch_begin(self, name: str) -> None:
        self._maybe_fail("scratch_begin")
        self.scratch_depth += 1
        self.events.append(f"scratch begin {name}")

    def scratch_end(self) -> None:
        if not self.scratch_depth:
            raise MisuseError("no phase")
        self.scratch_depth -= 1
        self.events.append("scratch end")

    def graph_begin(self, set_name: str, key: str) -> None:
        self._maybe_fail("graph_begin")
        if self.label is not None:
            raise MisuseError("label open")
        self.label = (set_name, key)
        self.instantiated = False
        self.events.append(f"label {set_name}/{key}")

    def graph_end(self, metadata: str | None) -> None:
        if self.label is None:
            raise MisuseError("no label")
        if self.instantiated:
            self.archive[self.label] = metadata
        self.label = None
        self.events.append("label end")

    def instantiate(self) -> None:
        """What the driver's hook sees: the first exec since a label began belongs to it."""
        self.events.append("instantiate" if self.label is None or self.instantiated else "instantiate labelled")
        if self.label is not None:
            self.instantiated = True

    def find(self, set_name: str, key: str) -> int:
        self._maybe_fail("find")
        names = list(self.archive)
        if (set_name, key) not in self.archive:
            raise UnavailableError(f"the archive has no graph `{key}`")
        return 1000 + names.index((set_name, key))

    def metadata(self, graph: int) -> str | None:
        return list(self.archive.values())[graph - 1000]

    def wait(self, graph: int) -> None:
        self._maybe_fail("wait")
        self.events.append(f"wait {graph}")

    def exec(self, graph: int) -> int:
        return graph + 1

    def launch(self, graph: int, stream: int) -> None:
        if self.launch_result:
            raise DriverError("launch", result=self.launch_result)
        self.events.append(f"launch {graph} on {stream}")
        self.kernels.get(list(self.archive)[graph - 1000][1], lambda: None)()

    def give_up(self, graph: int, reason: str) -> None:
        self.given_up[list(self.archive)[graph - 1000][1]] = reason

    def range_base(self, device: int) -> int:
        return self.base

    def commit(self) -> None:
        self._maybe_fail("commit")
        self.events.append("commit")

    def count(self, name: str, add: int = 1) -> None:
        self.totals[name] = self.totals.get(name, 0) + add

    def counter(self, name: str) -> int:
        return self.totals.get(name, 0)
