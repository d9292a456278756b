import os


def is_breakable_cudagraph_enabled() -> bool:
    return os.environ.get("VLLM_USE_BREAKABLE_CUDAGRAPH") == "1"
