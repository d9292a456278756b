/* Byte-level byte pair encoding. Token b < 256 is the byte b, token 256 + i the i-th merge; the last one ends a text.
 */
#ifndef TINYLLM_TOKENIZER_H
#define TINYLLM_TOKENIZER_H

#include "common.h"

struct merge {
    int left, right, rank;
};

struct tokenizer {
    int count; /* of tokens, with the end */
    int end;
    struct merge *merges; /* sorted by pair */
    int merge_count;
    struct text *bytes; /* of each token; none for the end */
    size_t longest;     /* bytes of a token */
};

/* Reads a merges file as GPT-2 has it: two tokens a line, bytes written as printable characters. */
struct tokenizer tokenizer_open(const char *path);
void tokenizer_close(struct tokenizer *tokenizer);
/* Writes at most `length` tokens and returns their number. */
int tokenizer_encode(const struct tokenizer *tokenizer, const char *bytes, size_t length, int *tokens);
void tokenizer_decode(const struct tokenizer *tokenizer, const int *tokens, int count, struct text *text);

#endif
