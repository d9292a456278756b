#include "safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define LONGEST_HEADER (16u << 20)

static void unmap(struct storage *storage) {
    munmap(storage->host, storage->bytes);
}

static struct storage *map_file(const char *path) {
    struct stat status;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &status)) fail("`%s` cannot be read: %s", path, strerror(errno));
    if (!S_ISREG(status.st_mode) || status.st_size < 8) fail("`%s` is not a safetensors file", path);
    struct storage *storage = take_memory(1, sizeof *storage);
    storage->references = 1;
    storage->bytes = (size_t)status.st_size;
    storage->host = mmap(NULL, storage->bytes, PROT_READ, MAP_PRIVATE, file, 0);
    storage->give_back = unmap;
    if (storage->host == MAP_FAILED) fail("`%s` cannot be mapped: %s", path, strerror(errno));
    close(file);
    return storage;
}

struct safetensors safetensors_open(const char *path) {
    struct safetensors file = {.path = copy_text(path, strlen(path)), .mapping = map_file(path)};
    const unsigned char *bytes = file.mapping->host;
    uint64_t length = 0;
    for (int i = 7; i >= 0; i--) length = length << 8 | bytes[i];
    if (length > LONGEST_HEADER || length > file.mapping->bytes - 8) fail("`%s`: the header is too long", path);
    file.data = 8 + (size_t)length;
    file.header = json_parse((const char *)bytes + 8, (size_t)length);
    if (!file.header || file.header->kind != JSON_OBJECT) fail("`%s`: the header is not a JSON object", path);
    return file;
}

void safetensors_close(struct safetensors *file) {
    struct tensor mapping = {.storage = file->mapping};
    tensor_drop(&mapping);
    json_drop(file->header);
    free(file->path);
    *file = (struct safetensors){0};
}

static const char *element_name(enum element element) {
    return element == ELEMENT_FLOAT ? "F32" : element == ELEMENT_INT8 ? "I8" : "I32";
}

static bool same_shape(const struct json *shape, int rank, const long *wanted) {
    const struct json *at = shape && shape->kind == JSON_ARRAY ? shape->first : NULL;
    double length;
    for (int i = 0; i < rank; i++, at = at->next)
        if (!at || !json_whole(at, 0, 1e15, &length) || (long)length != wanted[i]) return false;
    return !at;
}

struct tensor safetensors_take(const struct safetensors *file, const char *name, enum element element, int rank,
                               const long *shape) {
    const struct json *entry = json_member(file->header, name), *kind = json_member(entry, "dtype");
    if (!entry) fail("`%s` has no tensor `%s`", file->path, name);
    if (!kind || kind->kind != JSON_STRING || strcmp(kind->string, element_name(element)))
        fail("`%s`: `%s` is not of type %s", file->path, name, element_name(element));
    if (!same_shape(json_member(entry, "shape"), rank, shape)) fail("`%s`: `%s` has another shape", file->path, name);
    const struct json *offsets = json_member(entry, "data_offsets");
    const struct json *start = offsets && offsets->kind == JSON_ARRAY ? offsets->first : NULL;
    const double room = (double)(file->mapping->bytes - file->data);
    double begin, end;
    if (!start || !json_whole(start, 0, room, &begin) || !json_whole(start->next, begin, room, &end))
        fail("`%s`: `%s` does not lie in the file", file->path, name);
    file->mapping->references++;
    struct tensor tensor = tensor_over(file->mapping, element, rank, shape);
    tensor.offset = file->data + (size_t)begin;
    if (tensor_bytes(&tensor) != (size_t)(end - begin) || tensor.offset % element_size(element))
        fail("`%s`: `%s` has another size or is not aligned", file->path, name);
    return tensor;
}

static double number(const struct safetensors *file, const char *name, double lowest, double highest, bool whole) {
    const struct json *value = json_member(json_member(file->header, "__metadata__"), name);
    if (!value || value->kind != JSON_STRING) fail("`%s`: the metadata does not say `%s`", file->path, name);
    char *end;
    const double found = strtod(value->string, &end);
    if (!*value->string || *end || !(found >= lowest && found <= highest) || (whole && found != floor(found)))
        fail("`%s`: `%s` is `%s`, not a %snumber from %g to %g", file->path, name, value->string, whole ? "whole " : "",
             lowest, highest);
    return found;
}

double safetensors_number(const struct safetensors *file, const char *name, double lowest, double highest) {
    return number(file, name, lowest, highest, false);
}

int safetensors_whole(const struct safetensors *file, const char *name, int lowest, int highest) {
    return (int)number(file, name, lowest, highest, true);
}
