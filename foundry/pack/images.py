"""Images and kernels: handles with their lifetimes, the bytes to keep."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from foundry.binary.fatbin import FatbinError, unpack
from foundry.findings import IMAGE_KEPT_WHOLE, SPOOL_BLOB_MISSING, Finding, Severity
from foundry.model import NONE, Format, Image, Kernel
from foundry.pack.blobs import BlobStore
from foundry.spool import Spool, events


@dataclass(slots=True)
class Load:
    """One load by the program, before it is known whether it is kept."""

    event: events.Image
    instance: int
    context: int


@dataclass(frozen=True, slots=True)
class KernelState:
    """A kernel as the spool last described it; `load` is NONE where its image is not known."""

    load: int
    name: str
    parameters: tuple[tuple[int, int], ...]
    attributes: tuple[tuple[int, int], ...]


class Images:
    """Folds the image and kernel events of a process."""

    def __init__(self) -> None:
        self.loads: list[Load] = []
        self._loaded: dict[int, int] = {}
        self._instances: dict[bytes, int] = {}
        self._restored: dict[int, int] = {}
        self._numbers: dict[tuple[bytes, int], int] = {}
        self._states: dict[int, KernelState] = {}
        self._ids: dict[tuple[KernelState, int], int] = {}

    def image(self, event: events.Image, context: int) -> None:
        """Note a load. What the restore engine loaded is the program's load of that number, whichever comes first."""
        instance = self._restored.pop(event.handle, None)
        if instance is None:
            instance = self._instances.get(event.key, 0)
            self._instances[event.key] = instance + 1
        number = self._numbers.setdefault((event.key, instance), len(self.loads))
        self._loaded[event.handle] = number
        if number == len(self.loads):
            self.loads.append(Load(event, instance, context))

    def restored(self, event: events.ImageRestored) -> None:
        """Note that the next load of a handle is the restore engine's."""
        self._restored[event.handle] = event.instance

    def gone(self, event: events.ImageGone) -> int:
        """Note an unload and return the load that it ends."""
        return self._loaded.pop(event.handle, NONE)

    def load_of(self, handle: int) -> int:
        """Find the load that a handle stands for now."""
        return self._loaded.get(handle, NONE)

    def kernel(self, event: events.Kernel) -> None:
        """Note a kernel's state; the handle means this from now on."""
        load = self.load_of(event.image)
        self._states[event.handle] = KernelState(load, event.name, event.parameters, tuple(sorted(event.attributes)))

    def kernel_id(self, handle: int, device: int) -> int:
        """Give the id of the kernel that a handle stands for now, on that device."""
        state = self._states.get(handle)
        if state is None:
            return NONE
        return self._ids.setdefault((state, device), len(self._ids))

    @property
    def kernels(self) -> list[tuple[KernelState, int]]:
        """All kernels that were given an id, with their device."""
        return list(self._ids)


class Keeper:
    """Turns the loads that are kept into images of the model."""

    def __init__(self, spool: Spool, store: BlobStore, architecture: int | None, findings: list[Finding]) -> None:
        self._spool = spool
        self._store = store
        self._architecture = architecture
        self._findings = findings
        self._done: dict[int, tuple[int, bool]] = {}

    def keep(self, load: Load, in_graphs: bool) -> Image:
        """Read the load's bytes, unpack them where that is safe, and make the model's image.

        What the driver compiles stays as it was handed over: linking would give other code than the driver runs.
        """
        event = load.event
        if event.blob not in self._done:
            self._done[event.blob] = self._read(event)
        blob, unpacked = self._done[event.blob]
        return Image(
            key=event.key,
            instance=load.instance,
            api=event.api,
            format=event.format,
            blob=blob,
            original=NONE,
            size=event.size,
            unpacked=unpacked,
            context=load.context,
            options=event.options,
            in_graphs=in_graphs,
            provenance=PurePosixPath(event.provenance).name,
            build_id=event.build_id,
            offset=event.offset,
        )

    def _read(self, event: events.Image) -> tuple[int, bool]:
        where = f"{self._spool.begin.role}, image {event.key.hex()[:12]}"
        data = self._spool.blob(event.blob)
        if data is None:
            text = f"`blob.{event.blob}` is missing from the spool"
            self._findings.append(Finding(SPOOL_BLOB_MISSING, Severity.ERROR, text, where))
            return NONE, False
        cubin = self._cubin(data, event, where) if event.format == Format.FATBIN else None
        return self._store.add(data if cubin is None else cubin), cubin is not None

    def _cubin(self, data: bytes, event: events.Image, where: str) -> bytes | None:
        try:
            if self._architecture is None:
                raise FatbinError("the process has devices of several architectures, or none")
            return unpack(data, self._architecture)
        except FatbinError as error:
            name = PurePosixPath(event.provenance).name or "memory"
            text = f"fatbin of {event.size} bytes from `{name}` is kept whole: {error}"
            self._findings.append(Finding(IMAGE_KEPT_WHOLE, Severity.NOTE, text, where))
            return None


def model_kernel(state: KernelState, device: int, image_ids: dict[int, int]) -> Kernel:
    """Make the model's kernel."""
    return Kernel(image_ids.get(state.load, NONE), state.name, device, state.parameters, state.attributes)
