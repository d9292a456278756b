#include "json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEEPEST 32

struct reader {
    const char *at, *end;
    int depth;
};

static struct json *read_value(struct reader *reader);

static void skip_blanks(struct reader *reader) {
    while (reader->at < reader->end && strchr(" \t\r\n", *reader->at) && *reader->at) reader->at++;
}

static bool take(struct reader *reader, char wanted) {
    skip_blanks(reader);
    if (reader->at == reader->end || *reader->at != wanted) return false;
    reader->at++;
    return true;
}

static void add_character(struct text *text, unsigned code) {
    char bytes[4];
    size_t length = 0;
    if (code < 0x80) {
        bytes[length++] = (char)code;
    } else if (code < 0x800) {
        bytes[length++] = (char)(0xC0 | code >> 6);
    } else if (code < 0x10000) {
        bytes[length++] = (char)(0xE0 | code >> 12);
        bytes[length++] = (char)(0x80 | (code >> 6 & 0x3F));
    } else {
        bytes[length++] = (char)(0xF0 | code >> 18);
        bytes[length++] = (char)(0x80 | (code >> 12 & 0x3F));
        bytes[length++] = (char)(0x80 | (code >> 6 & 0x3F));
    }
    if (code >= 0x80) bytes[length++] = (char)(0x80 | (code & 0x3F));
    text_add(text, bytes, length);
}

static bool read_unit(struct reader *reader, unsigned *unit) {
    *unit = 0;
    if (reader->end - reader->at < 4) return false;
    for (int i = 0; i < 4; i++) {
        const char *digits = "0123456789abcdefABCDEF", *digit = strchr(digits, reader->at[i]);
        if (!digit || !*digit) return false;
        const unsigned value = (unsigned)(digit - digits);
        *unit = *unit * 16 + (value < 16 ? value : value - 6);
    }
    reader->at += 4;
    return true;
}

static bool read_escape(struct reader *reader, struct text *text) {
    if (reader->at == reader->end) return false;
    const char name = *reader->at++;
    const char *names = "\"\\/bfnrt", *meant = "\"\\/\b\f\n\r\t", *found = strchr(names, name);
    if (name && found) return text_add(text, meant + (found - names), 1), true;
    unsigned code, low;
    if (name != 'u' || !read_unit(reader, &code)) return false;
    if (code >= 0xD800 && code < 0xDC00) {
        if (reader->end - reader->at < 2 || memcmp(reader->at, "\\u", 2)) return false;
        reader->at += 2;
        if (!read_unit(reader, &low) || low < 0xDC00 || low > 0xDFFF) return false;
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    } else if (code >= 0xDC00 && code < 0xE000) {
        return false;
    }
    return add_character(text, code), true;
}

static bool read_string(struct reader *reader, char **string, size_t *length) {
    struct text text = {0};
    if (!take(reader, '"')) return false;
    text_add(&text, "", 0);
    while (reader->at < reader->end && *reader->at != '"') {
        const char byte = *reader->at++;
        if ((unsigned char)byte < 0x20 || (byte == '\\' && !read_escape(reader, &text))) break;
        if (byte != '\\') text_add(&text, &byte, 1);
    }
    if (!take(reader, '"')) return text_drop(&text), false;
    *string = text.bytes;
    *length = text.length;
    return true;
}

static bool read_members(struct reader *reader, struct json *value, char close) {
    struct json **last = &value->first;
    if (++reader->depth > DEEPEST) return false;
    if (!take(reader, close)) {
        do {
            char *key = NULL;
            size_t length;
            if (close == '}' && (!read_string(reader, &key, &length) || !take(reader, ':'))) return free(key), false;
            struct json *member = read_value(reader);
            if (!member) return free(key), false;
            member->key = key;
            *last = member;
            last = &member->next;
        } while (take(reader, ','));
        if (!take(reader, close)) return false;
    }
    reader->depth--;
    return true;
}

static bool read_number(struct reader *reader, struct json *value) {
    char digits[64];
    size_t length = 0;
    while (reader->at < reader->end && length < sizeof digits - 1 && *reader->at &&
           strchr("+-.0123456789eE", *reader->at))
        digits[length++] = *reader->at++;
    digits[length] = '\0';
    char *end;
    value->number = strtod(digits, &end);
    return length && *digits != '+' && *digits != '.' && !*end && isfinite(value->number);
}

static bool read_word(struct reader *reader, struct json *value) {
    static const struct {
        const char *word;
        enum json_kind kind;
    } words[] = {{"null", JSON_NULL}, {"false", JSON_FALSE}, {"true", JSON_TRUE}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const size_t length = strlen(words[i].word);
        if ((size_t)(reader->end - reader->at) < length || memcmp(reader->at, words[i].word, length)) continue;
        reader->at += length;
        value->kind = words[i].kind;
        return true;
    }
    value->kind = JSON_NUMBER;
    return read_number(reader, value);
}

static struct json *read_value(struct reader *reader) {
    struct json *value = take_memory(1, sizeof *value);
    bool well;
    skip_blanks(reader);
    const char first = reader->at < reader->end ? *reader->at : '\0';
    if (first == '{' || first == '[') {
        reader->at++;
        value->kind = first == '{' ? JSON_OBJECT : JSON_ARRAY;
        well = read_members(reader, value, first == '{' ? '}' : ']');
    } else if (first == '"') {
        value->kind = JSON_STRING;
        well = read_string(reader, &value->string, &value->length);
    } else {
        well = read_word(reader, value);
    }
    if (well) return value;
    json_drop(value);
    return NULL;
}

struct json *json_parse(const char *bytes, size_t length) {
    struct reader reader = {bytes, bytes + length, 0};
    struct json *value = read_value(&reader);
    skip_blanks(&reader);
    if (!value || reader.at == reader.end) return value;
    json_drop(value);
    return NULL;
}

void json_drop(struct json *value) {
    while (value) {
        struct json *next = value->next;
        json_drop(value->first);
        free(value->key);
        free(value->string);
        free(value);
        value = next;
    }
}

const struct json *json_member(const struct json *object, const char *key) {
    if (!object || object->kind != JSON_OBJECT) return NULL;
    for (const struct json *member = object->first; member; member = member->next)
        if (!strcmp(member->key, key)) return member;
    return NULL;
}

bool json_whole(const struct json *value, double lowest, double highest, double *number) {
    if (!value || value->kind != JSON_NUMBER || value->number < lowest || value->number > highest ||
        value->number != floor(value->number))
        return false;
    *number = value->number;
    return true;
}

/* The length of the well-formed character at the start, or 0. */
static size_t character_length(const unsigned char *bytes, size_t length) {
    const unsigned char first = *bytes;
    const size_t wanted = first < 0x80   ? 1
                          : first < 0xC2 ? 0
                          : first < 0xE0 ? 2
                          : first < 0xF0 ? 3
                          : first < 0xF5 ? 4
                                         : 0;
    if (!wanted || wanted > length) return 0;
    for (size_t i = 1; i < wanted; i++)
        if (bytes[i] >> 6 != 2) return 0;
    if ((first == 0xE0 && bytes[1] < 0xA0) || (first == 0xED && bytes[1] > 0x9F) ||
        (first == 0xF0 && bytes[1] < 0x90) || (first == 0xF4 && bytes[1] > 0x8F))
        return 0;
    return wanted;
}

void json_write_string(struct text *text, const char *bytes, size_t length) {
    text_add(text, "\"", 1);
    while (length) {
        const unsigned char byte = (unsigned char)*bytes;
        size_t taken = character_length((const unsigned char *)bytes, length);
        if (!taken) {
            text_add(text, "\xEF\xBF\xBD", 3);
            taken = 1;
        } else if (byte < 0x20 || byte == 0x7F) {
            text_format(text, "\\u%04x", byte);
        } else {
            if (byte == '"' || byte == '\\') text_add(text, "\\", 1);
            text_add(text, bytes, taken);
        }
        bytes += taken;
        length -= taken;
    }
    text_add(text, "\"", 1);
}
