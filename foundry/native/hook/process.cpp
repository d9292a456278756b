#include "process.h"

#include <pthread.h>
#include <stdlib.h>

#include "arena.h"
#include "bypass.h"
#include "captures.h"
#include "contexts.h"
#include "restore_engine.h"
#include "spool.h"

namespace foundry {
namespace {

bool watched;

void in_child() {
    restore_forked();
    spool_forget();
    arena_forget();
    pool_forget();
    images_forget();
    captures_forget();
    contexts_forget();
    recorder_forget();
    ranges_forget();
    bypass_forget();
    state_forget();
}

void at_exit() {
    if (!spool_is_open()) return;
    bypass_report();
    restore_process_end();
    spool_close();
}

} // namespace

void process_watch() {
    if (watched) return;
    watched = true;
    pthread_atfork(nullptr, nullptr, in_child);
    atexit(at_exit);
}

} // namespace foundry
