/* HTTP on the loopback interface, in one thread with the engine: GET /health, GET /metrics, POST /generate. */
#ifndef TINYLLM_SERVER_H
#define TINYLLM_SERVER_H

#include "generation.h"

/* Serves until SIGINT or SIGTERM and returns the exit code. Port 0 takes a free one; the address is printed. */
int serve(int port, struct scheduler *scheduler, const struct tokenizer *tokenizer);

#endif
