target_sources(foundry_simulator PRIVATE
  sim/backing.cpp
  sim/capture.cpp
  sim/contexts.cpp
  sim/copy.cpp
  sim/copy_work.cpp
  sim/devices.cpp
  sim/errors.cpp
  sim/events.cpp
  sim/exec.cpp
  sim/exec_update.cpp
  sim/exports.cpp
  sim/fill.cpp
  sim/generic_nodes.cpp
  sim/getproc.cpp
  sim/graph.cpp
  sim/graph_edit.cpp
  sim/graph_memory.cpp
  sim/graph_query.cpp
  sim/handles.cpp
  sim/image.cpp
  sim/init.cpp
  sim/ipc.cpp
  sim/kernel_nodes.cpp
  sim/kernels.cpp
  sim/launch.cpp
  sim/levers.cpp
  sim/libraries.cpp
  sim/memory.cpp
  sim/memory_host.cpp
  sim/memory_query.cpp
  sim/modules.cpp
  sim/nodes.cpp
  sim/occupancy.cpp
  sim/physical.cpp
  sim/pools.cpp
  sim/regions.cpp
  sim/report.cpp
  sim/shared_files.cpp
  sim/stream_calls.cpp
  sim/streams.cpp
  sim/stubs.cpp
  sim/user_objects.cpp
  sim/virtual_memory.cpp
  sim/work.cpp
)

set_target_properties(foundry_simulator PROPERTIES OUTPUT_NAME cuda SUFFIX ".so.1" NO_SONAME ON)

# -Bsymbolic: the addresses that cuGetProcAddress gives are this library's, whatever was preloaded in front of it.
target_link_options(foundry_simulator PRIVATE
  -Wl,-soname,libcuda.so.1
  -Wl,-Bsymbolic
  -Wl,--version-script=${CMAKE_CURRENT_LIST_DIR}/exports.map
)
