"""What the engine computes, said again in numpy and Python: the yardstick of its CPU path."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy
from engines.tinyllm.make_weights import printable, words_of


class Model:
    """A model read from its safetensors file, with weights as float64."""

    def __init__(self, folder: Path) -> None:
        content = (folder / "model.safetensors").read_bytes()
        (length,) = struct.unpack_from("<Q", content)
        header = json.loads(content[8 : 8 + length])
        self.numbers = {name: float(value) for name, value in header.pop("__metadata__").items()}
        self.tensors: dict[str, Any] = {}
        for name, entry in header.items():
            start, end = (8 + length + offset for offset in entry["data_offsets"])
            kind = {"F32": numpy.float32, "I8": numpy.int8}[entry["dtype"]]
            values = numpy.frombuffer(content[start:end], kind).reshape(entry["shape"])
            self.tensors[name] = values.astype(numpy.float64)

    def weights(self, name: str) -> Any:
        """Undo the quantisation of a matrix."""
        return self.tensors[name] * self.tensors[f"{name}.scales"][:, None]

    def norm(self, rows: Any, name: str) -> Any:
        """Scale rows to a root mean square of 1, then by the weights."""
        mean = numpy.mean(rows**2, axis=-1, keepdims=True)
        return rows / numpy.sqrt(mean + self.numbers["epsilon"]) * self.tensors[name]

    def rotate(self, heads: Any) -> Any:
        """Turn the halves of each head (positions, heads, size) by its position."""
        half = heads.shape[-1] // 2
        angles = numpy.arange(len(heads))[:, None] * self.numbers["base"] ** (-numpy.arange(half) / half)
        cosines, sines = numpy.cos(angles)[:, None], numpy.sin(angles)[:, None]
        first, second = heads[..., :half], heads[..., half:]
        return numpy.concatenate([first * cosines - second * sines, second * cosines + first * sines], axis=-1)

    def attend(self, rows: Any, layer: str) -> Any:
        """Grouped-query attention of each position to those up to itself."""
        count = len(rows)
        heads, key_heads = int(self.numbers["heads"]), int(self.numbers["key_heads"])
        query = self.rotate((rows @ self.weights(layer + "query").T).reshape(count, heads, -1))
        key = self.rotate((rows @ self.weights(layer + "key").T).reshape(count, key_heads, -1))
        value = (rows @ self.weights(layer + "value").T).reshape(count, key_heads, -1)
        key, value = (numpy.repeat(each, heads // key_heads, axis=1) for each in (key, value))
        scores = numpy.einsum("qhd,khd->hqk", query, key) / query.shape[-1] ** 0.5
        scores = numpy.where(numpy.tril(numpy.ones((count, count), bool)), scores, -numpy.inf)
        shares = numpy.exp(scores - scores.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        mixed = numpy.einsum("hqk,khd->qhd", shares, value).reshape(count, -1)
        return mixed @ self.weights(layer + "output").T

    def logits(self, tokens: list[int]) -> Any:
        """Give the logits behind the last token."""
        rows = self.weights("table")[tokens]
        for index in range(int(self.numbers["layers"])):
            layer = f"layers.{index}."
            rows = rows + self.attend(self.norm(rows, layer + "attention_norm"), layer)
            normed = self.norm(rows, layer + "inner_norm")
            gate, up = normed @ self.weights(layer + "gate").T, normed @ self.weights(layer + "up").T
            rows = rows + (gate / (1 + numpy.exp(-gate)) * up) @ self.weights(layer + "down").T
        return self.norm(rows, "last_norm")[-1] @ self.weights("head").T

    def sampled(self, tokens: list[int], count: int, temperature: float, seed: int) -> list[int]:
        """Continue a text by tokens that are drawn."""
        made: list[int] = []
        for _ in range(count):
            logits = self.logits(tokens + made)
            shares = numpy.cumsum(numpy.exp((logits - logits.max()) / temperature))
            drawn = random_number(seed, len(tokens) + len(made) - 1) * shares[-1]
            made.append(int(numpy.searchsorted(shares, drawn, side="right")))
        return made

    def greedy(self, tokens: list[int], count: int) -> list[int]:
        """Continue a text by its likeliest tokens."""
        made: list[int] = []
        for _ in range(count):
            made.append(int(numpy.argmax(self.logits(tokens + made))))
        return made


def random_number(seed: int, position: int) -> float:
    """Give the number in [0, 1) of a seed and a position, by splitmix64."""
    bits = (seed * 0x9E3779B97F4A7C15 + (position + 1) * 0xD1B54A32D192ED03) % 2**64
    bits = ((bits ^ bits >> 30) * 0xBF58476D1CE4E5B9) % 2**64
    bits = ((bits ^ bits >> 27) * 0x94D049BB133111EB) % 2**64
    return float((bits ^ bits >> 31) >> 11) / 2**53


class Tokenizer:
    """Byte pair encoding by the merges file of a folder."""

    def __init__(self, folder: Path) -> None:
        bytes_of = {character: byte for byte, character in printable().items()}
        self.ids = {bytes([byte]): byte for byte in range(256)}
        for line in (folder / "merges.txt").read_text(encoding="utf-8").splitlines()[1:]:
            joined = bytes(bytes_of[character] for character in line.replace(" ", ""))
            self.ids[joined] = len(self.ids)
        self.end = len(self.ids)

    def encode(self, text: str) -> list[int]:
        """Join the pair that was learnt first, again and again."""
        found: list[int] = []
        for word in words_of(text) if text else []:
            parts = [bytes([byte]) for byte in word]
            while True:
                pairs = [(self.ids.get(parts[at] + parts[at + 1]), at) for at in range(len(parts) - 1)]
                known = [(token, at) for token, at in pairs if token is not None]
                if not known:
                    break
                _, at = min(known)
                parts[at : at + 2] = [parts[at] + parts[at + 1]]
            found += [self.ids[part] for part in parts]
        return found

    def decode(self, tokens: list[int]) -> bytes:
        """Give the bytes of tokens; the end has none."""
        texts = {token: text for text, token in self.ids.items()}
        return b"".join(texts.get(token, b"") for token in tokens)
