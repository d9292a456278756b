target_sources(foundry_hook PRIVATE
  restore/check.cpp
  restore/engine.cpp
  restore/gate.cpp
  restore/graphs.cpp
  restore/handover.cpp
  restore/image.cpp
  restore/images.cpp
  restore/memory.cpp
  restore/move.cpp
  restore/partners.cpp
  restore/report.cpp
  restore/respool.cpp
  restore/session.cpp
  restore/template.cpp
  restore/verify.cpp
  restore/worker.cpp
)
