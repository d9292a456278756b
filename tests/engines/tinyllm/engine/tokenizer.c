#include "tokenizer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES 256
#define MOST_MERGES 100000
#define LONGEST_LINE 1024 /* bytes, with its end and a NUL */

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
    char left[LONGEST_LINE], right[LONGEST_LINE], more;
    struct text bytes[2] = {{0}, {0}};
    const int rank = tokenizer->merge_count;
    if (rank == MOST_MERGES) fail("`%s` has more than %d merges", path, MOST_MERGES);
    if (sscanf(line, "%1023s %1023s %c", left, right, &more) != 2 || !read_word(left, meanings, &bytes[0]) ||
        !read_word(right, meanings, &bytes[1]))
        fail("`%s`: merge %d is not two tokens", path, rank + 1);
    struct merge merge = {find_token(tokenizer, &bytes[0]), find_token(tokenizer, &bytes[1]), rank};
    if (merge.left < 0 || merge.right < 0) fail("`%s`: merge %d joins tokens that come later", path, rank + 1);
    tokenizer->merges[tokenizer->merge_count++] = merge;
    text_add(&bytes[0], bytes[1].bytes, bytes[1].length);
    if (bytes[0].length > tokenizer->longest) tokenizer->longest = bytes[0].length;
    tokenizer->bytes[tokenizer->count++] = bytes[0];
    text_drop(&bytes[1]);
}

static bool read_line(FILE *file, char *line, const char *path) {
    int length = 0, byte;
    while ((byte = getc(file)) != EOF && byte != '\n') {
        if (!byte) fail("`%s`: a line holds a NUL", path);
        if (length == LONGEST_LINE - 2) fail("`%s`: a line is longer than %d bytes", path, LONGEST_LINE - 2);
        line[length++] = (char)byte;
    }
    if (ferror(file)) fail("`%s` cannot be read: %s", path, strerror(errno));
    line[length] = '\0';
    return length || byte != EOF;
}

struct tokenizer tokenizer_open(const char *path) {
    struct tokenizer tokenizer = {.longest = 1};
    int meanings[2 * BYTES];
    char line[LONGEST_LINE];
    FILE *file = fopen(path, "r");
    if (!file) fail("`%s` cannot be read: %s", path, strerror(errno));
    fill_meanings(meanings);
    tokenizer.merges = take_memory(MOST_MERGES, sizeof *tokenizer.merges);
    tokenizer.bytes = take_memory(BYTES + MOST_MERGES + 1, sizeof *tokenizer.bytes);
    for (int byte = 0; byte < BYTES; byte++) {
        const char value = (char)byte;
        text_add(&tokenizer.bytes[tokenizer.count++], &value, 1);
    }
    while (read_line(file, line, path))
        if (strncmp(line, "#version", 8) && strspn(line, " \r") != strlen(line))
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

static const struct merge *find_merge(const struct tokenizer *tokenizer, int left, int right) {
    const struct merge pair = {left, right, 0};
    return bsearch(&pair, tokenizer->merges, (size_t)tokenizer->merge_count, sizeof pair, compare_merges);
}

/* Joins all pairs of the lowest rank until no pair can be joined. What a pair becomes only joins at higher ranks. */
static int join(const struct tokenizer *tokenizer, int *tokens, int count) {
    for (;;) {
        const struct merge *best = NULL;
        for (int i = 0; i + 1 < count; i++) {
            const struct merge *found = find_merge(tokenizer, tokens[i], tokens[i + 1]);
            if (found && (!best || found->rank < best->rank)) best = found;
        }
        if (!best) return count;
        int kept = 0;
        for (int i = 0; i < count; i++) {
            const bool joined = i + 1 < count && tokens[i] == best->left && tokens[i + 1] == best->right;
            tokens[kept++] = joined ? BYTES + best->rank : tokens[i];
            i += joined;
        }
        count = kept;
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
