"""Writes a graph in the language of Graphviz: all of its nodes and edges, child graphs as clusters."""

from __future__ import annotations

from foundry.describe import values
from foundry.describe.captions import explained, label
from foundry.describe.chains import edge_text
from foundry.describe.documents import Body, Graph
from foundry.describe.graphs import title

SHAPES = {"kernel": "box", "memcpy": "cds", "memset": "cds", "graph": "folder", "empty": "point"}


def draw(graph: Graph) -> str:
    """Write a graph with its child graphs."""
    lines = [f"digraph {_quoted(title(graph))} {{", '  node [fontname="monospace", fontsize=10, shape=ellipse];']
    for body in graph["contents"]:
        if body["number"]:
            name = f"child graph {body['number']}"
            lines += [f"  subgraph cluster_{body['number']} {{", f"    label={_quoted(name)};"]
            lines += [f"  {line}" for line in _nodes(body)]
            lines.append("  }")
            first = f"b{body['number']}n0"
            if body["nodes"]:
                lines.append(f"  b{body['parent_body']}n{body['parent_node']} -> {first} [style=dotted];")
        else:
            lines += _nodes(body)
        lines += _edges(body)
    return "\n".join([*lines, "}"]) + "\n"


def _nodes(body: Body) -> list[str]:
    lines = []
    for node in body["nodes"]:
        text = f"{node['index']}: {label(node)}"
        shape = SHAPES.get(node["type"])
        fields = [f"label={_quoted(text)}", f"tooltip={_quoted(explained(node))}"]
        fields += [f"shape={shape}"] if shape else []
        fields += ["color=red"] if node["reason"] else []
        lines.append(f"  b{body['number']}n{node['index']} [{', '.join(fields)}];")
    return lines


def _edges(body: Body) -> list[str]:
    lines = []
    for edge in body["edges"]:
        special = ""
        if not values.plain_edge(edge):
            text = edge_text(edge["type"], edge["from_port"], edge["to_port"])
            special = f" [style=dashed, label={_quoted(text)}]"
        lines.append(f"  b{body['number']}n{edge['start']} -> b{body['number']}n{edge['end']}{special};")
    return lines


def _quoted(text: str) -> str:
    plain = text.replace("\\", "\\\\").replace('"', '\\"').replace("\0", "").replace("\n", "\\n")
    return f'"{plain}"'
