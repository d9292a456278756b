/* Tensors: views with a shape on storage that counts its references. Storage lies with a device or is borrowed, such as
 * from a mapped file; the last view that goes away gives it back. Not for several threads at once.
 */
#ifndef TINYLLM_TENSOR_H
#define TINYLLM_TENSOR_H

#include "common.h"

#define LARGEST_RANK 4

enum element { ELEMENT_FLOAT, ELEMENT_INT8, ELEMENT_INT32 };

struct storage {
    int references;
    size_t bytes;
    void *host;       /* where the CPU may read and write it, else NULL */
    uint64_t address; /* on a device, else 0 */
    void (*give_back)(struct storage *storage);
    void *owner; /* of give_back */
};

/* Rows are packed: only the first dimension of a view may be shorter than its storage. */
struct tensor {
    struct storage *storage; /* NULL = no tensor */
    enum element element;
    int rank;
    long shape[LARGEST_RANK];
    size_t offset; /* in bytes */
};

size_t element_size(enum element element);
long tensor_count(const struct tensor *tensor);
size_t tensor_bytes(const struct tensor *tensor);

/* A tensor over the whole of new storage, whose only reference it takes over. */
struct tensor tensor_over(struct storage *storage, enum element element, int rank, const long *shape);
/* Views share storage and hold a reference each. Out of range or of another size: a fault of the program, it ends. */
struct tensor tensor_rows(const struct tensor *tensor, long first, long count);
struct tensor tensor_reshape(const struct tensor *tensor, int rank, const long *shape);
struct tensor tensor_share(const struct tensor *tensor);
/* Gives a view back and makes it no tensor. */
void tensor_drop(struct tensor *tensor);

/* NULL where the CPU cannot reach it. */
void *tensor_host(const struct tensor *tensor);
uint64_t tensor_address(const struct tensor *tensor);

#endif
