"""What this adapter relies on, as it is in the release that it knows; `python -m foundry.engines.seams` checks it."""

from __future__ import annotations

from foundry.engines.protocol import Seam

VERSIONS = ("0.5.17",)

POOLS = "sglang.srt.mem_cache.kv_cache_configurator"
RUNNER = "sglang.srt.model_executor.model_runner"
FULL = "sglang.srt.model_executor.runner_backend.full_cuda_graph_backend"
BREAKABLE = "sglang.srt.model_executor.runner_backend.breakable_cuda_graph_backend"
CAPTURE = "sglang.srt.model_executor.runner_backend_utils.breakable_cuda_graph.breakable_cuda_graph"
DECODE_RUNNER = "sglang.srt.model_executor.runner.decode_cuda_graph_runner"
PREFILL_RUNNER = "sglang.srt.model_executor.runner.prefill_cuda_graph_runner"
ATTENTION = "sglang.srt.layers.radix_attention"
SETUP = "sglang.srt.model_executor.model_runner_components.cuda_graph_setup"

SEAMS = (
    Seam(POOLS, "KVCacheConfigurator._resolve_memory_pool_config", ("self", "pre_model_load_memory"), "53ceba1ca58e"),
    Seam(POOLS, "KVCacheConfigurator.configure", ("self", "pre_model_load_memory"), "c962d77e36f5", replaced=False),
    Seam(POOLS, "KVCacheConfigurator._derive_pool_sizes", ("self", "config"), "842cfb7de318", replaced=False),
    Seam(RUNNER, "ModelRunner.load_model", ("self",), "fc8c3c7bb86c"),
    Seam(RUNNER, "ModelRunner.init_cuda_graphs", ("self", "capture_decode_cuda_graph"), "9ee9e86cd763"),
    Seam(RUNNER, "ModelRunner.alloc_memory_pool", ("self", "memory_pool_config"), "61689e5b029b", replaced=False),
    Seam(SETUP, "capture_cuda_graphs", ("model_runner", "capture_decode_cuda_graph"), "511774e43053", replaced=False),
    Seam(
        SETUP,
        "capture_prefill_graph",
        ("model_runner", "eager_runner", "force_for_draft_worker"),
        "771daeeb9620",
        replaced=False,
    ),
    Seam(
        FULL,
        "FullCudaGraphBackend.capture_one",
        ("self", "shape_key", "forward_fn", "capture_inputs", "post_warmup_hook"),
        "1b798e743d54",
    ),
    Seam(
        FULL,
        "FullCudaGraphBackend.replay",
        ("self", "shape_key", "static_forward_batch", "kwargs"),
        "b513bb8f9c32",
        replaced=False,
    ),
    Seam(
        BREAKABLE,
        "BreakableCudaGraphBackend.capture_one",
        ("self", "shape_key", "forward_fn", "capture_inputs", "post_warmup_hook"),
        "8c2c124b88de",
    ),
    Seam(
        BREAKABLE, "BreakableCudaGraphBackend._output_rows", ("self", "output", "cap"), "12755f3bfdc5", replaced=False
    ),
    Seam(
        BREAKABLE,
        "BreakableCudaGraphBackend._alloc_full_buffer",
        ("self", "output", "size"),
        "225339bd986a",
        replaced=False,
    ),
    Seam(
        BREAKABLE,
        "BreakableCudaGraphBackend._copy_output_to_buffer",
        ("self", "output", "output_buffer", "num_tokens"),
        "cdbf134fad56",
        replaced=False,
    ),
    Seam(
        BREAKABLE,
        "BreakableCudaGraphBackend.replay",
        ("self", "shape_key", "static_forward_batch", "kwargs"),
        "b513bb8f9c32",
        replaced=False,
    ),
    Seam(CAPTURE, "BreakableCUDAGraphCapture.__enter__", ("self",), "10bba532f5e0"),
    Seam(CAPTURE, "BreakableCUDAGraphCapture.__exit__", ("self", "args"), "1e35610657be"),
    Seam(CAPTURE, "BreakableCUDAGraphCapture._begin_new_segment", ("self",), "eec6bc229cd4"),
    Seam(CAPTURE, "BreakableCUDAGraphCapture._end_current_segment", ("self",), "823376531dd0"),
    Seam(CAPTURE, "BreakableCUDAGraph.replay", ("self",), "a19997ec1059", replaced=False),
    Seam(
        CAPTURE,
        "BreakableCUDAGraph._append_segment",
        ("self", "graph", "needs_instantiate"),
        "eac7cc734c58",
        replaced=False,
    ),
    Seam(CAPTURE, "eager_on_graph", ("enable", "capture_stub"), "4b9e798d40e3", replaced=False),
    Seam(CAPTURE, "_weak_ref_if_tensor", ("x",), "8d0c9cd73578", replaced=False),
    Seam(CAPTURE, "_copy_output", ("dst", "src"), "dbe7b2fc6015", replaced=False),
    Seam(
        ATTENTION,
        "unified_attention_with_output",
        (
            "query",
            "key",
            "value",
            "output",
            "save_kv_cache",
            "layer_id",
            "use_mha_companion",
            "key_value_num_tokens",
            "q_rope",
            "k_rope",
            "sinks",
            "cos_sin_cache",
            "is_neox",
            "llama_4_scaling",
            "topk_indices",
        ),
        "df2e307395ef",
        replaced=False,
    ),
    Seam(
        ATTENTION,
        "_unified_attention_with_output_impl",
        (
            "query",
            "key",
            "value",
            "output",
            "save_kv_cache",
            "layer_id",
            "use_mha_companion",
            "return_lse",
            "key_value_num_tokens",
            "q_rope",
            "k_rope",
            "sinks",
            "cos_sin_cache",
            "is_neox",
            "llama_4_scaling",
            "topk_indices",
        ),
        "8b8735a24e19",
        replaced=False,
    ),
    Seam(DECODE_RUNNER, "DecodeCudaGraphRunner.capture", ("self",), "d90fe5bb468a", replaced=False),
    Seam(
        DECODE_RUNNER,
        "DecodeCudaGraphRunner.capture_one_shape",
        ("self", "size", "forward", "stream_idx", "variant_label"),
        "a81ddd23f278",
        replaced=False,
    ),
    Seam(
        DECODE_RUNNER,
        "DecodeCudaGraphRunner.capture_prepare",
        ("self", "size", "stream_idx", "num_tokens"),
        "f6a80101e4d4",
        replaced=False,
    ),
    Seam(PREFILL_RUNNER, "PrefillCudaGraphRunner.capture", ("self",), "0121ba19fb4f", replaced=False),
    Seam(
        PREFILL_RUNNER,
        "PrefillCudaGraphRunner.capture_one_shape",
        ("self", "size", "prefix_num_chunks"),
        "260c39dc278b",
        replaced=False,
    ),
    Seam(
        PREFILL_RUNNER, "PrefillCudaGraphRunner.capture_prepare", ("self", "num_tokens"), "daccb0f2ea88", replaced=False
    ),
    Seam(
        PREFILL_RUNNER,
        "PrefillCudaGraphRunner._run_forward",
        ("self", "forward_batch", "num_tokens"),
        "815c3bb6d994",
        replaced=False,
    ),
)

FIELDS = {
    ("sglang.srt.mem_cache.kv_cache_configurator", "KVCacheConfigurator"): (
        "ps",
        "model_config",
        "server_args",
        "is_draft_worker",
        "post_capture_kv_active",
    ),
    ("sglang.srt.distributed.parallel_state_wrapper", "ParallelState"): (
        "tp_size",
        "pp_size",
        "dp_size",
        "moe_ep_size",
        "dcp_size",
    ),
    ("sglang.srt.server_args", "ServerArgs"): (
        "dtype",
        "quantization",
        "kv_cache_dtype",
        "context_length",
        "max_running_requests",
        "max_total_tokens",
        "mem_fraction_static",
        "chunked_prefill_size",
        "page_size",
        "sampling_backend",
        "load_format",
        "attention_backend",
        "decode_attention_backend",
        "prefill_attention_backend",
        "enable_deterministic_inference",
        "cuda_graph_config",
        "enable_lora",
        "speculative_algorithm",
        "enable_memory_saver",
        "enable_torch_compile",
        "cpu_offload_gb",
        "enable_pdmux",
        "enable_two_batch_overlap",
        "disaggregation_mode",
        "enable_hisparse",
        "debug_cuda_graph",
    ),
    ("sglang.srt.model_executor.cuda_graph_config", "CudaGraphConfig"): ("decode", "prefill"),
    ("sglang.srt.model_executor.cuda_graph_config", "PhaseConfig"): ("backend", "bs"),
    ("sglang.srt.model_executor.pool_configurator", "MemoryPoolConfig"): (
        "max_total_num_tokens",
        "max_running_requests",
    ),
    ("sglang.srt.model_executor.runner.shape_key", "ShapeKey"): ("size", "stream_idx", "variant_label"),
    ("sglang.srt.layers.logits_processor", "LogitsProcessorOutput"): ("next_token_logits",),
}
