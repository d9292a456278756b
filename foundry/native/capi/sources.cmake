target_sources(foundry_hook PRIVATE
  capi/graphs.cpp
  capi/mode.cpp
  capi/reason.cpp
  capi/recording.cpp
  capi/table.cpp
)
