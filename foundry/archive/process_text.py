"""A process without its tables, as the JSON of its PROCESS section."""

from __future__ import annotations

from typing import Any

from foundry.archive.text import (
    ContentError,
    Fields,
    hexadecimal,
    integer,
    items,
    pair,
    signed,
    text,
    wide,
    widened,
)
from foundry.model import Contents, Context, Device, Graph, Image, Kernel, Library, Phase, Process, Range

_WORD = 0xFFFFFFFF


def _word(value: Any, where: str) -> int:
    return integer(value, where, _WORD)


def encode_process(process: Process) -> dict[str, Any]:
    """Make the JSON object of a process."""
    return {
        "role": process.role,
        "executable": process.executable,
        "mode": process.mode,
        "ranks": process.ranks,
        "driver_version": process.driver_version,
        "driver_library": process.driver_library,
        "simulated": process.simulated,
        "complete": process.complete,
        "committed": process.committed,
        "devices": [_device(device) for device in process.devices],
        "contexts": [
            {"device": item.device, "primary": item.primary, "ordinal": item.ordinal} for item in process.contexts
        ],
        "ranges": [
            {
                "kind": item.kind,
                "address": widened(item.address),
                "size": widened(item.size),
                "image": item.image,
                "name": item.name,
                "born": item.born,
                "died": item.died,
            }
            for item in process.ranges
        ],
        "contents": [
            {"address": widened(item.address), "size": widened(item.size), "blob": item.blob}
            for item in process.contents
        ],
        "images": [_image(image) for image in process.images],
        "kernels": [
            {
                "image": kernel.image,
                "name": kernel.name,
                "device": kernel.device,
                "parameters": [list(parameter) for parameter in kernel.parameters],
                "attributes": [list(attribute) for attribute in kernel.attributes],
            }
            for kernel in process.kernels
        ],
        "attribute_sets": [[[number, value.hex()] for number, value in each] for each in process.attribute_sets],
        "node_reasons": list(process.node_reasons),
        "graphs": [_graph(graph) for graph in process.graphs],
        "events": list(process.events),
        "phases": [
            {"kind": phase.kind, "name": phase.name, "begin": phase.begin, "end": phase.end} for phase in process.phases
        ],
        "counters": {name: widened(value) for name, value in process.counters.items()},
        "libraries": [
            {"name": item.name, "build_id": item.build_id, "package": item.package, "version": item.version}
            for item in process.libraries
        ],
    }


def decode_process(fields: Fields, tables: dict[str, Any]) -> Process:
    """Read the JSON object of a process; `tables` are the fields that other sections hold."""
    return Process(
        role=fields.text("role"),
        executable=fields.text("executable"),
        mode=fields.integer("mode", _WORD),
        ranks=fields.texts("ranks"),
        driver_version=fields.integer("driver_version", _WORD),
        driver_library=fields.text("driver_library"),
        simulated=fields.truth("simulated"),
        complete=fields.truth("complete"),
        committed=fields.integer("committed", _WORD),
        devices=fields.objects("devices", _read_device),
        contexts=fields.objects(
            "contexts",
            lambda item: Context(item.integer("device", _WORD), item.truth("primary"), item.integer("ordinal", _WORD)),
        ),
        ranges=fields.objects("ranges", _read_range),
        contents=fields.objects(
            "contents",
            lambda item: Contents(item.wide("address"), item.wide("size"), item.integer("blob", _WORD)),
        ),
        images=fields.objects("images", _read_image),
        kernels=fields.objects("kernels", _read_kernel),
        attribute_sets=fields.items("attribute_sets", _read_attribute_set),
        node_reasons=fields.items("node_reasons", text),
        graphs=fields.objects("graphs", _read_graph),
        events=fields.words("events"),
        phases=fields.objects(
            "phases",
            lambda item: Phase(
                item.integer("kind", 255), item.text("name"), item.integer("begin", _WORD), item.integer("end", _WORD)
            ),
        ),
        counters=fields.integers("counters"),
        libraries=fields.objects(
            "libraries",
            lambda item: Library(item.text("name"), item.text("build_id"), item.text("package"), item.text("version")),
        ),
        **tables,
    )


def _device(device: Device) -> dict[str, Any]:
    return {
        "ordinal": device.ordinal,
        "name": device.name,
        "uuid": device.uuid.hex(),
        "compute_major": device.compute_major,
        "compute_minor": device.compute_minor,
        "multiprocessors": device.multiprocessors,
        "total_memory": widened(device.total_memory),
        "flags": device.flags,
        "base": widened(device.base),
        "arena_size": widened(device.arena_size),
    }


def _read_device(item: Fields) -> Device:
    return Device(
        ordinal=item.integer("ordinal", _WORD),
        name=item.text("name"),
        uuid=item.hexadecimal("uuid", 16),
        compute_major=item.integer("compute_major", _WORD),
        compute_minor=item.integer("compute_minor", _WORD),
        multiprocessors=item.integer("multiprocessors", _WORD),
        total_memory=item.wide("total_memory"),
        flags=item.integer("flags", _WORD),
        base=item.wide("base"),
        arena_size=item.wide("arena_size"),
    )


def _read_range(item: Fields) -> Range:
    return Range(
        kind=item.integer("kind", 255),
        address=item.wide("address"),
        size=item.wide("size"),
        image=item.integer("image", _WORD),
        name=item.text("name"),
        born=item.integer("born", _WORD),
        died=item.integer("died", _WORD),
    )


def _image(image: Image) -> dict[str, Any]:
    return {
        "key": image.key.hex(),
        "instance": image.instance,
        "api": image.api,
        "format": image.format,
        "blob": image.blob,
        "original": image.original,
        "size": widened(image.size),
        "unpacked": image.unpacked,
        "context": image.context,
        "options": [[option, widened(value)] for option, value in image.options],
        "in_graphs": image.in_graphs,
        "provenance": image.provenance,
        "build_id": image.build_id,
        "offset": widened(image.offset),
    }


def _read_image(item: Fields) -> Image:
    return Image(
        key=item.hexadecimal("key", 32),
        instance=item.integer("instance", _WORD),
        api=item.integer("api", 255),
        format=item.integer("format", 255),
        blob=item.integer("blob", _WORD),
        original=item.integer("original", _WORD),
        size=item.wide("size"),
        unpacked=item.truth("unpacked"),
        context=item.integer("context", _WORD),
        options=item.items("options", pair(_word, wide)),
        in_graphs=item.truth("in_graphs"),
        provenance=item.text("provenance"),
        build_id=item.text("build_id"),
        offset=item.wide("offset"),
    )


def _read_kernel(item: Fields) -> Kernel:
    return Kernel(
        image=item.integer("image", _WORD),
        name=item.text("name"),
        device=item.integer("device", _WORD),
        parameters=item.items("parameters", pair(_word, _word)),
        attributes=item.items("attributes", pair(_word, signed)),
    )


def _read_attribute_set(value: Any, where: str) -> tuple[tuple[int, bytes], ...]:
    return items(value, where, pair(_word, _attribute_value))


def _attribute_value(value: Any, where: str) -> bytes:
    found = hexadecimal(value, where)
    if len(found) > 64:
        raise ContentError(f"`{where}` is longer than 64 bytes")
    return found


def _graph(graph: Graph) -> dict[str, Any]:
    return {
        "set": graph.set,
        "key": graph.key,
        "metadata": graph.metadata,
        "body": graph.body,
        "step": graph.step,
        "device": graph.device,
        "context": graph.context,
        "instantiate_flags": widened(graph.instantiate_flags),
        "captured": graph.captured,
        "first_use": graph.first_use,
        "references": list(graph.references),
        "dangling_words": graph.dangling_words,
        "reason_code": graph.reason_code,
        "reason": graph.reason,
    }


def _read_graph(item: Fields) -> Graph:
    return Graph(
        set=item.text("set"),
        key=item.text("key"),
        metadata=item.text("metadata"),
        body=item.integer("body", _WORD),
        step=item.integer("step", _WORD),
        device=item.integer("device", _WORD),
        context=item.integer("context", _WORD),
        instantiate_flags=item.wide("instantiate_flags"),
        captured=item.truth("captured"),
        first_use=item.integer("first_use", _WORD),
        references=item.words("references"),
        dangling_words=item.integer("dangling_words", _WORD),
        reason_code=item.text("reason_code"),
        reason=item.text("reason"),
    )
