#include "reason.h"

#include <pthread.h>

#include <atomic>
#include <mutex>
#include <new>
#include <set>

#include "../hook/state.h"
#include "foundry_capi.h"

namespace foundry::capi {
namespace {

// Strings that were returned live until the process ends, so each reason is kept once, for ever.
std::mutex mutex;
std::set<std::string> *reasons;
thread_local const char *last = nullptr;

// The child of a fork: another thread may have been at work on them.
void forget() {
    new (&mutex) std::mutex;
    reasons = nullptr;
    last = nullptr;
}

// A reason is one line for a log, whatever names it holds.
int keep(std::string reason, int answer) {
    for (char &letter : reason)
        if (static_cast<unsigned char>(letter) < 32 || letter == 127) letter = '?';
    static std::atomic<bool> watched{false}; // also where the hook never arms
    if (!watched.exchange(true)) pthread_atfork(nullptr, nullptr, forget);
    if (last && reason == last) return answer;
    std::lock_guard<std::mutex> lock(mutex);
    if (!reasons) reasons = new std::set<std::string>;
    last = reasons->insert(std::move(reason)).first->c_str();
    return answer;
}

} // namespace

int answer_unavailable(std::string reason) {
    return keep(std::move(reason), FOUNDRY_UNAVAILABLE);
}
int answer_misuse(std::string reason) {
    return keep(std::move(reason), FOUNDRY_MISUSE);
}

int answer_ok() {
    last = nullptr;
    return FOUNDRY_OK;
}

} // namespace foundry::capi

FOUNDRY_EXPORT const char *foundry_reason(void) {
    if (foundry::capi::last) return foundry::capi::last;
    return foundry::disarm_reason();
}
