# ruff: noqa: E501, C408
"""The reference decode job: one token for each of b streams through a 28-layer transformer, for 35 batch sizes.

Plain torch, random bf16 weights, static KV cache of 256 positions, no random numbers inside the graphs:
the shape of a small LLM server's decode step (about 750 kernel nodes a graph, 26,243 in all, 120 distinct kernels on an H200).

    python decode_job.py            # what a plain start costs: warm-up, capture, instantiate; then replay times

Imported, it gives `Model`, `BATCH_SIZES` and `inputs()`, so that the same job can be run under capture and restore.
Needs a CUDA build of torch 2.6 or newer and about 11 GiB of device memory.
"""

import time

import torch
import torch.nn.functional as F
from torch import nn

BATCH_SIZES = [1, 2, 4, *range(8, 257, 8)]
HIDDEN, INTERMEDIATE, HEADS, KV_HEADS, HEAD_DIM = 2048, 6144, 16, 8, 128


def linear(fan_in: int, fan_out: int) -> nn.Linear:
    return nn.Linear(fan_in, fan_out, bias=False, dtype=torch.bfloat16)


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = linear(HIDDEN, (HEADS + 2 * KV_HEADS) * HEAD_DIM)
        self.out = linear(HEADS * HEAD_DIM, HIDDEN)
        self.gate_up = linear(HIDDEN, 2 * INTERMEDIATE)
        self.down = linear(INTERMEDIATE, HIDDEN)
        self.norm_attention = nn.Parameter(torch.ones(HIDDEN, dtype=torch.bfloat16))
        self.norm_mlp = nn.Parameter(torch.ones(HIDDEN, dtype=torch.bfloat16))

    def forward(self, x, cos, sin, keys, values, position, mask):
        streams = x.shape[0]
        y = F.rms_norm(x, (HIDDEN,), self.norm_attention, 1e-6)
        q, k, v = self.qkv(y).split([HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM], -1)
        q = rotate(q.view(streams, HEADS, 1, HEAD_DIM), cos, sin)
        k = rotate(k.view(streams, KV_HEADS, 1, HEAD_DIM), cos, sin)
        keys.index_copy_(2, position, k)
        values.index_copy_(2, position, v.view(streams, KV_HEADS, 1, HEAD_DIM))
        attended = F.scaled_dot_product_attention(q, keys, values, attn_mask=mask, enable_gqa=True)
        x = x + self.out(attended.reshape(streams, HEADS * HEAD_DIM))
        gate, up = self.gate_up(F.rms_norm(x, (HIDDEN,), self.norm_mlp, 1e-6)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


def rotate(t, cos, sin):
    half = t.shape[-1] // 2
    return t * cos + torch.cat([-t[..., half:], t[..., :half]], -1) * sin


class Model(nn.Module):
    def __init__(self, layers: int = 28, vocabulary: int = 32000, streams: int = 256, positions: int = 256) -> None:
        super().__init__()
        cache = (streams, KV_HEADS, positions, HEAD_DIM)
        self.embed = nn.Embedding(vocabulary, HIDDEN, dtype=torch.bfloat16)
        self.layers = nn.ModuleList(Layer() for _ in range(layers))
        self.head = linear(HIDDEN, vocabulary)
        self.keys = [torch.zeros(cache, dtype=torch.bfloat16) for _ in range(layers)]
        self.values = [torch.zeros(cache, dtype=torch.bfloat16) for _ in range(layers)]
        self.cos = torch.ones(HEAD_DIM, dtype=torch.bfloat16)
        self.sin = torch.full((HEAD_DIM,), 0.1, dtype=torch.bfloat16)
        self.positions = positions

    def forward(self, ids, position):
        """One decode step. ids: int64[b]; position: int64[1]. Returns the greedy next ids, int64[b]."""
        streams = ids.shape[0]
        x = self.embed(ids)
        mask = (torch.arange(self.positions) <= position).view(1, 1, 1, self.positions)
        for layer, k, v in zip(self.layers, self.keys, self.values, strict=True):
            x = layer(x, self.cos, self.sin, k[:streams], v[:streams], position, mask)
        return self.head(x).argmax(-1)


def inputs(seed: int = 1):
    """Static inputs and seeded weights: (model, ids int64[256], position int64[1]), all on the default device."""
    model = Model().eval()
    torch.manual_seed(seed)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            parameter.normal_(0, 0.02)
    return model, torch.arange(256) * 7, torch.zeros(1, dtype=torch.long)


def main() -> None:
    clock = time.perf_counter
    torch.cuda.init()
    with torch.device("cuda"), torch.no_grad():
        model, ids, position = inputs()
        torch.cuda.synchronize()
        graphs, pool, spent = [], None, dict(warm_up=0.0, capture=0.0, instantiate=0.0)
        for streams in reversed(BATCH_SIZES):
            t0 = clock()
            model(ids[:streams], position)
            torch.cuda.synchronize()
            t1 = clock()
            graph = torch.cuda.CUDAGraph(keep_graph=True)
            with torch.cuda.graph(graph, pool=pool):
                out = model(ids[:streams], position)
            t2 = clock()
            graph.instantiate()
            torch.cuda.synchronize()
            pool = pool or graph.pool()
            graphs.append((streams, graph, out))
            for name, seconds in zip(spent, (t1 - t0, t2 - t1, clock() - t2), strict=True):
                spent[name] += seconds
        print(f"{len(graphs)} graphs:", ", ".join(f"{k} {v:.3f} s" for k, v in spent.items()))
        for streams, graph, _ in (graphs[-1], graphs[0]):
            graph.replay()
            torch.cuda.synchronize()
            t0 = clock()
            for _ in range(20):
                graph.replay()
            torch.cuda.synchronize()
            print(f"{streams} streams: {(clock() - t0) / 20 * 1e3:.3f} ms a replay")


if __name__ == "__main__":
    main()
