"""Command buffers of XLA, which JAX programs have as CUDA graphs without knowing of them.

    python jax_job.py [--loops] [--cpu]

Prints a digest for each function and round, each on inputs of its own. What is a matter of whole numbers is computed by
numpy as well; ends with 1 where that differs. `--loops`: with a loop whose turns depend on the inputs, in a command
buffer. `--cpu`: what there is instead of a GPU will do.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from typing import Any

LOOPS = "--loops" in sys.argv[1:]
# Which algorithm a product takes must not depend on what was measured in this start.
os.environ["XLA_FLAGS"] = (
    f"--xla_gpu_enable_command_buffer=FUSION,CUBLAS,CUBLASLT,CUSTOM_CALL{',CONDITIONAL,WHILE' if LOOPS else ''} "
    "--xla_gpu_graph_min_graph_size=1 --xla_gpu_autotune_level=0"
)
os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy  # noqa: E402
from rounds import fresh  # noqa: E402

ROUNDS, ROWS, WIDTH, LAYERS = 5, 64, 256, 4


def whole_numbers(library: Any, x: Any, weights: Any) -> Any:
    """Small whole numbers all the way: any order of sums, and any precision of products, gives the same."""
    for weight in weights:
        x = library.mod(x @ weight, 64.0) - 32.0
    return x


def waves(x: Any) -> Any:
    """Elementwise work, fused into few kernels."""
    return jnp.sin(x * 0.37) + jnp.tanh(x) * jnp.roll(x, 1, axis=1)


def turns(x: Any) -> Any:
    """How often a loop is run: the inputs tell."""
    return 2 + (x[0, 0] > 0) * 3


def loop(x: Any, weight: Any) -> Any:
    """Products, as often as the inputs say."""

    def turn(state: Any) -> Any:
        return state[0] + 1, whole_numbers(jnp, state[1], [weight])

    return jax.lax.while_loop(lambda state: state[0] < turns(x), turn, (0, x))[1]


def main() -> int:
    """Run the command line."""
    if jax.devices()[0].platform != "gpu" and "--cpu" not in sys.argv[1:]:
        sys.exit(f"jax {jax.__version__} finds no GPU: {jax.devices()}")
    weights = [fresh("weights", WIDTH * WIDTH, layer).reshape(WIDTH, WIDTH) % 3 - 1.0 for layer in range(LAYERS)]
    weights = [weight.astype(numpy.float32) for weight in weights]
    on_device = [jnp.asarray(weight) for weight in weights]
    products = jax.jit(lambda x: whole_numbers(jnp, x, on_device))
    fused = jax.jit(waves)
    looped = jax.jit(lambda x: loop(x, on_device[0]))
    unequal = 0
    for number in range(ROUNDS):
        values = (fresh("values", ROWS * WIDTH, number).reshape(ROWS, WIDTH) % 64 - 32.0).astype(numpy.float32)
        given = {"products": products(jnp.asarray(values)), "fused": fused(jnp.asarray(values))}
        wanted = {"products": whole_numbers(numpy, values, weights)}
        if LOOPS:
            given["loops"] = looped(jnp.asarray(values))
            wanted["loops"] = whole_numbers(numpy, values, [weights[0]] * int(turns(values)))
        given = {name: numpy.asarray(result) for name, result in given.items()}
        for name in wanted:
            if not numpy.array_equal(given[name], wanted[name]):
                print(f"{name}, round {number}: other numbers than numpy's", file=sys.stderr)
                unequal += 1
        for name, result in given.items():
            print(name, number, hashlib.sha256(result.tobytes()).hexdigest(), flush=True)
    print("facts", json.dumps({"jax": jax.__version__, "device": str(jax.devices()[0])}), file=sys.stderr)
    return 1 if unequal else 0


if __name__ == "__main__":
    sys.exit(main())
