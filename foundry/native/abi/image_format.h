/* The restore image: one flat file per process role, built from an archive, mapped read-only by the hook.
 * A cache, not durable: FOUNDRY_ABI must match exactly, and the file may be deleted at any time.
 * Little-endian arrays that refer to each other by index; FOUNDRY_NONE where there is nothing to refer to.
 * Strings are byte offsets into STRINGS, each terminated by a zero byte; offset 0 is the empty string.
 */
#ifndef FOUNDRY_IMAGE_FORMAT_H
#define FOUNDRY_IMAGE_FORMAT_H

#include <stdint.h>

#define FOUNDRY_IMAGE_MAGIC "FDRYIMG1"
#define FOUNDRY_NONE 0xffffffffu

enum foundry_section {
    FOUNDRY_SECTION_STRINGS = 0,     /* bytes */
    FOUNDRY_SECTION_DEVICES,         /* foundry_image_device */
    FOUNDRY_SECTION_LOG,             /* foundry_image_log_entry: the main arena's whole history, in order */
    FOUNDRY_SECTION_ALLOCATIONS,     /* foundry_image_allocation: those that graphs refer to */
    FOUNDRY_SECTION_MAPPINGS,        /* foundry_image_mapping: what the hook itself maps */
    FOUNDRY_SECTION_BLOBS,           /* foundry_image_blob */
    FOUNDRY_SECTION_BLOB_BYTES,      /* bytes; each blob 4096-aligned in the file */
    FOUNDRY_SECTION_IMAGES,          /* foundry_image_kernel_image */
    FOUNDRY_SECTION_IMAGE_OPTIONS,   /* foundry_image_option */
    FOUNDRY_SECTION_KERNELS,         /* foundry_image_kernel */
    FOUNDRY_SECTION_PARAMETERS,      /* foundry_image_parameter */
    FOUNDRY_SECTION_ATTRIBUTES,      /* foundry_image_attribute: of kernels */
    FOUNDRY_SECTION_GROUPS,          /* foundry_image_group */
    FOUNDRY_SECTION_NODES,           /* foundry_image_node: topology only */
    FOUNDRY_SECTION_EDGES,           /* foundry_image_edge */
    FOUNDRY_SECTION_NODE_ATTRIBUTES, /* foundry_image_node_attribute */
    FOUNDRY_SECTION_GRAPHS,          /* foundry_image_graph, in the order in which the captured program made them */
    FOUNDRY_SECTION_RECORDS,         /* foundry_image_record: what differs between the members of a group */
    FOUNDRY_SECTION_PARAMETER_BYTES, /* bytes; each kernel node's block starts 16-aligned */
    FOUNDRY_SECTION_COPIES,          /* 200-byte CUDA_MEMCPY3D each */
    FOUNDRY_SECTION_REFERENCES,      /* u32: indices of ALLOCATIONS */
    FOUNDRY_SECTION_EVENTS,          /* u32: cuEventCreate flags; nodes name events by index */
    FOUNDRY_SECTION_MOVES,           /* foundry_image_move: where the addresses of proven graphs stand */
    FOUNDRY_SECTION_COUNT
};

struct foundry_image_section {
    uint64_t offset; /* from the start of the file, 16-aligned (BLOB_BYTES: 4096-aligned) */
    uint64_t count;  /* entries */
    uint32_t entry_size;
    /* Of all the section's bytes. 0 for BLOB_BYTES, whose blobs each have their own: a blob is checked when it is first
     * loaded, so that the check at the start need not read tens of megabytes. */
    uint32_t crc32c;
};

struct foundry_image_header {
    char magic[8];
    uint32_t abi;
    uint32_t section_count;
    uint64_t file_size;
    uint8_t capture_id[32];
    uint32_t driver_version; /* of the capture */
    uint32_t simulated;
    uint32_t role;                 /* string */
    uint32_t crc32c;               /* of the whole header with this field zero */
    uint64_t captured_nanoseconds; /* time the captured program spent on warm-ups and captures, 0 = not known */
    struct foundry_image_section sections[FOUNDRY_SECTION_COUNT];
};

struct foundry_image_device {
    uint32_t ordinal;
    uint32_t name; /* string */
    uint32_t compute_major, compute_minor;
    uint32_t multiprocessors;
    uint32_t flags;
    uint64_t total_memory;
    uint64_t base;       /* of the reserved range */
    uint64_t arena_size; /* arena k = [base + k*arena_size, base + (k+1)*arena_size) */
};

struct foundry_image_log_entry {
    uint64_t address;
    uint64_t size; /* as asked for; 0 for a free */
    uint32_t device;
    uint16_t thread;
    uint16_t freed; /* 1 = free */
    uint32_t where; /* string, for messages: the phase it fell in, or the phase or graph before it */
    uint32_t pad;
};

struct foundry_image_allocation {
    uint64_t address;
    uint64_t size;
    uint32_t device;
    uint32_t arena;
    uint32_t restored; /* 0: the program must have made it itself, same base and size; 1: lies in MAPPINGS */
    /* Several threads allocated up to there: so many entries of the device's log must have come as they were captured
     * for this to be the same allocation. 0: its place and size say so. */
    uint32_t log_entries;
};

struct foundry_image_mapping {
    uint64_t address; /* 2 MiB aligned, no overlap, ascending */
    uint64_t size;
    uint32_t device;
    uint32_t contents;        /* blob index or FOUNDRY_NONE: then zeros */
    uint64_t contents_offset; /* where in the mapping the contents go */
};

struct foundry_image_blob {
    uint64_t offset; /* from the start of BLOB_BYTES */
    uint64_t length;
    uint32_t crc32c; /* of the blob's bytes */
    uint32_t pad;
};

struct foundry_image_kernel_image {
    uint8_t key[32];   /* as the program's own load would be keyed (hook/image_key.h) */
    uint32_t blob;     /* the bytes to load: an unpacked cubin where there is one */
    uint32_t api;      /* FOUNDRY_API_* */
    uint32_t instance; /* the n-th load of this key in the captured program, from 0 */
    uint32_t device;   /* modules: which device's context */
    uint32_t first_option, option_count;
    /* FOUNDRY_NONE, or this one holds only the kernels that graphs use, and this is the entry of the same load with all
     * of them. Such an entry is for graphs alone: the program never has its handle. */
    uint32_t whole;
    uint32_t provenance; /* string, for messages */
};

struct foundry_image_option {
    uint32_t option;
    uint32_t pad;
    uint64_t value;
};

struct foundry_image_kernel {
    uint32_t image;
    uint32_t name; /* string */
    uint32_t first_parameter, parameter_count;
    uint32_t first_attribute, attribute_count;
    uint32_t parameter_bytes; /* end of the last parameter */
    uint32_t device;
};

struct foundry_image_parameter {
    uint32_t offset, size;
};

struct foundry_image_attribute {
    uint32_t id; /* CUfunction_attribute */
    int32_t value;
};

struct foundry_image_group {
    uint32_t first_node, node_count;
    uint32_t first_edge, edge_count; /* edges sorted by edge data, then from, then to; or by to, those
                                        to one node in the order of its dependencies */
};

struct foundry_image_node {
    uint32_t type;   /* CUgraphNodeType */
    uint32_t kernel; /* KERNEL nodes */
    uint32_t first_attribute, attribute_count;
    uint32_t child_group; /* GRAPH nodes */
    uint32_t pad;
};

struct foundry_image_edge {
    uint32_t from, to; /* node index within the group */
    uint8_t data[8];   /* CUgraphEdgeData */
};

struct foundry_image_node_attribute {
    uint32_t id; /* CUlaunchAttributeID */
    uint32_t pad;
    uint8_t value[64];
};

struct foundry_image_graph {
    uint32_t group;
    uint32_t set, key, metadata; /* strings */
    uint64_t first_record;       /* one record a node, in node order */
    uint64_t instantiate_flags;
    uint32_t device;
    uint32_t context; /* FOUNDRY_NONE = primary, else ordinal of the created context */
    uint32_t first_reference, reference_count;
    uint32_t restorable;
    uint32_t reason;    /* string: why not */
    uint32_t first_use; /* rank by first launch up to the last commit, FOUNDRY_NONE = none */
    uint32_t moves;     /* 1: proven to need nothing but MOVES to compute the same where the range lies elsewhere */
};

struct foundry_image_record { /* 64 bytes */
    union {
        struct {
            uint32_t grid[3], block[3];
            uint32_t shared_bytes;
            uint32_t parameter_size;
            uint64_t parameter_offset; /* in PARAMETER_BYTES */
        } kernel;
        struct {
            uint64_t destination, pitch, width, height;
            uint32_t value, element_size;
        } memset;
        struct {
            uint32_t copy; /* index in COPIES */
        } memcpy;
        struct {
            uint32_t event; /* index in EVENTS */
        } event;
        struct {
            uint64_t first_record;
        } child;
        uint8_t bytes[64];
    };
};

/* An address in the range of a device. Ascending by section and offset, without overlap. */
struct foundry_image_move {
    uint64_t offset;  /* of its 8 bytes in the section, at any alignment; STRINGS: of its first decimal digit */
    uint32_t section; /* STRINGS, RECORDS (a memset's destination), PARAMETER_BYTES or COPIES */
    uint32_t device;  /* ordinal */
};

#endif
