/* JSON: documents of bounded depth read into a tree, and strings written. */
#ifndef TINYLLM_JSON_H
#define TINYLLM_JSON_H

#include "common.h"

enum json_kind { JSON_NULL, JSON_FALSE, JSON_TRUE, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json {
    enum json_kind kind;
    char *key;    /* of a member of an object, else NULL */
    char *string; /* of a string; it may hold NULs, so it has a length */
    size_t length;
    double number;
    struct json *first, *next; /* first member or element; the one after this */
};

/* NULL if the bytes are not one JSON document. */
struct json *json_parse(const char *bytes, size_t length);
void json_drop(struct json *value);
/* The member of that name, or NULL; NULL, too, if `object` is none. */
const struct json *json_member(const struct json *object, const char *key);
/* Whether the value is a whole number from `lowest` to `highest`, which goes to `number`. */
bool json_whole(const struct json *value, double lowest, double highest, double *number);
/* Adds a string with its quotes; bytes that are not UTF-8 become U+FFFD. */
void json_write_string(struct text *text, const char *bytes, size_t length);

#endif
