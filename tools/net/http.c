/* http.c — see http.h. HTTP/1.0: an answer ends when the connection ends, or after its Content-Length. */
#include "tools/net/http.h"
#include "tools/base/duration.h"
#include "tools/base/list.h"
#include "tools/net/lookup.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { HEAD_SIZE = 4096, READ_SIZE = 65536, BYTES_MOST = 16 << 20 };

struct exchange {
    int socket;
    uint64_t end_ns;
    char *data;
    size_t length, capacity;
};

/* Limits the next call on the socket to the time that is left. False: no time is left. */
static bool may_wait(const struct exchange *exchange) {
    uint64_t now = duration_now();
    errno = EAGAIN; /* the error of a call that ran out of time */
    if (now >= exchange->end_ns) return false;
    uint64_t left_us = (exchange->end_ns - now) / 1000 + 1; /* 0 would mean: without limit */
    struct timeval left = {.tv_sec = (time_t)(left_us / 1000000), .tv_usec = (suseconds_t)(left_us % 1000000)};
    return setsockopt(exchange->socket, SOL_SOCKET, SO_RCVTIMEO, &left, sizeof left) == 0 &&
           setsockopt(exchange->socket, SOL_SOCKET, SO_SNDTIMEO, &left, sizeof left) == 0;
}

/* Connects to one address of the host. False: it failed. */
static bool connect_address(struct exchange *exchange, const struct addrinfo *address) {
    if (exchange->socket >= 0) close(exchange->socket);
    exchange->socket = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return exchange->socket >= 0 && may_wait(exchange) &&
           connect(exchange->socket, address->ai_addr, address->ai_addrlen) == 0;
}

/* Connects to the first address of the host that can be reached. If there is none, returns false, and *why is the
 * reason. */
static bool connect_to(struct exchange *exchange, const struct http_request *request, const char **why) {
    struct addrinfo *all = lookup_host(request->host, request->port, exchange->end_ns, why);
    bool connected = false;
    for (struct addrinfo *one = all; one && !connected; one = one->ai_next) {
        connected = connect_address(exchange, one);
        if (!connected) *why = errno == EINPROGRESS || errno == EAGAIN ? "no answer in time" : strerrordesc_np(errno);
    }
    if (all) freeaddrinfo(all);
    return connected;
}

static bool send_all(struct exchange *exchange, const char *text, size_t length) {
    while (length && may_wait(exchange)) {
        ssize_t sent = send(exchange->socket, text, length, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR) return false;
        if (sent > 0) text += sent, length -= (size_t)sent;
    }
    return !length;
}

static bool http_grow(struct exchange *exchange) {
    return exchange->length <= BYTES_MOST &&
           list_grow(&exchange->data, 1, exchange->length, READ_SIZE + 1, &exchange->capacity);
}

/* Whether the answer is complete by its Content-Length. Some servers keep the connection open in spite of HTTP/1.0, so
 * the end of the connection may never come. */
static bool is_complete(const struct exchange *exchange) {
    char *end = strstr(exchange->data, "\r\n\r\n");
    if (!end) return false;
    *end = 0;
    const char *length = strcasestr(exchange->data, "\r\nContent-Length:");
    *end = '\r';
    return length && exchange->length - (size_t)(end + 4 - exchange->data) >= strtoull(length + 17, NULL, 10);
}

/* Why a call on the socket has failed. */
static const char *http_failure(void) {
    return errno == EAGAIN || errno == EINPROGRESS ? "no whole answer in time" : strerrordesc_np(errno);
}

/* Receives the next part of the answer. Returns the length of the part, 0 if the connection has ended, or -1 with errno
 * if the call failed. A reset after some data counts as the end: a server may refuse a request of which it has read
 * only a part, and then its answer is followed by a reset. */
static ssize_t receive_part(struct exchange *exchange) {
    ssize_t got = may_wait(exchange) ? recv(exchange->socket, exchange->data + exchange->length, READ_SIZE, 0) : -1;
    return got < 0 && errno == ECONNRESET && exchange->length ? 0 : got;
}

/* Receives the answer, and writes a NUL behind it. Returns true if the whole answer is there, or if the connection has
 * ended, perhaps too early. Otherwise returns false, and *why says what failed. */
static bool receive_all(struct exchange *exchange, const char **why) {
    while (http_grow(exchange)) {
        ssize_t got = receive_part(exchange);
        if (got < 0 && errno != EINTR) {
            *why = http_failure();
            return false;
        }
        if (got > 0) exchange->length += (size_t)got;
        exchange->data[exchange->length] = 0;
        if (got == 0 || is_complete(exchange)) return true;
    }
    *why = exchange->length > BYTES_MOST ? "the answer is longer than 16 MiB" : "not enough memory";
    return false;
}

static void take_answer(struct http_answer *answer, struct exchange *exchange) {
    const char *body = strstr(exchange->data, "\r\n\r\n");
    if (!body || sscanf(exchange->data, "HTTP/%*3d.%*3d %3d", &answer->status) != 1) {
        answer->status = 0;
        answer->why = exchange->length ? "the answer is not HTTP" : "the connection ended without an answer";
        return;
    }
    answer->length = exchange->length - (size_t)(body + 4 - exchange->data);
    memmove(exchange->data, body + 4, answer->length + 1);
    answer->body = exchange->data;
    exchange->data = NULL;
}

/* Writes the request's head. Returns the length of the head, or 0 if the head is too long. */
static size_t head_write(char *head, const struct http_request *request) {
    bool brackets = strchr(request->host, ':'); /* an address of IPv6 */
    int used = snprintf(head, HEAD_SIZE,
                        "%s %s HTTP/1.0\r\nHost: %s%s%s:%u\r\nContent-Type: application/json\r\n"
                        "%sContent-Length: %zu\r\n\r\n",
                        request->method, request->path, brackets ? "[" : "", request->host, brackets ? "]" : "",
                        request->port, request->headers, request->length);
    return used > 0 && used < HEAD_SIZE ? (size_t)used : 0;
}

void http_send(struct http_answer *answer, const struct http_request *request) {
    char head[HEAD_SIZE];
    struct exchange exchange = {.socket = -1, .end_ns = duration_now() + request->within_ns};
    *answer = (struct http_answer){.why = "the address is too long"};
    size_t used = head_write(head, request);
    if (used && connect_to(&exchange, request, &answer->why)) {
        if (send_all(&exchange, head, used)) send_all(&exchange, request->body, request->length);
        /* even after a failed send: the answer may be a refusal */
        if (receive_all(&exchange, &answer->why)) take_answer(answer, &exchange);
    }
    if (exchange.socket >= 0) close(exchange.socket);
    free(exchange.data);
}

void http_ask(struct http_answer *answer, uint16_t port, const char *method, const char *path, const char *body,
              size_t length, uint64_t within_ns) {
    struct http_request request = {.host = "127.0.0.1",
                                   .port = port,
                                   .method = method,
                                   .path = path,
                                   .body = body,
                                   .headers = "",
                                   .length = length,
                                   .within_ns = within_ns};
    http_send(answer, &request);
}
