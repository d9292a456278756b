#include "tensor.h"

#include <stdlib.h>
#include <string.h>

size_t element_size(enum element element) {
    return element == ELEMENT_INT8 ? 1 : 4;
}

long tensor_count(const struct tensor *tensor) {
    long count = 1;
    for (int i = 0; i < tensor->rank; i++) count *= tensor->shape[i];
    return count;
}

size_t tensor_bytes(const struct tensor *tensor) {
    return (size_t)tensor_count(tensor) * element_size(tensor->element);
}

static void set_shape(struct tensor *tensor, int rank, const long *shape) {
    if (rank < 1 || rank > LARGEST_RANK) fail("a tensor has 1 to %d dimensions, not %d", LARGEST_RANK, rank);
    tensor->rank = rank;
    memset(tensor->shape, 0, sizeof tensor->shape);
    memcpy(tensor->shape, shape, (size_t)rank * sizeof *shape);
}

struct tensor tensor_over(struct storage *storage, enum element element, int rank, const long *shape) {
    struct tensor tensor = {.storage = storage, .element = element};
    set_shape(&tensor, rank, shape);
    if (tensor_bytes(&tensor) > storage->bytes) fail("a tensor is larger than its storage");
    return tensor;
}

struct tensor tensor_share(const struct tensor *tensor) {
    tensor->storage->references++;
    return *tensor;
}

struct tensor tensor_rows(const struct tensor *tensor, long first, long count) {
    if (first < 0 || count < 0 || first > tensor->shape[0] - count)
        fail("rows %ld to %ld are not in a tensor of %ld", first, first + count, tensor->shape[0]);
    struct tensor view = tensor_share(tensor);
    view.shape[0] = 1;
    view.offset += (size_t)first * tensor_bytes(&view);
    view.shape[0] = count;
    return view;
}

struct tensor tensor_reshape(const struct tensor *tensor, int rank, const long *shape) {
    struct tensor view = tensor_share(tensor);
    set_shape(&view, rank, shape);
    if (tensor_count(&view) != tensor_count(tensor)) fail("another shape must have as many elements");
    return view;
}

void tensor_drop(struct tensor *tensor) {
    struct storage *storage = tensor->storage;
    *tensor = (struct tensor){0};
    if (!storage || --storage->references) return;
    if (storage->give_back) storage->give_back(storage);
    free(storage);
}

void *tensor_host(const struct tensor *tensor) {
    return tensor->storage->host ? (char *)tensor->storage->host + tensor->offset : NULL;
}

uint64_t tensor_address(const struct tensor *tensor) {
    return tensor->storage->address + tensor->offset;
}
