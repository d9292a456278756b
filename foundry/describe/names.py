"""Numbers of the driver and of the format, by name. Unknown numbers keep theirs: `#77`."""

from __future__ import annotations

from collections.abc import Mapping

NODE_TYPES = {
    0: "kernel",
    1: "memcpy",
    2: "memset",
    3: "host",
    4: "graph",
    5: "empty",
    6: "wait_event",
    7: "event_record",
    8: "ext_semas_signal",
    9: "ext_semas_wait",
    10: "mem_alloc",
    11: "mem_free",
    12: "batch_mem_op",
    13: "conditional",
    14: "memcpy_batch",
}
"""`CUgraphNodeType`, as the registry of the format names them."""

LAUNCH_ATTRIBUTES = {
    0: "ignore",
    1: "access_policy_window",
    2: "cooperative",
    3: "synchronization_policy",
    4: "cluster_dimension",
    5: "cluster_scheduling_policy_preference",
    6: "programmatic_stream_serialization",
    7: "programmatic_event",
    8: "priority",
    9: "mem_sync_domain_map",
    10: "mem_sync_domain",
    11: "preferred_cluster_dimension",
    12: "launch_completion_event",
    13: "device_updatable_kernel_node",
    14: "preferred_shared_memory_carveout",
    16: "nvlink_util_centric_scheduling",
    17: "portable_cluster_size_mode",
    18: "shared_memory_mode",
}
"""`CUlaunchAttributeID`."""

FUNCTION_ATTRIBUTES = {
    0: "max_threads_per_block",
    1: "shared_size_bytes",
    2: "const_size_bytes",
    3: "local_size_bytes",
    4: "num_regs",
    5: "ptx_version",
    6: "binary_version",
    7: "cache_mode_ca",
    8: "max_dynamic_shared_size_bytes",
    9: "preferred_shared_memory_carveout",
    10: "cluster_size_must_be_set",
    11: "required_cluster_width",
    12: "required_cluster_height",
    13: "required_cluster_depth",
    14: "non_portable_cluster_size_allowed",
    15: "cluster_scheduling_policy_preference",
    16: "device_node_update_supported",
    17: "shared_memory_mode",
}
"""`CUfunction_attribute`."""

JIT_OPTIONS = {
    0: "max_registers",
    1: "threads_per_block",
    2: "wall_time",
    7: "optimization_level",
    8: "target_from_context",
    9: "target",
    10: "fallback_strategy",
    11: "generate_debug_info",
    12: "log_verbose",
    13: "generate_line_info",
    14: "cache_mode",
    16: "fast_compile",
    20: "lto",
    21: "ftz",
    22: "prec_div",
    23: "prec_sqrt",
    24: "fma",
    29: "optimize_unused_device_variables",
    30: "position_independent_code",
    31: "min_cta_per_sm",
    32: "max_threads_per_block",
    33: "override_directive_values",
    34: "split_compile",
    35: "binary_loader_thread_count",
}
"""`CUjit_option`, those that say something about the code."""

MEMORY_TYPES = {1: "host", 2: "device", 3: "array", 4: "unified"}
"""`CUmemorytype`."""
EDGE_TYPES = {0: "default", 1: "programmatic"}
"""`CUgraphDependencyType`."""
KERNEL_PORTS = {0: "default", 1: "programmatic", 2: "launch_order"}
"""Ports out of a kernel node."""
ARENAS = {0: "main", 1: "scratch", 2: "graph"}
ORIGINS = {0: "plain", 1: "pitched", 2: "stream_ordered"}
FORMATS = {1: "elf", 2: "fatbin", 3: "ptx", 4: "simulated", 5: "unknown"}
APIS = {1: "module", 2: "library"}
RANGES = {
    1: "pinned",
    2: "registered",
    3: "managed",
    4: "mapped",
    5: "pool",
    6: "peer",
    7: "global",
    8: "outside",
}
"""Memory that the hook did not place."""
SEVERITIES = {0: "note", 1: "warn", 2: "error"}
INSTANTIATE_FLAGS = {
    1: "auto_free_on_launch",
    2: "upload",
    4: "device_launch",
    8: "use_node_priority",
}
"""Bits of `CUgraphInstantiate_flags`."""


def name(table: Mapping[int, str], number: int) -> str:
    """Name a number of one of the tables above; `#<number>` if the table does not know it."""
    return table.get(number, f"#{number}")


def node_type(number: int) -> str:
    """Name a node type."""
    return name(NODE_TYPES, int(number))


def launch_attribute(number: int) -> str:
    """Name a launch attribute."""
    return name(LAUNCH_ATTRIBUTES, number)


def function_attribute(number: int) -> str:
    """Name a function attribute."""
    return name(FUNCTION_ATTRIBUTES, number)


def flags(table: Mapping[int, str], value: int) -> list[str]:
    """Name the bits that are set, lowest first."""
    return [name(table, 1 << bit) for bit in range(value.bit_length()) if value >> bit & 1]


def address(value: int) -> str:
    """Write an address, or any word of 8 bytes, as all documents do."""
    return f"{value:#x}"
