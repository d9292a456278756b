#include "http.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "json.h"

/* The value of the header of that name, or NULL. `head` ends with an empty line and a NUL. */
static const char *header(const char *head, const char *name) {
    const size_t length = strlen(name);
    for (const char *line = strstr(head, "\r\n"); line; line = strstr(line, "\r\n")) {
        line += 2;
        if (!strncasecmp(line, name, length) && line[length] == ':')
            return line + length + 1 + strspn(line + length + 1, " \t");
    }
    return NULL;
}

static int read_head(const char *head, struct http_request *request) {
    char version[16];
    if (sscanf(head, "%7[A-Z] %255[^ \r\n] %15[^ \r\n]", request->method, request->path, version) != 3) return 400;
    if (strncmp(version, "HTTP/1.", 7)) return 505;
    request->path[strcspn(request->path, "?")] = '\0';
    if (header(head, "Transfer-Encoding")) return 411;
    const char *length = header(head, "Content-Length");
    if (!length) return 200;
    const size_t digits = strspn(length, "0123456789");
    if (!digits || length[digits] != '\r') return 400;
    if (digits > 9) return 413;
    request->body_length = (size_t)strtoul(length, NULL, 10);
    return request->body_length > LONGEST_BODY ? 413 : 200;
}

int http_read(const struct text *bytes, struct http_request *request) {
    *request = (struct http_request){0};
    const char *end = bytes->length ? memmem(bytes->bytes, bytes->length, "\r\n\r\n", 4) : NULL;
    if (!end) return bytes->length > LONGEST_HEAD ? 431 : 0;
    const size_t head_length = (size_t)(end - bytes->bytes) + 4;
    if (head_length > LONGEST_HEAD) return 431;
    char *head = copy_text(bytes->bytes, head_length);
    const int status = strlen(head) == head_length ? read_head(head, request) : 400;
    free(head);
    if (status != 200) return status;
    request->body = bytes->bytes + head_length;
    return bytes->length - head_length < request->body_length ? 0 : 200;
}

static const char *reason(int status) {
    static const struct {
        int status;
        const char *reason;
    } reasons[] = {{200, "OK"},
                   {400, "Bad Request"},
                   {404, "Not Found"},
                   {405, "Method Not Allowed"},
                   {411, "Length Required"},
                   {413, "Content Too Large"},
                   {431, "Request Header Fields Too Large"},
                   {505, "HTTP Version Not Supported"}};
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (reasons[i].status == status) return reasons[i].reason;
    return "Error";
}

void http_answer(struct text *out, int status, const char *kind, const char *body, size_t length) {
    text_format(out, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n", status,
                reason(status), kind, length);
    text_add(out, body, length);
}

void http_refuse(struct text *out, int status, const char *message) {
    struct text body = {0};
    text_format(&body, "{\"error\": ");
    json_write_string(&body, message, strlen(message));
    text_format(&body, "}");
    http_answer(out, status, "application/json", body.bytes, body.length);
    text_drop(&body);
}
