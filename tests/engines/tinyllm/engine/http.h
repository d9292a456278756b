/* HTTP/1.1 as far as the server needs it: one request a connection, read and answered in bytes. */
#ifndef TINYLLM_HTTP_H
#define TINYLLM_HTTP_H

#include "common.h"

#define LONGEST_HEAD 16384
#define LONGEST_BODY (1u << 20)

struct http_request {
    char method[8];
    char path[256]; /* without what follows a ? */
    const char *body;
    size_t body_length;
};

/* 0: more bytes are needed; 200: the request is whole; else the status of an answer that says what is wrong. */
int http_read(const struct text *bytes, struct http_request *request);
void http_answer(struct text *out, int status, const char *kind, const char *body, size_t length);
/* {"error": message} */
void http_refuse(struct text *out, int status, const char *message);

#endif
