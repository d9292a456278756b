#include "process.h"

#include <pthread.h>
#include <stdlib.h>

#include "../restore/engine.h"
#include "allocators.h"
#include "arena.h"
#include "bypass.h"
#include "captures.h"
#include "contents.h"
#include "contexts.h"
#include "early.h"
#include "ipc_exports.h"
#include "ipc_imports.h"
#include "ipc_socket.h"
#include "library_files.h"
#include "settings.h"
#include "spool.h"

namespace foundry {
namespace {

bool watched;

void in_child() {
    restore::forked();
    spool_forget();
    arena_forget();
    ipc_socket_forget();
    ipc_exports_forget();
    ipc_imports_forget();
    allocators_forget();
    contents_forget();
    pool_forget();
    images_forget();
    captures_forget();
    contexts_forget();
    recorder_forget();
    ranges_forget();
    bypass_forget();
    library_files_forget();
    state_forget();
}

void at_exit() {
    if (spools() && !spool_is_open()) return;
    early_leave();
    bypass_report();
    library_files_tell();
    restore::process_end();
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
