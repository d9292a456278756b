#include "threads.h"

#include <pthread.h>
#include <signal.h>

namespace foundry {

bool start_thread(const char *name, void *(*entry)(void *), void *argument) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    const int error = pthread_create(&thread, nullptr, entry, argument);
    if (!error) {
        pthread_setname_np(thread, name);
        pthread_detach(thread);
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return !error;
}

} // namespace foundry
