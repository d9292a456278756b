"""What this adapter relies on, as it is in the release that it knows; `python -m foundry.engines.seams` checks it.

The modules whose functions are replaced come first, each with the functions that it is patched in.
"""

from __future__ import annotations

from foundry.engines.protocol import Seam

VERSIONS = ("0.26.0",)

WORKER = "vllm.v1.worker.gpu_worker"
RUNNER_V2 = "vllm.v1.worker.gpu.model_runner"
MANAGER = "vllm.v1.worker.gpu.cudagraph_utils"
RUNNER_V1 = "vllm.v1.worker.gpu_model_runner"
WRAPPER = "vllm.compilation.cuda_graph"
WORKSPACE = "vllm.v1.worker.workspace"
CONFIG = "vllm.config.vllm"

ENVIRONMENT = "vllm.envs"

SEAMS = (
    Seam(WORKER, "Worker.init_device", ("self",), "b08274701681"),
    Seam(WORKER, "Worker.determine_available_memory", ("self",), "acfb9fe5670e"),
    Seam(WORKER, "Worker.compile_or_warm_up_model", ("self",), "c3f2d77b3488"),
    Seam(WORKER, "Worker.initialize_from_config", ("self", "kv_cache_config"), "e38816a7e495", replaced=False),
    Seam(RUNNER_V2, "GPUModelRunner.profile_run", ("self",), "bfc76d5a52ec"),
    Seam(RUNNER_V2, "GPUModelRunner.capture_model", ("self",), "a115505a6eed"),
    Seam(
        RUNNER_V2,
        "GPUModelRunner._dummy_run",
        ("self", "num_tokens", "args", "skip_attn", "uniform_decode", "skip_eplb", "is_profile", "kwargs"),
        "3ba7aeffc303",
        replaced=False,
    ),
    Seam(RUNNER_V2, "GPUModelRunner.initialize_kv_cache", ("self", "kv_cache_config"), "d2a10f364715", replaced=False),
    Seam(MANAGER, "CudaGraphManager.capture", ("self", "create_forward_fn", "progress_bar_desc"), "674daca17e6c"),
    Seam(MANAGER, "CudaGraphManager.run_fullgraph", ("self", "desc"), "da2b89f11265", replaced=False),
    Seam(MANAGER, "CudaGraphManager.needs_capture", ("self",), "9c669daa7eef", replaced=False),
    Seam(
        MANAGER,
        "ModelCudaGraphManager.capture",
        (
            "self",
            "model",
            "model_state",
            "input_buffers",
            "intermediate_tensors",
            "block_tables",
            "attn_groups",
            "kv_cache_config",
            "has_lora",
            "use_aux_hidden_state_outputs",
            "lora_capture_hook",
            "progress_bar_desc",
        ),
        "437aeea5b00b",
        replaced=False,
    ),
    Seam(MANAGER, "ModelCudaGraphManager.run_fullgraph", ("self", "desc"), "f82f622beecb", replaced=False),
    Seam(
        MANAGER,
        "prepare_inputs_to_capture",
        (
            "num_reqs",
            "num_tokens",
            "model_state",
            "input_buffers",
            "block_tables",
            "attn_groups",
            "kv_cache_config",
            "skip_attn",
        ),
        "26f3fabdebc7",
        replaced=False,
    ),
    Seam(RUNNER_V1, "GPUModelRunner.profile_run", ("self",), "1545185589cc"),
    Seam(RUNNER_V1, "GPUModelRunner.profile_cudagraph_memory", ("self",), "9dab7d5d661e"),
    Seam(RUNNER_V1, "GPUModelRunner.capture_model", ("self",), "8e8a373995e3"),
    Seam(
        RUNNER_V1,
        "GPUModelRunner._warmup_and_capture",
        (
            "self",
            "desc",
            "cudagraph_runtime_mode",
            "profile_seq_lens",
            "allow_microbatching",
            "num_warmups",
            "profiler",
        ),
        "bd6504587f09",
    ),
    Seam(
        RUNNER_V1,
        "GPUModelRunner._capture_cudagraphs",
        ("self", "batch_descriptors", "cudagraph_runtime_mode", "profiler"),
        "201bc500341a",
        replaced=False,
    ),
    Seam(
        RUNNER_V1,
        "GPUModelRunner._dummy_run",
        (
            "self",
            "num_tokens",
            "cudagraph_runtime_mode",
            "force_attention",
            "uniform_decode",
            "allow_microbatching",
            "skip_eplb",
            "is_profile",
            "create_mixed_batch",
            "remove_lora",
            "is_graph_capturing",
            "num_active_loras",
            "profile_seq_lens",
        ),
        "5224f78dd830",
        replaced=False,
    ),
    Seam(WRAPPER, "CUDAGraphWrapper.__call__", ("self", "args", "kwargs"), "ddd25e25454e"),
    Seam(
        WRAPPER,
        "CUDAGraphWrapper.__init__",
        ("self", "runnable", "vllm_config", "runtime_mode", "cudagraph_options"),
        "63b038cb2ba3",
        replaced=False,
    ),
    Seam("vllm.compilation.breakable_cudagraph", "is_breakable_cudagraph_enabled", (), "03906d8da3d9", replaced=False),
    Seam(WORKSPACE, "current_workspace_manager", (), "1e0bf511eff8", replaced=False),
    Seam(WORKSPACE, "is_workspace_manager_initialized", (), "badc499a9120", replaced=False),
    Seam(
        WORKSPACE, "WorkspaceManager._ensure_workspace_size", ("self", "required_bytes"), "2c928a177044", replaced=False
    ),
    Seam(ENVIRONMENT, "use_mega_aot_artifact", (), "0fb48fdde68a", replaced=False),
    Seam(ENVIRONMENT, "use_aot_compile", (), "7cd2228456dc", replaced=False),
    Seam(ENVIRONMENT, "enable_envs_cache", (), "580fe12e20d1", replaced=False),
    Seam(CONFIG, "VllmConfig.compute_hash", ("self",), "2f0150b7b4e7", replaced=False),
    Seam(CONFIG, "VllmConfig.use_v2_model_runner", ("self",), "11379adbd62f", replaced=False),
    Seam(
        "vllm.distributed.parallel_state",
        "graph_capture",
        ("device", "graph_capture_context"),
        "88f388c8ec4b",
        replaced=False,
    ),
    Seam(
        "vllm.v1.engine.core",
        "EngineCore._initialize_kv_caches",
        ("self", "vllm_config"),
        "80f3a822b128",
        replaced=False,
    ),
)

FIELDS = {
    (WRAPPER, "CUDAGraphEntry"): ("batch_descriptor", "cudagraph", "output", "input_addresses"),
    ("vllm.forward_context", "BatchDescriptor"): ("num_tokens", "num_reqs", "uniform"),
    ("vllm.compilation.counter", "CompilationCounter"): ("num_cudagraph_captured",),
    (CONFIG, "VllmConfig"): (
        "model_config",
        "cache_config",
        "scheduler_config",
        "parallel_config",
        "compilation_config",
        "attention_config",
        "offload_config",
        "lora_config",
        "speculative_config",
        "kv_transfer_config",
        "use_v2_model_runner",
    ),
    ("vllm.config.model", "ModelConfig"): ("hf_config", "dtype", "quantization", "max_model_len", "enable_sleep_mode"),
    ("vllm.config.cache", "CacheConfig"): (
        "cache_dtype",
        "kv_cache_memory_bytes",
        "num_gpu_blocks_override",
        "gpu_memory_utilization",
    ),
    ("vllm.config.scheduler", "SchedulerConfig"): ("max_num_seqs", "max_num_batched_tokens"),
    ("vllm.config.parallel", "ParallelConfig"): (
        "world_size",
        "data_parallel_size",
        "use_ubatching",
        "rank",
        "data_parallel_index",
    ),
    ("vllm.config.compilation", "CompilationConfig"): (
        "mode",
        "backend",
        "cudagraph_mode",
        "cudagraph_capture_sizes",
        "cudagraph_num_of_warmups",
        "cudagraph_mm_encoder",
        "use_inductor_graph_partition",
    ),
    ("vllm.config.attention", "AttentionConfig"): ("backend",),
    ("vllm.config.offload", "OffloadConfig"): ("uva", "prefetch"),
    ("vllm.config.offload", "UVAOffloadConfig"): ("cpu_offload_gb",),
    ("vllm.config.offload", "PrefetchOffloadConfig"): ("offload_group_size",),
}
