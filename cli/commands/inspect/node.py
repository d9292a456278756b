"""One node of a graph in full."""

from __future__ import annotations

from typing import Any

from ...render import print_lines, print_pairs, print_table
from .words import named_reason, value


def show_node(graph: dict[str, Any]) -> None:
    """Print the one node that a graph's document holds."""
    from foundry.describe.graphs import title

    body = next(body for body in graph["contents"] if body["nodes"])
    (node,) = body["nodes"]
    where = f"node {node['index']}" + (f" of child graph {body['number']}" if body["number"] else "")
    pairs = [
        ("node", f"{where} of graph {title(graph)}, process {graph['process']}"),  # type: ignore[arg-type]
        ("type", node["type"]),
        ("rebuilt", f"no: {named_reason(node['reason'])}" if node["reason"] else ""),
        *_launch(node),
        *_event(node),
        ("child", "" if node["child"] is None else f"child graph {node['child']}"),
        ("after", _ends(body["edges"], "end", "start", node["index"]) or "nothing"),
        ("before", _ends(body["edges"], "start", "end", node["index"]) or "nothing"),
    ]
    print_pairs([(name, text) for name, text in pairs if text])
    if node["attributes"]:
        print_lines("")
        rows = [(item["name"], value(item["value"]) or "0", item["bytes"] or "0") for item in node["attributes"]]
        print_table([("launch attribute", "left"), ("value", "left"), ("bytes", "left")], rows)
    if node["parameters"]:
        print_lines("")
        _parameters(node["parameters"])
    if node["memset"]:
        print_lines("")
        print_pairs(_memset(node["memset"]))
    if node["copy"]:
        print_lines("")
        _copy(node["copy"])


def _launch(node: dict[str, Any]) -> list[tuple[str, str]]:
    from foundry.describe.captions import triple

    if node["kernel"] is None:
        return []
    kernel = node["kernel"]
    mangled = kernel["name"] if kernel["name"] != kernel["readable"] else ""
    return [
        ("kernel", kernel["readable"]),
        ("symbol", mangled),
        ("grid", triple(node["grid"])),
        ("block", triple(node["block"])),
        ("shared", f"{node['shared_bytes']} bytes"),
    ]


def _event(node: dict[str, Any]) -> list[tuple[str, str]]:
    if node["type"] not in ("wait_event", "event_record") or node["reason"]:
        return []
    return [("event", "not seen" if node["event"] is None else str(node["event"]))]


def _ends(edges: list[dict[str, Any]], mine: str, other: str, index: int) -> str:
    from foundry.describe.chains import edge_text

    return ", ".join(
        str(edge[other])
        + ("" if edge["data"] == "0x0" else f" ({edge_text(edge['type'], edge['from_port'], edge['to_port'])})")
        for edge in edges
        if edge[mine] == index
    )


def _parameters(parameters: list[dict[str, Any]]) -> None:
    rows = []
    for parameter in parameters:
        name = "between" if parameter["index"] is None else str(parameter["index"])
        words = _runs(parameter["words"])
        for index, (first, last) in enumerate(words):
            zeros = last is not first
            offset = f"{first['offset']}-{last['offset'] + last['size'] - 1}" if zeros else str(first["offset"])
            rows.append(
                (
                    name if index == 0 else "",
                    str(parameter["size"]) if index == 0 else "",
                    offset,
                    "0" if zeros else _number(first),
                    "all zero" if zeros else first["target"]["text"],
                )
            )
    columns = [("parameter", "left"), ("size", "right"), ("byte", "right"), ("value", "right"), ("what it is", "left")]
    print_table(columns, rows)


def _runs(words: list[dict[str, Any]]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Put words of zero that follow one another together, from three on."""
    found: list[tuple[dict[str, Any], dict[str, Any]]] = []
    at = 0
    while at < len(words):
        end = at
        while end < len(words) and words[end]["value"] == "0x0":
            end += 1
        if end - at >= 3:
            found.append((words[at], words[end - 1]))
            at = end
        else:
            found.append((words[at], words[at]))
            at += 1
    return found


def _number(word: dict[str, Any]) -> str:
    number = int(word["value"], 16)
    return str(number) if word["target"]["kind"] == "constant" and number < 1 << 20 else word["value"]


def _memset(memset: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        ("destination", f"{memset['destination']}, {memset['target']['text']}"),
        ("value", f"{memset['value']:#x}, in elements of {memset['element_size']} bytes"),
        ("width", f"{memset['width']} elements"),
        ("height", f"{memset['height']} rows, pitch {memset['pitch']}"),
    ]


def _copy(copy: dict[str, Any]) -> None:
    rows = []
    for side in ("source", "destination"):
        end = copy[side]
        rows.append(
            (
                side,
                end["memory"],
                end["address"] or "not kept",
                end["target"]["text"] if end["target"] else "",
                f"{end['x']}, {end['y']}, {end['z']}",
                f"{end['pitch']} x {end['height']}",
            )
        )
    print_table(
        [
            ("side", "left"),
            ("memory", "left"),
            ("address", "left"),
            ("what it is", "left"),
            ("at x, y, z", "left"),
            ("pitch", "left"),
        ],
        rows,
    )
    print_lines(f"{copy['width']} bytes x {copy['height']} rows x {copy['depth']} layers")
