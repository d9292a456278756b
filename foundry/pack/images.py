"""Images and kernels: handles with their lifetimes, the bytes to keep."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from foundry.binary.fatbin import FatbinError, unpack
from foundry.findings import IMAGE_KEPT_WHOLE, IMAGE_NOT_LINKED, SPOOL_BLOB_MISSING, Finding, Severity
from foundry.model import NONE, Format, Image, Kernel
from foundry.pack.blobs import BlobStore
from foundry.spool import Spool, events


@dataclass(slots=True)
class Load:
    """One load by the program, before it is known whether it is kept."""

    event: events.Image
    instance: int
    context: int
    linked: events.ImageLinked | None = None


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

    def linked(self, event: events.ImageLinked) -> None:
        """Note what a PTX image was linked to."""
        load = self._loaded.get(event.handle)
        if load is not None:
            self.loads[load].linked = event

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
        self._done: dict[tuple[int, int], tuple[int, int, bool]] = {}

    def keep(self, load: Load, in_graphs: bool) -> Image:
        """Read the load's bytes, unpack them where that is safe, and make the model's image."""
        event = load.event
        blob, original, unpacked = self._bytes(load)
        return Image(
            key=event.key,
            instance=load.instance,
            api=event.api,
            format=event.format,
            blob=blob,
            original=original,
            size=event.size,
            unpacked=unpacked,
            context=load.context,
            options=event.options,
            in_graphs=in_graphs,
            provenance=PurePosixPath(event.provenance).name,
            build_id=event.build_id,
            offset=event.offset,
        )

    def _bytes(self, load: Load) -> tuple[int, int, bool]:
        place = (load.event.blob, load.linked.blob if load.linked else NONE)
        if place not in self._done:
            self._done[place] = self._read(load)
        return self._done[place]

    def _read(self, load: Load) -> tuple[int, int, bool]:
        event, where = load.event, f"{self._spool.begin.role}, image {load.event.key.hex()[:12]}"
        data = self._spool.blob(event.blob)
        if data is None:
            text = f"`blob.{event.blob}` is missing from the spool"
            self._findings.append(Finding(SPOOL_BLOB_MISSING, Severity.ERROR, text, where))
            return NONE, NONE, False
        if event.format == Format.FATBIN:
            cubin = self._cubin(data, event, where, quiet=load.linked is not None)
            if cubin is not None:
                return self._store.add(cubin), NONE, True
        linked = self._spool.blob(load.linked.blob) if load.linked else None
        if linked is not None:
            return self._store.add(linked), self._store.add(data), False
        if event.format == Format.PTX:
            text = "the driver will compile this PTX again on a restore: its linked cubin was not recorded"
            self._findings.append(Finding(IMAGE_NOT_LINKED, Severity.NOTE, text, where))
        return self._store.add(data), NONE, False

    def _cubin(self, data: bytes, event: events.Image, where: str, *, quiet: bool) -> bytes | None:
        try:
            if self._architecture is None:
                raise FatbinError("the process has devices of several architectures, or none")
            return unpack(data, self._architecture)
        except FatbinError as error:
            if not quiet:
                name = PurePosixPath(event.provenance).name or "memory"
                text = f"fatbin of {event.size} bytes from `{name}` is kept whole: {error}"
                self._findings.append(Finding(IMAGE_KEPT_WHOLE, Severity.NOTE, text, where))
            return None


def model_kernel(state: KernelState, device: int, image_ids: dict[int, int]) -> Kernel:
    """Make the model's kernel."""
    return Kernel(image_ids.get(state.load, NONE), state.name, device, state.parameters, state.attributes)
