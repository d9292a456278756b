"""CUDA graphs of a PyTorch program: captured on a plain start, given back by the hook on a restore.

    graphs = foundry.torch.GraphSet("decode")
    for size in reversed(sizes):
        decode[size] = graphs.capture_or_restore(size, model, (ids[:size], position))
    foundry.torch.commit()
    decode[8].replay()

Without the hook the same program is a plain start.
"""

from foundry import graphs as _graphs
from foundry.torch import memory as _memory
from foundry.torch.graph import Graph
from foundry.torch.graph_set import GraphSet
from foundry.torch.parity import Parity


def commit() -> None:
    """Say that the program is ready to serve: what was captured so far is whole, and warm-up memory is given back.

    Does nothing on a plain start. Call it outside of captures and `torch.cuda.use_mem_pool`.
    """
    _memory.release_scratch()
    _graphs.commit()


__all__ = ["Graph", "GraphSet", "Parity", "commit"]
