/* foundry_embed.h - the restore engine inside a program that links libfoundry_restore.a: no LD_PRELOAD. C89 and C++.
 *
 *     cc engine.c -I"$(foundry --include)" "$(foundry --library)" -ldl -lpthread -lm
 *
 * The program opens libcuda.so.1 itself, and takes each driver function from foundry_embed_entry instead of dlsym.
 * Then the calls reach the engine as they would reach a preloaded hook. This file includes foundry.h, whose functions
 * are then the engine's. Under `foundry capture` and `foundry restore` the preloaded hook serves the program, and the
 * engine in it stands aside: one binary is captured, restored, and restored by itself.
 *
 * What must be so:
 * - All functions that deal with memory, images, kernels and graphs come from foundry_embed_entry, also those that
 *   libraries of the program call. What does not (a CUDA runtime, cuBLAS) is not seen; the allocations then differ
 *   from the capture's, and the engine gives up. `-Wl,--wrap=dlsym` at the program's link has each dlsym of the
 *   objects that are linked answered in this way, so also those of a static CUDA runtime, and those for
 *   foundry_capi.h. Shared libraries need the preloaded hook.
 * - The image is made from an archive by `foundry image`, for this version of foundry: make it where the program is
 *   installed.
 * - The program allocates as it did when it was captured.
 */
#ifndef FOUNDRY_EMBED_H
#define FOUNDRY_EMBED_H

#ifdef FOUNDRY_H
#error "foundry_embed.h includes foundry.h itself, and must come before it"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Before the first foundry_embed_entry: this process is to have the graphs of a restore image. `report` is a folder
 * for the events of this process (a spool), or NULL. Answers 0, or as the functions of foundry_capi.h
 * do. Whether the image fits the machine shows at cuInit: foundry_mode() is FOUNDRY_OFF then, and all calls go to the
 * driver. */
int foundry_embed_restore(const char *image, const char *report);

/* The driver function of that exported name (cuMemAlloc_v2), for the libcuda.so.1 that the program has opened, or the
 * function of foundry_capi.h of that name; NULL if there is none, or no driver is open. Also before
 * foundry_embed_restore, or without: then it is the driver's own. */
void *foundry_embed_entry(const char *name);

#ifdef __cplusplus
}
#endif

#ifndef FOUNDRY_CAPI_H
#include "foundry.h"
#endif

#endif
