/* The spool: what the hook writes while a program runs, and the packer reads. Not durable: FOUNDRY_ABI must match
 * exactly.
 *
 * One folder per process, `<FOUNDRY_SPOOL>/<role>/`, made at the first successful cuInit (or by a forked child's first
 * hooked call). It holds `events` (append-only frames) and `blob.<n>` files. A blob file is complete before the frame
 * that names it. Every prefix that ends on a frame boundary is valid. An empty file `broken` stands beside them if
 * something could not be written: what came later is missing.
 *
 * Frame header, 16 bytes, little-endian:
 *   u16 kind      FOUNDRY_EVENT_*
 *   u16 thread    ordinal of the writing thread, 0 = the one that called cuInit
 *   u32 crc32c    Castagnoli, of the payload
 *   u64 length    bytes of payload that follow
 *
 * Payloads are packed, little-endian, fields in the order listed at each kind.
 *   str   = u32 length, bytes (UTF-8, not terminated)
 *   bytes = u32 length, bytes
 *   list<T> = u32 count, then count times T
 * Handles are raw driver values. Times appear only as totals and moments whose names say so (`_ns`, `_nanoseconds`).
 */
#ifndef FOUNDRY_SPOOL_FORMAT_H
#define FOUNDRY_SPOOL_FORMAT_H

#include <stdint.h>

#define FOUNDRY_ABI 7u

enum foundry_event_kind {
    /* u32 abi; u32 mode (FOUNDRY_MODE_*); str role; str executable (base name); list<str key, str value> rank variables
     */
    FOUNDRY_EVENT_BEGIN = 1,
    /* u32 driver_version; u32 simulated; str library path */
    FOUNDRY_EVENT_DRIVER = 2,
    /* u32 ordinal; str name; u8[16] uuid; u32 cc_major; u32 cc_minor; u32 multiprocessors; u64 total_memory;
       u32 flags (1 virtual memory supported, 2 MIG); u64 base; u64 size of one arena (0 = no range was had).
       Arena k (FOUNDRY_ARENA_*) is [base + k*size, base + (k+1)*size). Written when the range is first reserved. */
    FOUNDRY_EVENT_DEVICE = 3,
    /* u64 handle; u32 device; u32 primary (1) or created (0); u32 ordinal among the created ones of that device */
    FOUNDRY_EVENT_CONTEXT = 4,

    /* library files that are mapped and were not told before, but those opened by descriptor; at the first cuInit, at
       commit and at the end. list<str path, str build id (hex, may be empty)> */
    FOUNDRY_EVENT_LIBRARIES = 5,

    /* u64 address; u64 size asked for; u64 bytes taken; u32 device; u8 arena; u8 origin (FOUNDRY_ORIGIN_*); u64 ordinal
       in arena */
    FOUNDRY_EVENT_ALLOCATION = 10,
    /* u64 address; u32 device; u8 arena */
    FOUNDRY_EVENT_FREE = 11,
    /* memory the hook did not place. u8 kind (FOUNDRY_RANGE_*); u64 address; u64 size; u64 owner (image handle of a
       global, else 0); str name (of a global; `role/device/arena/ordinal` of what another's hook placed; else empty) */
    FOUNDRY_EVENT_RANGE = 12,
    /* u8 kind; u64 address */
    FOUNDRY_EVENT_RANGE_GONE = 13,
    /* contents of memory of the graph arena that stands, read before the next graph is told; memory of that arena that
       has none held zeros. u64 address; u64 size; u32 blob; str code: why they are not known (then blob is
       FOUNDRY_NONE, and size that of the allocation), else empty: what was said of it so does not hold, it held zeros.
       A later one for the address replaces it. */
    FOUNDRY_EVENT_CONTENTS = 14,
    /* of threads that allocate in the main arena. u16 thread; u8 ended (1): it will do nothing more. Or come (0),
       before its first: u64 number of main allocations told before it was born, at least; else 0 */
    FOUNDRY_EVENT_ALLOCATOR = 15,

    /* u64 handle; u8 api (FOUNDRY_API_*); u8 format (FOUNDRY_FORMAT_*); u32 blob; u64 size; u8[32] key; u64 context
       (modules) ; list<u32 option, u64 value> JIT options with plain values; str provenance path; str build id (hex,
       may be empty); u64 offset in it. key: SHA-256, see foundry/native/hook/image_key.h. A repeated key names the same
       blob. */
    FOUNDRY_EVENT_IMAGE = 20,
    /* 21 is not used again: it told what a PTX image was linked to. */
    /* u64 handle */
    FOUNDRY_EVENT_IMAGE_GONE = 22,
    /* restore only: the next IMAGE of that handle is the restore engine's, not a load of the program's. It is the load
       of its key that the archive has under that number. u64 handle; u32 instance */
    FOUNDRY_EVENT_IMAGE_RESTORED = 23,
    /* a kernel as graph nodes name it; written before the first graph that uses it, and again when its attributes
       changed. u64 handle; u64 image handle (0 = unknown); str name; list<u32 offset, u32 size> parameters; list<u32
       CUfunction_attribute, i32 value> the settable attributes as they stand */
    FOUNDRY_EVENT_KERNEL = 30,

    /* an instantiated graph. u64 graph; u64 exec; u64 instantiate flags; u32 device; u64 context; u8 captured (1) or
       explicit (0); str set; str key (both empty = unlabelled); then a GRAPH BODY: list<NODE> nodes; list<u32 from, u32
       to, u8[8] CUgraphEdgeData> edges (those to one node in the order in which the driver keeps its dependencies)
       NODE: u32 CUgraphNodeType; str reason (non-empty = cannot be rebuilt, and why; then nothing follows); else by
       type: KERNEL        u64 kernel handle; u32 grid[3]; u32 block[3]; u32 shared bytes; u64 context; bytes parameters
       (laid out as the kernel's parameter list says); list<u32 CUlaunchAttributeID, bytes value (up to 64, trailing
       zeros cut)> MEMSET        u64 destination; u64 pitch; u32 value; u32 element size; u64 width; u64 height; u64
       context MEMCPY        bytes CUDA_MEMCPY3D as it stands (200 bytes); u64 context GRAPH         GRAPH BODY of the
       child EVENT_RECORD, WAIT_EVENT   u64 event handle EMPTY nothing */
    FOUNDRY_EVENT_GRAPH = 40,
    /* str set; str key; str metadata (UTF-8, the adapter's own) */
    FOUNDRY_EVENT_GRAPH_METADATA = 41,
    /* u64 exec */
    FOUNDRY_EVENT_EXEC_GONE = 42,
    /* the exec no longer is what GRAPH said. u64 exec; str how */
    FOUNDRY_EVENT_EXEC_CHANGED = 43,
    /* u64 handle; u32 flags */
    FOUNDRY_EVENT_EVENT_CREATED = 44,
    /* a stream capture that ended in an error. u64 stream; u32 CUresult */
    FOUNDRY_EVENT_CAPTURE_FAILED = 45,
    /* first launch of an exec, in order. u64 exec */
    FOUNDRY_EVENT_EXEC_LAUNCHED = 46,
    /* the program destroyed the event, so that only graphs can still name it. u64 handle. Where threads race, it may
       come after the EVENT_CREATED that has the handle again. */
    FOUNDRY_EVENT_EVENT_GONE = 47,

    /* u8 begin (1) or end (0); u8 kind (FOUNDRY_PHASE_*); str name */
    FOUNDRY_EVENT_PHASE = 50,
    /* list<str name, u64 value>: totals so far, and moments (hook/moments.h); the last one counts */
    FOUNDRY_EVENT_COUNTERS = 51,
    /* something worth telling. str code (format_spec/registry.md); str text */
    FOUNDRY_EVENT_FINDING = 52,
    /* the program is ready; what stands before this is a complete capture. u32 ordinal */
    FOUNDRY_EVENT_COMMIT = 53,
    /* restore only. str set; str key; u8 state (1 handed out, 0 given up); str reason; u64 build nanoseconds */
    FOUNDRY_EVENT_GRAPH_RESTORED = 60,
    /* restore only: phases of the work so far, by name; the last one counts. list<str name, u64 nanoseconds> */
    FOUNDRY_EVENT_TIMINGS = 61,
    /* orderly end; no payload */
    FOUNDRY_EVENT_END = 99
};

enum foundry_arena {
    FOUNDRY_ARENA_MAIN = 0,
    FOUNDRY_ARENA_SCRATCH = 1,
    FOUNDRY_ARENA_GRAPH = 2,
    FOUNDRY_ARENA_COUNT = 3
};
enum foundry_origin { FOUNDRY_ORIGIN_PLAIN = 0, FOUNDRY_ORIGIN_PITCH = 1, FOUNDRY_ORIGIN_ASYNC = 2 };
enum foundry_range {
    FOUNDRY_RANGE_PINNED = 1,     /* cuMemAllocHost, cuMemHostAlloc */
    FOUNDRY_RANGE_REGISTERED = 2, /* cuMemHostRegister */
    FOUNDRY_RANGE_MANAGED = 3,    /* cuMemAllocManaged */
    FOUNDRY_RANGE_MAPPED = 4,     /* the program's own cuMemMap */
    FOUNDRY_RANGE_POOL = 5,       /* cuMemAllocFromPoolAsync from a pool of the program's */
    FOUNDRY_RANGE_PEER = 6,       /* cuIpcOpenMemHandle, cuMemPoolImportPointer */
    FOUNDRY_RANGE_GLOBAL = 7,     /* cuModuleGetGlobal, cuLibraryGetGlobal */
    FOUNDRY_RANGE_OUTSIDE = 8     /* a device allocation that the driver served because the hook could not */
};
enum foundry_api { FOUNDRY_API_MODULE = 1, FOUNDRY_API_LIBRARY = 2 };
enum foundry_format {
    FOUNDRY_FORMAT_ELF = 1,
    FOUNDRY_FORMAT_FATBIN = 2,
    FOUNDRY_FORMAT_PTX = 3,
    FOUNDRY_FORMAT_SIMULATED = 4,
    FOUNDRY_FORMAT_UNKNOWN = 5
};
enum foundry_phase_kind { FOUNDRY_PHASE_SCRATCH = 1, FOUNDRY_PHASE_NAMED = 2 };
enum foundry_mode { FOUNDRY_MODE_OFF = 0, FOUNDRY_MODE_CAPTURE = 1, FOUNDRY_MODE_RESTORE = 2 };

#endif
