target_sources(foundry_hook PRIVATE
  table/bind.cpp
  table/pass.cpp
  table/rows.cpp
)
