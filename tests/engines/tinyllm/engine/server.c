#include "server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hook.h"
#include "http.h"
#include "json.h"

#define MOST_CONNECTIONS 128
#define DEFAULT_TOKENS 16
#define LARGEST_SEED 9007199254740992.0 /* whole numbers up to here are exact in JSON */

struct connection {
    int socket;
    struct text in, out;
    size_t sent;
    struct request *request; /* that is being made */
};

struct server {
    struct scheduler *scheduler;
    const struct tokenizer *tokenizer;
    int listener;
    struct connection connections[MOST_CONNECTIONS];
    int count;
    long requests, refused;
};

static volatile sig_atomic_t stopping;

static void stop(int number) {
    (void)number;
    stopping = 1;
}

static int listen_on(int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    socklen_t length = sizeof address;
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (listener >= 0) setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 128) ||
        getsockname(listener, (struct sockaddr *)&address, &length))
        fail("cannot listen on 127.0.0.1 port %d: %s", port, strerror(errno));
    printf("listening on http://127.0.0.1:%d\n", ntohs(address.sin_port));
    fflush(stdout);
    return listener;
}

/* NULL, or what is wrong with the body. The prompt belongs to `body`. */
static const char *read_wanted(const struct json *body, int context, struct generation *wanted) {
    double number;
    const struct json *prompt = json_member(body, "prompt"), *tokens = json_member(body, "max_tokens");
    const struct json *seed = json_member(body, "seed"), *temperature = json_member(body, "temperature");
    const struct json *ignore = json_member(body, "ignore_end");
    if (!prompt || prompt->kind != JSON_STRING) return "send {\"prompt\": \"...\", \"max_tokens\": 16}";
    *wanted = (struct generation){.prompt = prompt->string, .length = prompt->length, .tokens = DEFAULT_TOKENS};
    if (tokens && !json_whole(tokens, 1, context, &number))
        return "max_tokens is not a whole number within the context";
    if (tokens) wanted->tokens = (int)number;
    if (seed && !json_whole(seed, 0, LARGEST_SEED, &number)) return "seed is not a whole number from 0 to 2^53";
    if (seed) wanted->seed = (uint64_t)number;
    if (temperature && (temperature->kind != JSON_NUMBER || temperature->number < 0 || temperature->number > 100))
        return "temperature is not a number from 0 to 100";
    if (temperature) wanted->temperature = temperature->number;
    if (ignore && ignore->kind != JSON_TRUE && ignore->kind != JSON_FALSE) return "ignore_end is not true or false";
    wanted->ignore_end = ignore && ignore->kind == JSON_TRUE;
    return NULL;
}

static void generate(struct server *server, struct connection *connection, const struct http_request *asked) {
    struct json *body = json_parse(asked->body, asked->body_length);
    struct generation wanted;
    const char *problem = read_wanted(body, server->scheduler->runner->model->configuration.context, &wanted);
    if (!problem) problem = generation_start(&wanted, server->tokenizer, server->scheduler, &connection->request);
    json_drop(body);
    if (!problem) return;
    server->refused++;
    http_refuse(&connection->out, 400, problem);
}

static void metrics(const struct server *server, struct text *out) {
    const struct scheduler *scheduler = server->scheduler;
    const foundry_keyed_counts counts = runner_counts(scheduler->runner);
    const struct {
        const char *name;
        uint64_t value;
    } all[] = {{"requests", (uint64_t)server->requests},
               {"requests_refused", (uint64_t)server->refused},
               {"tokens", (uint64_t)scheduler->tokens},
               {"passes", (uint64_t)scheduler->passes},
               {"drafts", (uint64_t)scheduler->drafts},
               {"drafts_kept", (uint64_t)scheduler->drafts_kept},
               {"passes_eager", counts.eager},
               {"graphs_captured", counts.captured},
               {"graphs_updated", counts.updated},
               {"graphs_replayed", counts.replayed},
               {"graphs_restored", counts.restored},
               {"graphs_dropped", counts.dropped},
               {"updates_refused", counts.refused},
               {"caches_emptied", counts.emptied},
               {"hook_stream_captures", hook_counter("stream_captures")}};
    struct text body = {0};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        text_format(&body, "# TYPE tinyllm_%s_total counter\ntinyllm_%s_total %llu\n", all[i].name, all[i].name,
                    (unsigned long long)all[i].value);
    text_format(&body, "# TYPE tinyllm_graphs_held gauge\ntinyllm_graphs_held %llu\n", (unsigned long long)counts.held);
    http_answer(out, 200, "text/plain; version=0.0.4", body.bytes, body.length);
    text_drop(&body);
}

static void handle(struct server *server, struct connection *connection, const struct http_request *asked) {
    static const char *const gets[] = {"/health", "/metrics"};
    const char *healthy = "{\"status\": \"ready\"}";
    const bool get = !strcmp(asked->method, "GET"), post = !strcmp(asked->method, "POST");
    server->requests++;
    if (!strcmp(asked->path, "/generate") && post) {
        generate(server, connection, asked);
    } else if (!strcmp(asked->path, gets[0]) && get) {
        http_answer(&connection->out, 200, "application/json", healthy, strlen(healthy));
    } else if (!strcmp(asked->path, gets[1]) && get) {
        metrics(server, &connection->out);
    } else {
        const bool known =
            !strcmp(asked->path, "/generate") || !strcmp(asked->path, gets[0]) || !strcmp(asked->path, gets[1]);
        server->refused++;
        http_refuse(&connection->out, known ? 405 : 404, "there is GET /health, GET /metrics and POST /generate");
    }
}

static void answer_tokens(struct server *server, struct connection *connection) {
    struct request *request = connection->request;
    const int *tokens = request->tokens + request->prompt_count, count = request->count - request->prompt_count;
    struct text body = {0}, made = {0};
    tokenizer_decode(server->tokenizer, tokens, count, &made);
    text_format(&body, "{\"tokens\": [");
    for (int i = 0; i < count; i++) text_format(&body, "%s%d", i ? ", " : "", tokens[i]);
    text_format(&body, "], \"text\": ");
    json_write_string(&body, made.bytes, made.length);
    text_format(&body, "}");
    http_answer(&connection->out, 200, "application/json", body.bytes, body.length);
    text_drop(&body);
    text_drop(&made);
    request_drop(request);
    connection->request = NULL;
}

/* False when the connection is over. */
static bool receive(struct server *server, struct connection *connection) {
    char bytes[65536];
    struct http_request asked;
    const ssize_t length = recv(connection->socket, bytes, sizeof bytes, 0);
    if (length < 0) return errno == EAGAIN || errno == EINTR;
    if (!length) return false;
    text_add(&connection->in, bytes, (size_t)length);
    const int status = http_read(&connection->in, &asked);
    if (status == 200) {
        handle(server, connection, &asked);
    } else if (status) {
        server->refused++;
        http_refuse(&connection->out, status, "the request cannot be read");
    }
    return true;
}

static bool send_some(struct connection *connection) {
    const ssize_t length = send(connection->socket, connection->out.bytes + connection->sent,
                                connection->out.length - connection->sent, MSG_NOSIGNAL);
    if (length < 0) return errno == EAGAIN || errno == EINTR;
    connection->sent += (size_t)length;
    if (connection->sent < connection->out.length) return true;
    shutdown(connection->socket, SHUT_WR);
    return false;
}

static void hang_up(struct server *server, int index) {
    struct connection *connection = &server->connections[index];
    close(connection->socket);
    text_drop(&connection->in);
    text_drop(&connection->out);
    server->connections[index] = server->connections[--server->count];
}

static void accept_one(struct server *server) {
    const int accepted = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (accepted >= 0) server->connections[server->count++] = (struct connection){.socket = accepted};
}

/* Waits for something to do, or not if there are passes to run. */
static void exchange(struct server *server, const sigset_t *while_waiting) {
    static const struct timespec at_once;
    struct pollfd polled[MOST_CONNECTIONS + 1];
    for (int i = 0; i < server->count; i++) {
        const struct connection *connection = &server->connections[i];
        const short events = connection->out.length ? POLLOUT : connection->request ? 0 : POLLIN;
        /* A request that is being made runs to its end even if nobody waits for it any more. */
        polled[i] = (struct pollfd){connection->request ? -1 : connection->socket, events, 0};
    }
    const int known = server->count;
    polled[known] = (struct pollfd){known < MOST_CONNECTIONS ? server->listener : -1, POLLIN, 0};
    if (ppoll(polled, (nfds_t)known + 1, scheduler_busy(server->scheduler) ? &at_once : NULL, while_waiting) < 0)
        return;
    if (polled[known].revents) accept_one(server);
    for (int i = known - 1; i >= 0; i--) {
        struct connection *connection = &server->connections[i];
        if (!polled[i].revents) continue;
        if (!(connection->out.length ? send_some(connection) : receive(server, connection))) hang_up(server, i);
    }
}

int serve(int port, struct scheduler *scheduler, const struct tokenizer *tokenizer) {
    struct server *server = take_memory(1, sizeof *server);
    struct sigaction action = {.sa_handler = stop};
    sigset_t signals, while_waiting;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, &while_waiting);
    sigdelset(&while_waiting, SIGINT);
    sigdelset(&while_waiting, SIGTERM);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    *server = (struct server){.scheduler = scheduler, .tokenizer = tokenizer, .listener = listen_on(port)};
    while (!stopping) {
        exchange(server, &while_waiting);
        if (scheduler_busy(scheduler)) scheduler_step(scheduler);
        for (int i = 0; i < server->count; i++)
            if (server->connections[i].request && server->connections[i].request->done)
                answer_tokens(server, &server->connections[i]);
    }
    while (server->count) {
        request_drop(server->connections[0].request);
        server->connections[0].request = NULL;
        hang_up(server, 0);
    }
    close(server->listener);
    free(server);
    return EXIT_SUCCESS;
}
