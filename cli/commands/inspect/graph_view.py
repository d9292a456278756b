"""One graph: its nodes and how they hang together, or one node of it in full."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...render import plain, print_lines, print_pairs, width
from .node import show_node
from .request import Request
from .selection import document_of
from .words import attribute, named_reason

if TYPE_CHECKING:
    from foundry.archive.opened import Opened
    from foundry.describe.documents import Graph

MOST_TARGETS = 6
INDENT = 7


def document(opened: Opened, request: Request) -> dict[str, Any]:
    """Describe the graph."""
    graph = document_of(opened, request, parameters=True)
    return {"graph": graph, "whole": request.node is None, "noise": _noise(opened, graph)}


def show(found: dict[str, Any]) -> None:
    """Print the graph, or its one node."""
    graph = found["graph"]
    if not found["whole"]:
        show_node(graph)
        return
    _show_head(graph, found["noise"])
    for body in graph["contents"]:
        print_lines("")
        _show_body(body)
    print_lines("", "main:5+0x38 is byte 0x38 of allocation 5 of arena `main`; `--node N` has it all")


def _noise(opened: Opened, graph: Graph) -> str:
    """Say what scrubbing did with the graph; nothing where it was not asked for."""
    from foundry.findings import SCRUB_KEPT, SCRUBBED

    name = f"`{graph['set']}` `{graph['key']}`" if graph["set"] else f"`{graph['key']}`"
    told = {(item.code, item.where): item.text for item in opened.head.findings}
    kept = told.get((SCRUB_KEPT, f"{graph['process']}, graph {name}"))
    if kept is not None:
        return f"kept: {kept}"
    return "zero" if (SCRUBBED, graph["process"]) in told else ""


def _show_head(graph: dict[str, Any], noise: str) -> None:
    from foundry.describe.graphs import title
    from foundry.session.words import count, readable_size

    state = "yes" if graph["restored"] else "yes, but it has no name to ask for it by"
    if not graph["restorable"]:
        state = f"no, {graph['reason_code']}: {named_reason(graph['reason'])}"
    members = f"{graph['group']}, with {count(graph['group_members'] - 1, 'other graph')}"
    refers = f"{count(graph['references'], 'allocation')}, {readable_size(graph['referenced_bytes'])}"
    pairs = [
        ("graph", title(graph)),  # type: ignore[arg-type]
        ("process", f"{graph['process']}, GPU {graph['device']}, context {graph['context']}"),
        ("restorable", state),
        ("size", f"{graph['nodes']:,} nodes, {graph['edges']:,} edges"),
        ("group", members),
        ("refers to", refers),
        ("dangling", f"{graph['dangling_words']} parameter words" if graph["dangling_words"] else ""),
        ("noise", noise if noise != "zero" else "zero, as far as it could be told"),
        ("made", "by stream capture" if graph["captured"] else "node by node"),
        ("flags", ", ".join(graph["instantiate_flags"])),
        ("first use", "never launched" if graph["first_use"] is None else f"number {graph['first_use'] + 1}"),
    ]
    print_pairs([(name, text) for name, text in pairs if text])


def _show_body(body: dict[str, Any]) -> None:
    """Print the nodes of a body: each in a line, below it what is not plain."""
    from foundry.describe import captions

    if body["number"]:
        inside = f" of child graph {body['parent_body']}" if body["parent_body"] else ""
        print_lines(f"child graph {body['number']}, which is node {body['parent_node']}{inside}, group {body['group']}")
    if not body["nodes"]:
        print_lines("no nodes")
        return
    waits: dict[int, list[dict[str, Any]]] = {}
    for edge in body["edges"]:
        waits.setdefault(edge["end"], []).append(edge)
    common = _common(body["nodes"])
    if common:
        print_lines(*_wrapped("all kernels with " + "; ".join(attribute(item) for item in common), ""))
    print_lines(f"{'node':>5}  {'grid':<11} {'block':<9} {'shared':>6}  what")
    for node in body["nodes"]:
        shape = f"{_size(node['grid']):<11} {_size(node['block']):<9} {_number(node['shared_bytes']):>6}"
        name = captions.shortened(captions.label(node), max(width() - 37, 24))
        print_lines(f"{node['index']:>5}  {shape}  {plain(name)}")
        for line in _told(node, waits.get(node["index"], []), common):
            print_lines(*_wrapped(line))


def _common(nodes: list[dict[str, Any]]) -> list[Any]:
    """Give the attributes that all kernels of a body have, and that are not what a launch has anyway."""
    from foundry.describe import values

    each = [values.plain_attributes(node["attributes"]) for node in nodes if node["kernel"]]
    return [item for item in each[0] if all(item in one for one in each)] if len(each) > 1 else []


def _size(values: list[int] | None) -> str:
    """Write a grid or block without the ones at its end."""
    if values is None:
        return "-"
    while len(values) > 1 and values[-1] == 1:
        values = values[:-1]
    return "x".join(map(str, values))


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)


def _told(node: dict[str, Any], waits: list[dict[str, Any]], common: list[Any]) -> list[str]:
    """Tell of a node what is not as it is for most."""
    from foundry.describe import captions, values

    lines = []
    if node["reason"]:
        lines.append(f"cannot be built again: {node['reason']}")
    if waits and not (len(waits) == 1 and waits[0]["start"] == node["index"] - 1 and values.plain_edge(waits[0])):  # type: ignore[arg-type]
        lines.append("after " + ", ".join(_edge(edge) for edge in waits))
    elif not waits and node["index"]:
        lines.append("after nothing")
    special = [item for item in values.plain_attributes(node["attributes"]) if item not in common]
    if special:
        lines.append("with " + "; ".join(attribute(item) for item in special))  # type: ignore[arg-type]
    targets = _targets(node)
    if targets:
        lines.append("-> " + ", ".join(targets))
    if node["memset"]:
        memset = node["memset"]
        rows = f" x {memset['height']} rows, pitch {memset['pitch']}" if memset["height"] > 1 else ""
        lines.append(f"value {memset['value']:#x}, {memset['width']} elements of {memset['element_size']} bytes{rows}")
    if node["copy"]:
        copy = node["copy"]
        lines.append(f"{captions.side(copy['source'])} -> {captions.side(copy['destination'])}")
        lines.append(f"{copy['width']} bytes x {copy['height']} rows x {copy['depth']} layers")
    if node["type"] in ("wait_event", "event_record") and not node["reason"]:
        lines.append("an event that was not seen" if node["event"] is None else f"event {node['event']}")
    return lines


def _edge(edge: dict[str, Any]) -> str:
    from foundry.describe import values
    from foundry.describe.chains import edge_text

    if values.plain_edge(edge):  # type: ignore[arg-type]
        return str(edge["start"])
    return f"{edge['start']} ({edge_text(edge['type'], edge['from_port'], edge['to_port'])})"


def _targets(node: dict[str, Any]) -> list[str]:
    if node["memset"]:
        return [_brief(node["memset"]["target"])]
    found = [
        _brief(word["target"])
        for parameter in node["parameters"] or ()
        for word in parameter["words"]
        if word["target"]["kind"] not in ("constant", "noise", "unread")
    ]
    once = list(dict.fromkeys(found))
    return once[:MOST_TARGETS] + ([f"{len(once) - MOST_TARGETS} more"] if len(once) > MOST_TARGETS else [])


def _brief(target: dict[str, Any]) -> str:
    """Write an allocation as arena, ordinal and offset; anything else in its own words."""
    if target["kind"] != "allocation":
        return str(target["text"])
    offset = f"+{target['offset']:#x}" if target["offset"] else ""
    return f"{target['arena']}:{target['ordinal']}{offset}"


def _wrapped(text: str, space: str = " " * INDENT) -> list[str]:
    import textwrap

    return textwrap.wrap(
        plain(text), max(width(), 40), initial_indent=space, subsequent_indent=space + "  ", break_on_hyphens=False
    )
