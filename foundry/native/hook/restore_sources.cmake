target_sources(foundry_hook PRIVATE
  hook/restore_check.cpp
  hook/restore_engine.cpp
  hook/restore_graphs.cpp
  hook/restore_handover.cpp
  hook/restore_image.cpp
  hook/restore_images.cpp
  hook/restore_memory.cpp
  hook/restore_partners.cpp
  hook/restore_report.cpp
  hook/restore_session.cpp
  hook/restore_template.cpp
  hook/restore_verify.cpp
  hook/restore_worker.cpp
)
