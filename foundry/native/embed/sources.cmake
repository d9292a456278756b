# libfoundry_restore.a: the objects of the hook, but for what only a preloaded library does, as one object whose names are
# all its own: a program that links it has its own C++ runtime, or none, and its own functions of the driver's names.
add_library(foundry_embed OBJECT
  embed/dlsym.cpp
  embed/embed.cpp
  embed/settings.cpp
)
get_target_property(FOUNDRY_HOOK_OPTIONS foundry_hook COMPILE_OPTIONS)
target_link_libraries(foundry_embed PRIVATE foundry_options)
target_compile_options(foundry_embed PRIVATE ${FOUNDRY_HOOK_OPTIONS})
set_source_files_properties(embed/dlsym.cpp PROPERTIES COMPILE_OPTIONS "${FOUNDRY_DLSYM_OPTIONS}")

set(FOUNDRY_EMBED_OBJECT "${CMAKE_CURRENT_BINARY_DIR}/foundry_restore.o")
set(FOUNDRY_EMBED_LIBRARY "${CMAKE_CURRENT_BINARY_DIR}/libfoundry_restore.a")
set(FOUNDRY_EMBED_PARTS
  "$<FILTER:$<TARGET_OBJECTS:foundry_hook>,EXCLUDE,/(settings|dlsym_shim|main_shim)[.]cpp>"
  $<TARGET_OBJECTS:foundry_embed>)
add_custom_command(
  OUTPUT "${FOUNDRY_EMBED_LIBRARY}"
  COMMAND ${CMAKE_CXX_COMPILER} -r -nostdlib -Wl,--force-group-allocation -o "${FOUNDRY_EMBED_OBJECT}" ${FOUNDRY_EMBED_PARTS}
          -l:libstdc++.a -l:libgcc.a -l:libgcc_eh.a
  COMMAND ${CMAKE_OBJCOPY} --keep-global-symbol=foundry_embed_restore --keep-global-symbol=foundry_embed_entry
          --keep-global-symbol=__wrap_dlsym --strip-debug "${FOUNDRY_EMBED_OBJECT}"
  COMMAND ${CMAKE_COMMAND} -E rm -f "${FOUNDRY_EMBED_LIBRARY}"
  COMMAND ${CMAKE_AR} qcD "${FOUNDRY_EMBED_LIBRARY}" "${FOUNDRY_EMBED_OBJECT}"
  COMMAND ${CMAKE_RANLIB} -D "${FOUNDRY_EMBED_LIBRARY}"
  DEPENDS foundry_hook foundry_embed $<TARGET_OBJECTS:foundry_embed>
  COMMAND_EXPAND_LISTS
  VERBATIM)
add_custom_target(foundry_restore ALL DEPENDS "${FOUNDRY_EMBED_LIBRARY}")
