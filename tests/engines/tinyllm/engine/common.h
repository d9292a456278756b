/* What every part uses: ending with a message, memory that is never NULL, text that grows. */
#ifndef TINYLLM_COMMON_H
#define TINYLLM_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXIT_USAGE 2

/* Print `tinyllm: ...` on stderr and end, with 1 or with EXIT_USAGE. */
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Zeroed; ends the program where there is none. Released by free(). */
void *take_memory(size_t count, size_t size);
char *copy_text(const char *bytes, size_t length);
double seconds_now(void);

/* `bytes` ends with a NUL that `length` does not count, once anything was added. */
struct text {
    char *bytes;
    size_t length, capacity;
};

void text_add(struct text *text, const void *bytes, size_t length);
void text_format(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_drop(struct text *text);

#endif
