/* A safetensors file, mapped into memory: tensors are views of the mapping, which lives as long as any of them. */
#ifndef TINYLLM_SAFETENSORS_H
#define TINYLLM_SAFETENSORS_H

#include "json.h"
#include "tensor.h"

struct safetensors {
    char *path;
    struct storage *mapping;
    struct json *header;
    size_t data; /* where the tensors' bytes begin */
};

/* Ends the program with the reason if the file cannot be read or is not well-formed. */
struct safetensors safetensors_open(const char *path);
void safetensors_close(struct safetensors *file);

/* The tensor of that name, which must have that element and shape. */
struct tensor safetensors_take(const struct safetensors *file, const char *name, enum element element, int rank,
                               const long *shape);
/* A number of the metadata, from `lowest` to `highest`. */
double safetensors_number(const struct safetensors *file, const char *name, double lowest, double highest);
int safetensors_whole(const struct safetensors *file, const char *name, int lowest, int highest);

#endif
