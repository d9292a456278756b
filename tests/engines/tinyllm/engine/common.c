#include "common.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void complain(const char *format, va_list arguments) {
    fputs("tinyllm: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
}

void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    complain(format, arguments);
    va_end(arguments);
    exit(EXIT_FAILURE);
}

void refuse(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    complain(format, arguments);
    va_end(arguments);
    exit(EXIT_USAGE);
}

void *take_memory(size_t count, size_t size) {
    void *memory = calloc(count ? count : 1, size ? size : 1);
    if (!memory) fail("no memory for %zu elements of %zu bytes", count, size);
    return memory;
}

char *copy_text(const char *bytes, size_t length) {
    char *copy = take_memory(length + 1, 1);
    if (length) memcpy(copy, bytes, length);
    return copy;
}

double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void reserve(struct text *text, size_t more) {
    if (text->capacity > text->length && text->capacity - text->length > more) return;
    text->capacity = 2 * (text->length + more + 1);
    text->bytes = realloc(text->bytes, text->capacity);
    if (!text->bytes) fail("no memory for %zu bytes of text", text->capacity);
}

void text_add(struct text *text, const void *bytes, size_t length) {
    reserve(text, length);
    if (length) memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    text->bytes[text->length] = '\0';
}

void text_format(struct text *text, const char *format, ...) {
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    const int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    reserve(text, (size_t)length);
    vsnprintf(text->bytes + text->length, (size_t)length + 1, format, again);
    va_end(again);
    text->length += (size_t)length;
}

void text_drop(struct text *text) {
    free(text->bytes);
    *text = (struct text){0};
}
