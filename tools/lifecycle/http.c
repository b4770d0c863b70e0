/* http.c — see http.h. HTTP/1.0: an answer ends with the connection, or after its own length. */
#include "tools/lifecycle/http.h"
#include "tools/base/duration.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HEAD_ROOM = 4096, READ_ROOM = 65536 };

struct exchange {
    int socket;
    uint64_t end_ns;
    char *data;
    size_t length, capacity;
};

static bool await(const struct exchange *exchange, short events) {
    uint64_t now = duration_now();
    struct pollfd wait = {.fd = exchange->socket, .events = events};
    if (now >= exchange->end_ns) return false;
    int ready = poll(&wait, 1, (int)((exchange->end_ns - now) / 1000000) + 1);
    return ready > 0 || (ready < 0 && errno == EINTR);
}

static bool connect_to(struct exchange *exchange, uint16_t port) {
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int error = 0;
    socklen_t size = sizeof error;
    exchange->socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (exchange->socket < 0) return false;
    if (connect(exchange->socket, (struct sockaddr *)&address, sizeof address) == 0) return true;
    if (errno != EINPROGRESS || !await(exchange, POLLOUT)) return false;
    return getsockopt(exchange->socket, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && !error;
}

static bool send_all(struct exchange *exchange, const char *text, size_t length) {
    while (length) {
        ssize_t sent = send(exchange->socket, text, length, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN && errno != EINTR) return false;
        if (sent < 0 && !await(exchange, POLLOUT)) return false;
        if (sent > 0) text += sent, length -= (size_t)sent;
    }
    return true;
}

static bool make_room(struct exchange *exchange) {
    if (exchange->capacity - exchange->length > READ_ROOM) return true;
    if (exchange->length > HTTP_BYTES_MOST) return false;
    size_t capacity = 2 * exchange->capacity + 2 * READ_ROOM;
    char *grown = realloc(exchange->data, capacity);
    if (!grown) return false;
    exchange->data = grown;
    exchange->capacity = capacity;
    return true;
}

/* Whether the answer has its whole length. Some servers keep the connection open in spite of HTTP/1.0. */
static bool is_complete(const struct exchange *exchange) {
    exchange->data[exchange->length] = 0;
    char *end = strstr(exchange->data, "\r\n\r\n");
    if (!end) return false;
    *end = 0;
    const char *length = strcasestr(exchange->data, "\r\nContent-Length:");
    *end = '\r';
    return length && exchange->length - (size_t)(end + 4 - exchange->data) >= strtoull(length + 17, NULL, 10);
}

/* True if all of it came. */
static bool receive_all(struct exchange *exchange) {
    while (make_room(exchange)) {
        ssize_t got = recv(exchange->socket, exchange->data + exchange->length, READ_ROOM, 0);
        if (got == 0) return true;
        if (got < 0 && errno != EAGAIN && errno != EINTR) return false;
        if (got < 0 && !await(exchange, POLLIN)) return false;
        if (got > 0) exchange->length += (size_t)got;
        if (got > 0 && is_complete(exchange)) return true;
    }
    return false;
}

static void take_answer(struct http_answer *answer, struct exchange *exchange) {
    exchange->data[exchange->length] = 0;
    char *body = strstr(exchange->data, "\r\n\r\n");
    if (!body || sscanf(exchange->data, "HTTP/%*3d.%*3d %3d", &answer->status) != 1) {
        answer->status = 0;
        return;
    }
    answer->length = exchange->length - (size_t)(body + 4 - exchange->data);
    memmove(exchange->data, body + 4, answer->length + 1);
    answer->body = exchange->data;
    exchange->data = NULL;
}

void http_ask(struct http_answer *answer, uint16_t port, const char *method, const char *path, const char *body,
              size_t length, uint64_t within_ns) {
    char head[HEAD_ROOM];
    struct exchange exchange = {.socket = -1, .end_ns = duration_now() + within_ns};
    *answer = (struct http_answer){0};
    int used = snprintf(head, sizeof head,
                        "%s %s HTTP/1.0\r\nHost: 127.0.0.1:%u\r\nContent-Type: application/json\r\n"
                        "Content-Length: %zu\r\n\r\n",
                        method, path, port, body ? length : 0);
    bool fine = used > 0 && (size_t)used < sizeof head && connect_to(&exchange, port) &&
                send_all(&exchange, head, (size_t)used) && (!body || send_all(&exchange, body, length)) &&
                receive_all(&exchange) && make_room(&exchange);
    if (fine && exchange.length) take_answer(answer, &exchange);
    if (exchange.socket >= 0) close(exchange.socket);
    free(exchange.data);
}
