target_sources(foundry_hook PRIVATE
  hook/allocators.cpp
  hook/arena.cpp
  hook/arena_range.cpp
  hook/async_hooks.cpp
  hook/beginning.cpp
  hook/bypass.cpp
  hook/capture_hooks.cpp
  hook/command.cpp
  hook/contents.cpp
  hook/context_hooks.cpp
  hook/counters.cpp
  hook/crc32c.cpp
  hook/dlsym_shim.cpp
  hook/doors.cpp
  hook/early.cpp
  hook/event_hooks.cpp
  hook/exec_table.cpp
  hook/fatbin_thin.cpp
  hook/fence.cpp
  hook/graph_edges.cpp
  hook/graph_hooks.cpp
  hook/graph_label.cpp
  hook/graph_record.cpp
  hook/hold.cpp
  hook/host_memory_hooks.cpp
  hook/image_bytes.cpp
  hook/image_key.cpp
  hook/image_load.cpp
  hook/images.cpp
  hook/ipc_exports.cpp
  hook/ipc_hooks.cpp
  hook/ipc_imports.cpp
  hook/ipc_socket.cpp
  hook/kernel_hooks.cpp
  hook/kernel_record.cpp
  hook/launch_hooks.cpp
  hook/library_files.cpp
  hook/library_hooks.cpp
  hook/main_shim.cpp
  hook/mapping.cpp
  hook/memory_hooks.cpp
  hook/module_hooks.cpp
  hook/moments.cpp
  hook/notes.cpp
  hook/patience.cpp
  hook/placement.cpp
  hook/pointer_hooks.cpp
  hook/pool.cpp
  hook/process.cpp
  hook/provenance.cpp
  hook/ranges.cpp
  hook/role.cpp
  hook/runtime.cpp
  hook/settings.cpp
  hook/sha256.cpp
  hook/sha256_x86.cpp
  hook/spool.cpp
  hook/state.cpp
  hook/threads.cpp
  hook/virtual_memory_hooks.cpp
)

# The jump at the end of dlsym must be one in every build, and no sanitizer may stand in its way.
set(FOUNDRY_DLSYM_OPTIONS
  "-O2;-foptimize-sibling-calls;-fno-sanitize=all;-fno-stack-protector;-fno-instrument-functions;-U_FORTIFY_SOURCE")
set_source_files_properties(hook/dlsym_shim.cpp PROPERTIES COMPILE_OPTIONS "${FOUNDRY_DLSYM_OPTIONS}")

# Exceptions would bring constructors and newer C library versions with them.
target_compile_options(foundry_hook PRIVATE -fno-exceptions -fno-rtti -fno-threadsafe-statics)
# The hook is loaded with the program, so its thread-local data has a fixed place and needs no help of the loader.
target_compile_options(foundry_hook PRIVATE -ftls-model=initial-exec)
target_link_options(foundry_hook PRIVATE
  -Wl,-Bsymbolic
  -Wl,-z,now,-z,relro
  "-Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/hook/exports.map")
set_target_properties(foundry_hook PROPERTIES LINK_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/hook/exports.map")
if(NOT FOUNDRY_SANITIZE)
  # Before glibc 2.34 these two hold functions that libc holds now.
  target_link_options(foundry_hook PRIVATE "-Wl,--push-state,--no-as-needed,-l:libdl.so.2,-l:libpthread.so.0,--pop-state")
  target_compile_options(foundry_hook PRIVATE -include "${CMAKE_CURRENT_SOURCE_DIR}/table/glibc_floor.h")
endif()
