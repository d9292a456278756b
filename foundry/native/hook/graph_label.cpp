// The name for the graph that a thread instantiates next.
#include "graph_label.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "state.h"

namespace foundry {
namespace {

struct Label {
    bool used;
    char *set, *key;
};

__thread Label label __attribute__((tls_model("initial-exec")));

} // namespace

bool graph_label_begin(const char *set, const char *key) {
    if (label.set) return false;
    label.set = strdup(set);
    label.key = strdup(key);
    label.used = false;
    if (label.set && label.key) return true;
    free(label.set);
    free(label.key);
    label = {};
    return false;
}

bool graph_label_end(bool *used, char *set, size_t set_size, char *key, size_t key_size) {
    if (!label.set) return false;
    if (used) *used = label.used;
    if (set) snprintf(set, set_size, "%s", label.set);
    if (key) snprintf(key, key_size, "%s", label.key);
    free(label.set);
    free(label.key);
    label = {};
    return true;
}

bool graph_label_take(const char **set, const char **key) {
    *set = *key = "";
    if (!label.set || label.used) return false;
    label.used = true;
    *set = label.set;
    *key = label.key;
    return true;
}

} // namespace foundry
