// Why the calling thread's last call of the C interface answered no.
#ifndef FOUNDRY_CAPI_REASON_H
#define FOUNDRY_CAPI_REASON_H

#include <string>

namespace foundry::capi {

// The calls below keep the reason and give back what the interface function answers.
int answer_unavailable(std::string reason);
int answer_misuse(std::string reason);
int answer_ok();

} // namespace foundry::capi

#define FOUNDRY_EXPORT extern "C" __attribute__((visibility("default")))

#endif
