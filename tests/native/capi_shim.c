/* Calls each function of foundry.h, in strict C89, and says what it answers. */
#include <foundry.h>
#include <stdio.h>

static const char *given(const void *pointer) {
    return pointer ? "yes" : "no";
}

int main(void) {
    int begun, ended;
    printf("version %d\n", foundry_capi_version());
    printf("mode %d\n", foundry_mode());
    begun = foundry_scratch_begin("warm-up");
    ended = foundry_scratch_end();
    printf("scratch %d %d\n", begun, ended);
    begun = foundry_graph_begin("set", "key");
    ended = foundry_graph_end("metadata");
    printf("label %d %d\n", begun, ended);
    printf("find %s, next %s, key %s, ", given(foundry_graph_find("set", "key")),
           given(foundry_graph_next("set", NULL)), given(foundry_graph_key(NULL)));
    printf("metadata %s, exec %s\n", given(foundry_graph_metadata(NULL)), given(foundry_graph_exec(NULL)));
    printf("wait %d, launch %d\n", foundry_graph_wait(NULL), foundry_graph_launch(NULL, NULL));
    foundry_graph_give_up(NULL, "none");
    foundry_count("mine", 7);
    printf("counter %lu, range %lu\n", (unsigned long)foundry_counter("mine"), (unsigned long)foundry_range_base(0));
    printf("check %d, row %s\n", foundry_image_check("/nowhere"), given(foundry_table_row(0)));
    printf("commit %d\n", foundry_commit());
    printf("reason %s\n", foundry_reason());
    return 0;
}
