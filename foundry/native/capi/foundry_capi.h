/* The C interface of the Foundry hook. C89-compatible, versioned, exported by libfoundry_hook.so.
 *
 * A program needs no link dependency: dlsym(RTLD_DEFAULT, "foundry_mode") is NULL when the hook is absent.
 * Functions may be called from any thread, none throws, none aborts. Strings are UTF-8; returned strings
 * live until the process ends. `stream` and exec handles are the driver's (CUstream, CUgraphExec).
 */
#ifndef FOUNDRY_CAPI_H
#define FOUNDRY_CAPI_H

#ifdef __cplusplus
extern "C" {
#endif

#define FOUNDRY_CAPI_VERSION 1

/* Results besides CUresult values, which are passed on as they are (0 = success, positive = the driver's). */
#define FOUNDRY_OK 0
#define FOUNDRY_UNAVAILABLE -1 /* the archive cannot give this; foundry_reason() says why. Do it the ordinary way. */
#define FOUNDRY_MISUSE -2      /* arguments or order of calls; foundry_reason() says which */

#define FOUNDRY_OFF 0
#define FOUNDRY_CAPTURE 1
#define FOUNDRY_RESTORE 2

typedef struct foundry_graph foundry_graph;

int foundry_capi_version(void);

/* FOUNDRY_CAPTURE or FOUNDRY_RESTORE while the hook is armed for that, else FOUNDRY_OFF.
   A restore that was given up (disarmed) is FOUNDRY_OFF, with its reason in foundry_reason(). */
int foundry_mode(void);

/* Why the calling thread's last call answered no, or why the hook disarmed. Never NULL. */
const char *foundry_reason(void);

/* Between begin and end, device memory comes from the scratch arena (process-wide, nests). What a restore skips goes in
 * here. */
int foundry_scratch_begin(const char *name);
int foundry_scratch_end(void);

/* Capture: the first graph that this thread instantiates between begin and end is stored under (set, key).
   metadata may be NULL; it comes back from foundry_graph_metadata on restore. */
int foundry_graph_begin(const char *set, const char *key);
int foundry_graph_end(const char *metadata);

/* Restore: NULL if the archive has no usable graph of that name (foundry_reason says why).
   Finding does not build: foundry_graph_wait does, or the background thread already has. */
foundry_graph *foundry_graph_find(const char *set, const char *key);
const char *foundry_graph_metadata(const foundry_graph *graph); /* NULL if it has none */
/* Checks that each allocation the graph refers to stands where it stood, builds the exec if the background has not. */
int foundry_graph_wait(foundry_graph *graph);
int foundry_graph_launch(foundry_graph *graph, void *stream);
/* The program captures this graph anew although the archive has it, and why (other inputs, another version): for the
   report. Python treats a hook without this function as one that does not report it. */
void foundry_graph_give_up(foundry_graph *graph, const char *reason);
/* The CUgraphExec, after foundry_graph_wait answered 0; else NULL. Owned by the hook: do not destroy it. */
void *foundry_graph_exec(foundry_graph *graph);

/* The program captures this graph itself after all, though the archive has it; the report names the reason. */
void foundry_graph_give_up(foundry_graph *graph, const char *reason);

/* Where the reserved address range of a device begins, 0 = there is none. Addresses in what a program compares between
   starts by its own means (digests) must be told relative to it: a restore may have the range elsewhere. Python treats
   a hook without this function as one that always has it at the same place. */
unsigned long long foundry_range_base(int device);

/* The program is ready to serve: the spool is a complete capture from here on; on restore the summary line is printed.
 */
int foundry_commit(void);

/* Named totals for the report. The hook's own: see foundry/native/hook/counters.h. Adapters add theirs. */
void foundry_count(const char *name, unsigned long long add);
unsigned long long foundry_counter(const char *name);

/* Checks a restore image file as the hook does before it maps it. 0, or FOUNDRY_UNAVAILABLE with a reason. */
int foundry_image_check(const char *path);

/* Row i of the table of driver functions as "family symbol since capture restore", or NULL past the end. */
const char *foundry_table_row(unsigned index);

#ifdef __cplusplus
}
#endif

#endif
