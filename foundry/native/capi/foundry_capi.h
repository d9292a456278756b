/* foundry_capi.h - the C interface of the Foundry hook, version 1. C89 and C++; Linux.
 *
 * The hook is preloaded into a program by `foundry capture` and `foundry restore`, and exports these functions.
 * Nothing has to be linked: dlsym(RTLD_DEFAULT, "foundry_mode") finds them, and is NULL where there is no hook.
 * `foundry.h` beside this file does that: with it these functions can be called as they stand here, and do nothing
 * where there is no hook.
 *
 * Stability. FOUNDRY_CAPI_VERSION changes when a function that is listed here changes its meaning or its parameters,
 * or goes. What is added changes no version: a program that may meet an older hook asks dlsym for each function it
 * uses. A program whose hook has another version treats it as absent.
 *
 * Threads. Every function may be called from any thread, but not from a signal handler. None throws, none ends the
 * program.
 *
 * Strings are UTF-8 and end with a zero byte. Those that are passed are copied; those that are returned live until
 * the process ends.
 *
 * Answers. Functions that answer int give 0 where it went well, a negative number that is defined below, or a
 * positive number, which is the driver's own CUresult. After a no, foundry_reason() tells why, to the same thread.
 */
#ifndef FOUNDRY_CAPI_H
#define FOUNDRY_CAPI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Put before each declaration; `foundry.h` defines it to give the functions bodies of its own. */
#ifndef FOUNDRY_API
#define FOUNDRY_API extern
#endif

#define FOUNDRY_CAPI_VERSION 1

#define FOUNDRY_OK 0
#define FOUNDRY_UNAVAILABLE (-1) /* the hook or its archive cannot give this: do it the ordinary way */
#define FOUNDRY_MISUSE (-2)      /* wrong arguments or a wrong order of calls: a fault of the program */

/* What foundry_mode() answers. */
#define FOUNDRY_OFF 0
#define FOUNDRY_CAPTURE 1
#define FOUNDRY_RESTORE 2

/* A graph of the archive. Owned by the hook; lives until the process ends; equal pointers are one graph. */
typedef struct foundry_graph foundry_graph;

/* The FOUNDRY_CAPI_VERSION that the hook was built with. */
FOUNDRY_API int foundry_capi_version(void);

/* What the hook is doing in this process. It begins with the program's first successful cuInit: ask behind that. Before
 * it the answer is FOUNDRY_OFF, or FOUNDRY_RESTORE already where a restore starts early. A capture or a restore that
 * was given up is FOUNDRY_OFF from then on, and foundry_reason() says why. */
FOUNDRY_API int foundry_mode(void);

/* Why the calling thread's last call of this interface answered no; if it did not, why the hook gave up; else "".
 * Never NULL. One line, for a log. */
FOUNDRY_API const char *foundry_reason(void);

/* --- Phases ------------------------------------------------------------------------------------------------------- */

/* Between begin and end is what a restored start leaves out (warm-up, profiling of memory): device memory that is
 * allocated in it, by any thread, lies apart, so that leaving it out moves nothing else. Nests. `name` is for
 * reports. */
FOUNDRY_API int foundry_scratch_begin(const char *name);
FOUNDRY_API int foundry_scratch_end(void);

/* The program is ready to serve: what was captured so far is whole, and a restore prints its line. May be called
 * again. */
FOUNDRY_API int foundry_commit(void);

/* --- Capture ------------------------------------------------------------------------------------------------------ */

/* The first graph that this thread instantiates between begin and end is kept under the name (set, key), with
 * metadata: any text that says what the program must know to use it again, or NULL. Set and key are not empty and at
 * most 4,095 bytes long. Where no capture runs this only checks the order of calls. */
FOUNDRY_API int foundry_graph_begin(const char *set, const char *key);
/* FOUNDRY_UNAVAILABLE if no graph was instantiated in between. */
FOUNDRY_API int foundry_graph_end(const char *metadata);

/* --- Restore ------------------------------------------------------------------------------------------------------ */

/* The archive's graph of that name; NULL if it has none that can be used. Builds nothing and does not wait. */
FOUNDRY_API foundry_graph *foundry_graph_find(const char *set, const char *key);

/* All graphs of a set that can be used, one after another: NULL gives the first, the last one gives NULL. For
 * programs that ask the archive what to have ready. */
FOUNDRY_API foundry_graph *foundry_graph_next(const char *set, const foundry_graph *previous);

/* The key of a graph; NULL if it is none. */
FOUNDRY_API const char *foundry_graph_key(const foundry_graph *graph);

/* What foundry_graph_end got at the capture; NULL if that was nothing. */
FOUNDRY_API const char *foundry_graph_metadata(const foundry_graph *graph);

/* Call it where the program would capture the graph: what that reads must be allocated by then. Checks that each
 * allocation the graph refers to stands where it stood, and builds its exec if the background has not. After a no the
 * program captures the graph itself. */
FOUNDRY_API int foundry_graph_wait(foundry_graph *graph);

/* After foundry_graph_wait answered 0: cuGraphLaunch on a stream (a CUstream, or NULL). */
FOUNDRY_API int foundry_graph_launch(foundry_graph *graph, void *stream);

/* After foundry_graph_wait answered 0: the CUgraphExec, for a program's own cuGraphLaunch; else NULL. It is the
 * hook's and must not be destroyed. */
FOUNDRY_API void *foundry_graph_exec(foundry_graph *graph);

/* The program captures this graph itself, though the archive has it; the report then tells the reason. */
FOUNDRY_API void foundry_graph_give_up(foundry_graph *graph, const char *reason);

/* Where the hook's address range of a device begins; 0 if it has none there. A restore may have it elsewhere than the
 * capture had: addresses in metadata, or in digests that are compared, are told relative to it. */
FOUNDRY_API uint64_t foundry_range_base(int device);

/* --- Totals ------------------------------------------------------------------------------------------------------- */

/* Adds to a total of the report. Names are made up as they are needed: at most 63 bytes long, at most 256 of them. The
 * line that a restore prints tells `warm_ups_skipped` and `captures_skipped`: count them where the archive's graph is
 * taken. */
FOUNDRY_API void foundry_count(const char *name, uint64_t add);

/* That total; 0 if nothing has counted it. */
FOUNDRY_API uint64_t foundry_counter(const char *name);

/* --- For tools: no driver and no preloading is needed ------------------------------------------------------------- */

/* Checks a restore image as the hook does before it uses one. */
FOUNDRY_API int foundry_image_check(const char *path);

/* Row `index` of the table of driver functions: "family symbol since capture restore"; NULL past the end. */
FOUNDRY_API const char *foundry_table_row(unsigned index);

#ifdef __cplusplus
}
#endif

#endif
