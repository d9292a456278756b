"""What this adapter relies on, as it is in the release that it knows; `python -m foundry.engines.seams` checks it."""

from __future__ import annotations

from foundry.engines.protocol import Seam

VERSIONS = ("5.17.0",)

CACHE = "transformers.generation.continuous_batching.cache"
RUNNER = "transformers.generation.continuous_batching.model_runner"
STEPS = "transformers.generation.continuous_batching.input_outputs"
UTILS = "transformers.generation.continuous_batching.utils"

SEAMS = (
    Seam(CACHE, "PagedAttentionMemoryHandler.infer_max_batch_tokens_and_num_blocks", ("self",), "db0a7ea73af5"),
    Seam(
        CACHE,
        "PagedAttentionMemoryHandler.compute_memory_footprint",
        ("self", "max_batch_tokens", "num_blocks"),
        "0366518e1dc4",
        replaced=False,
    ),
    Seam(
        CACHE,
        "PagedAttentionMemoryHandler.__init__",
        ("self", "config", "continuous_batching_config", "dtype", "group_types", "group_size"),
        "7b1fca34fad1",
        replaced=False,
    ),
    Seam(
        CACHE,
        "PagedAttentionCache.__init__",
        ("self", "config", "continuous_batching_config", "device", "distributed_helper", "tp_plan", "dtype"),
        "16c8ad3f176e",
        replaced=False,
    ),
    Seam(RUNNER, "ModelRunner._capture_graph", ("self", "forward_fn", "compute_stream", "args"), "b9eac35bf177"),
    Seam(RUNNER, "ModelRunner.warmup", ("self", "model"), "c7450d8d6cb1"),
    Seam(RUNNER, "ModelRunner.compute_batch", ("self", "model", "batch_data"), "1f709497e3ed", replaced=False),
    Seam(
        RUNNER,
        "ModelRunner._forward_process_and_sample",
        ("self", "model", "batch_data", "carry_over_ids", "prev_output_ids", "output_ids"),
        "a96361cb4b68",
        replaced=False,
    ),
    Seam(RUNNER, "ModelRunner._sample", ("self", "scores", "output_ids"), "d9ec62b0b76c", replaced=False),
    Seam(
        RUNNER,
        "ModelRunner.__init__",
        ("self", "logit_processor", "cb_config", "inputs_and_outputs", "cache", "do_sample", "return_logprobs"),
        "1f43d7ebf90d",
        replaced=False,
    ),
    Seam(STEPS, "ContinuousBatchingIOs._get_graph_key", ("self",), "7bed01123e8b", replaced=False),
    Seam(STEPS, "ContinuousBatchingIOs.set_graph", ("self", "graph"), "c3ca7f2dbc92", replaced=False),
    Seam(STEPS, "ContinuousBatchingAsyncIOs.set_graph", ("self", "graph"), "38be490f9c96", replaced=False),
    Seam(UTILS, "get_cuda_pools", (), "4fb96ffbf65d", replaced=False),
)

FIELDS = {
    ("transformers.generation.configuration_utils", "ContinuousBatchingConfig"): (
        "block_size",
        "num_blocks",
        "max_batch_tokens",
        "max_memory_percent",
        "max_requests_per_batch",
        "max_blocks_per_request",
        "use_async_batching",
        "q_padding_interval_size",
        "kv_padding_interval_size",
        "return_logprobs",
        "per_request_processors",
        "varlen_compile_config",
        "decode_compile_config",
        "cuda_graph_booleans",
    ),
}
