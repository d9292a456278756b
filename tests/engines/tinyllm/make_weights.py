#!/usr/bin/env python3
"""Make synthetic weights and merges: make_weights.py FOLDER [--seed N] [--size layers=8]. Equal seeds, equal bytes."""

from __future__ import annotations

import argparse
import json
import struct
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy

SIZES = {"layers": 2, "hidden": 64, "heads": 4, "key_heads": 2, "head_size": 16, "inner": 128, "context": 640}
EPSILON, BASE = 1e-5, 10000.0
MERGES = 64
TEXT = """A server keeps its graphs by key and replays them in place. The first pass of a new shape runs launch by
launch, the next ones are replayed, and what moves between them lies in the memory of the device: tokens, positions and
the pages of the cache. Größe, naïve and 東京 are words of more than one byte a letter. """


def printable() -> dict[int, str]:
    """Give each byte a character that can stand in a merges file, as GPT-2 does."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    return {byte: chr(byte) for byte in plain} | {byte: chr(256 + index) for index, byte in enumerate(others)}


def words_of(text: str) -> list[bytes]:
    """Cut a text before each blank and line feed."""
    data, words = text.encode(), []
    start = 0
    for at in range(1, len(data) + 1):
        if at == len(data) or data[at] in b" \n":
            words.append(data[start:at])
            start = at
    return words


def learn_merges(text: str, count: int) -> list[tuple[bytes, bytes]]:
    """Find the pairs that are most frequent, one after the other; of equal ones the lesser bytes."""
    words = [[bytes([byte]) for byte in word] for word in words_of(text)]
    merges: list[tuple[bytes, bytes]] = []
    while len(merges) < count:
        pairs = Counter(pair for word in words for pair in pairwise(word))
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(best)
        for word in words:
            at = 0
            while at + 1 < len(word):
                if (word[at], word[at + 1]) == best:
                    word[at : at + 2] = [word[at] + word[at + 1]]
                at += 1
    return merges


def quantise(values: Any) -> tuple[Any, Any]:
    """Give int8 weights and a scale for each row."""
    scales = (numpy.abs(values).max(axis=1) / 127).astype(numpy.float32)
    return numpy.rint(values / scales[:, None]).astype(numpy.int8), scales


def make_tensors(seed: int, vocabulary: int, sizes: dict[str, int]) -> dict[str, Any]:
    """Draw all tensors of a model."""
    numbers = numpy.random.Generator(numpy.random.PCG64(seed))
    tensors: dict[str, Any] = {}
    hidden, inner = sizes["hidden"], sizes["inner"]
    queries, keys = sizes["heads"] * sizes["head_size"], sizes["key_heads"] * sizes["head_size"]

    def matrix(name: str, outputs: int, inputs: int, size: float) -> None:
        drawn = numbers.standard_normal((outputs, inputs)) * size / inputs**0.5
        tensors[name], tensors[f"{name}.scales"] = quantise(drawn)

    def norm(name: str) -> None:
        tensors[name] = (1 + 0.1 * numbers.standard_normal(hidden)).astype(numpy.float32)

    matrix("table", vocabulary, hidden, hidden**0.5)
    matrix("head", vocabulary, hidden, 2.0)
    norm("last_norm")
    for layer in range(sizes["layers"]):
        norm(f"layers.{layer}.attention_norm")
        norm(f"layers.{layer}.inner_norm")
        for name, outputs, inputs in (
            ("query", queries, hidden),
            ("key", keys, hidden),
            ("value", keys, hidden),
            ("output", hidden, queries),
            ("gate", inner, hidden),
            ("up", inner, hidden),
            ("down", hidden, inner),
        ):
            matrix(f"layers.{layer}.{name}", outputs, inputs, 1.5)
    return tensors


def write_safetensors(path: Path, tensors: dict[str, Any], metadata: dict[str, str]) -> None:
    """Write tensors in the safetensors format, the widest elements first, so that all are aligned."""
    names = sorted(tensors, key=lambda name: (-tensors[name].itemsize, name))
    header: dict[str, Any] = {"__metadata__": metadata}
    end = 0
    for name in names:
        tensor = tensors[name]
        kind = {"float32": "F32", "int8": "I8"}[str(tensor.dtype)]
        header[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [end, end + tensor.nbytes]}
        end += tensor.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text = text.ljust(-(-len(text) // 8) * 8)
    data = b"".join(tensors[name].tobytes() for name in names)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def write_model(folder: Path, seed: int = 1, **other: int) -> None:
    """Write model.safetensors and merges.txt; `other` sizes take the place of the usual ones."""
    sizes = SIZES | other
    merges = learn_merges(TEXT, MERGES)
    vocabulary = 256 + len(merges) + 1
    metadata = {name: str(value) for name, value in sizes.items()}
    metadata |= {"vocabulary": str(vocabulary), "epsilon": str(EPSILON), "base": str(BASE)}
    folder.mkdir(parents=True, exist_ok=True)
    write_safetensors(folder / "model.safetensors", make_tensors(seed, vocabulary, sizes), metadata)
    characters = printable()
    lines = (" ".join("".join(characters[byte] for byte in part) for part in merge) for merge in merges)
    (folder / "merges.txt").write_text("#version: 0.2\n" + "".join(f"{line}\n" for line in lines), encoding="utf-8")


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="make synthetic weights")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--size", action="append", default=[], metavar="NAME=N", help=f"of {SIZES}")
    arguments = parser.parse_args()
    pairs = [size.partition("=") for size in arguments.size]
    if any(name not in SIZES or not number.isdecimal() for name, _, number in pairs):
        parser.error(f"--size takes NAME=N of {SIZES}")
    write_model(arguments.folder, arguments.seed, **{name: int(number) for name, _, number in pairs})


if __name__ == "__main__":
    main()
