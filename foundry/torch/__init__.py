"""CUDA graphs of a PyTorch program: captured on a plain start, given back by the hook on a restore.

    graphs = foundry.torch.GraphSet("decode")
    for size in reversed(sizes):
        decode[size] = graphs.capture_or_restore(size, model, (ids[:size], position))
    foundry.torch.commit()
    decode[8].replay()

Without the hook the same program is a plain start.
"""

from foundry.graphs import commit
from foundry.torch.graph import Graph
from foundry.torch.graph_set import GraphSet

__all__ = ["Graph", "GraphSet", "commit"]
