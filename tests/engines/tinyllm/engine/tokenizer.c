#include "tokenizer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES 256
#define MOST_MERGES 100000

/* Which byte a character of the merges file stands for: printable ones for themselves, the others from 256 on. */
static void fill_meanings(int *meanings) {
    int next = BYTES;
    memset(meanings, -1, 2 * BYTES * sizeof *meanings);
    for (int byte = 0; byte < BYTES; byte++) {
        const bool plain = (byte >= 33 && byte <= 126) || (byte >= 161 && byte != 173);
        meanings[plain ? byte : next++] = byte;
    }
}

/* The bytes of a word of the merges file. */
static bool read_word(const char *word, const int *meanings, struct text *bytes) {
    text_add(bytes, "", 0);
    for (const unsigned char *at = (const unsigned char *)word; *at;) {
        unsigned code = *at++;
        if (code >= 0xC0 && code < 0xE0 && *at >> 6 == 2)
            code = (code & 0x1F) << 6 | (*at++ & 0x3F);
        else if (code >= 0x80)
            return false;
        if (code >= 2 * BYTES || meanings[code] < 0) return false;
        const char byte = (char)meanings[code];
        text_add(bytes, &byte, 1);
    }
    return bytes->length > 0;
}

static int find_token(const struct tokenizer *tokenizer, const struct text *bytes) {
    for (int token = 0; token < tokenizer->count; token++)
        if (tokenizer->bytes[token].length == bytes->length &&
            !memcmp(tokenizer->bytes[token].bytes, bytes->bytes, bytes->length))
            return token;
    return -1;
}

static int compare_merges(const void *one, const void *two) {
    const struct merge *a = one, *b = two;
    if (a->left != b->left) return a->left < b->left ? -1 : 1;
    return a->right < b->right ? -1 : a->right > b->right;
}

static void add_merge(struct tokenizer *tokenizer, const char *line, const int *meanings, const char *path) {
    char left[256], right[256], more;
    struct text bytes[2] = {{0}, {0}};
    const int rank = tokenizer->merge_count;
    if (rank == MOST_MERGES) fail("`%s` has more than %d merges", path, MOST_MERGES);
    if (sscanf(line, "%255s %255s %c", left, right, &more) != 2 || !read_word(left, meanings, &bytes[0]) ||
        !read_word(right, meanings, &bytes[1]))
        fail("`%s`: merge %d is not two tokens", path, rank + 1);
    struct merge merge = {find_token(tokenizer, &bytes[0]), find_token(tokenizer, &bytes[1]), rank};
    if (merge.left < 0 || merge.right < 0) fail("`%s`: merge %d joins tokens that come later", path, rank + 1);
    tokenizer->merges[tokenizer->merge_count++] = merge;
    text_add(&bytes[0], bytes[1].bytes, bytes[1].length);
    tokenizer->bytes[tokenizer->count++] = bytes[0];
    text_drop(&bytes[1]);
}

struct tokenizer tokenizer_open(const char *path) {
    struct tokenizer tokenizer = {0};
    int meanings[2 * BYTES];
    char line[1024];
    FILE *file = fopen(path, "r");
    if (!file) fail("`%s` cannot be read: %s", path, strerror(errno));
    fill_meanings(meanings);
    tokenizer.merges = take_memory(MOST_MERGES, sizeof *tokenizer.merges);
    tokenizer.bytes = take_memory(BYTES + MOST_MERGES + 1, sizeof *tokenizer.bytes);
    for (int byte = 0; byte < BYTES; byte++) {
        const char value = (char)byte;
        text_add(&tokenizer.bytes[tokenizer.count++], &value, 1);
    }
    while (fgets(line, sizeof line, file))
        if (strncmp(line, "#version", 8) && strspn(line, " \r\n") != strlen(line))
            add_merge(&tokenizer, line, meanings, path);
    fclose(file);
    qsort(tokenizer.merges, (size_t)tokenizer.merge_count, sizeof *tokenizer.merges, compare_merges);
    tokenizer.end = tokenizer.count++;
    return tokenizer;
}

void tokenizer_close(struct tokenizer *tokenizer) {
    for (int token = 0; token < tokenizer->count; token++) text_drop(&tokenizer->bytes[token]);
    free(tokenizer->bytes);
    free(tokenizer->merges);
    *tokenizer = (struct tokenizer){0};
}

/* Joins the pair of the lowest rank until no pair can be joined. */
static int join(const struct tokenizer *tokenizer, int *tokens, int count) {
    for (;;) {
        const struct merge *best = NULL;
        int place = 0;
        for (int i = 0; i + 1 < count; i++) {
            const struct merge pair = {tokens[i], tokens[i + 1], 0};
            const struct merge *found =
                bsearch(&pair, tokenizer->merges, (size_t)tokenizer->merge_count, sizeof pair, compare_merges);
            if (found && (!best || found->rank < best->rank)) best = found, place = i;
        }
        if (!best) return count;
        tokens[place] = BYTES + best->rank;
        memmove(tokens + place + 1, tokens + place + 2, (size_t)(count - place - 2) * sizeof *tokens);
        count--;
    }
}

int tokenizer_encode(const struct tokenizer *tokenizer, const char *bytes, size_t length, int *tokens) {
    int count = 0;
    for (size_t start = 0, end; start < length; start = end) {
        /* A word takes the one blank before it along; merges do not cross words. */
        for (end = start + 1; end < length && bytes[end] != ' ' && bytes[end] != '\n'; end++) {
        }
        for (size_t i = start; i < end; i++) tokens[count + (int)(i - start)] = (unsigned char)bytes[i];
        count += join(tokenizer, tokens + count, (int)(end - start));
    }
    return count;
}

void tokenizer_decode(const struct tokenizer *tokenizer, const int *tokens, int count, struct text *text) {
    text_add(text, "", 0);
    for (int i = 0; i < count; i++)
        if (tokens[i] >= 0 && tokens[i] < tokenizer->end)
            text_add(text, tokenizer->bytes[tokens[i]].bytes, tokenizer->bytes[tokens[i]].length);
}
