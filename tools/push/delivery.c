/* delivery.c — see delivery.h. */
#include "tools/push/delivery.h"
#include "tools/base/complain.h"
#include "tools/base/duration.h"
#include "tools/base/text.h"
#include "tools/net/https.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WITHIN_NS (10 * SECOND_NS)
#define PAUSE_FIRST_NS SECOND_NS
#define PAUSE_MOST_NS (300 * SECOND_NS)

static const char *delivery_server(const struct delivery *delivery) {
    static char text[sizeof delivery->url + 32];
    const char *form = strchr(delivery->url.host, ':') ? "%s://[%s]:%u%s" : "%s://%s:%u%s";
    snprintf(text, sizeof text, form, delivery->url.secure ? "https" : "http", delivery->url.host, delivery->url.port,
             delivery->url.path);
    return text;
}

static void delivery_drop(struct delivery *delivery) {
    free(delivery->queue[0].text);
    delivery->bytes -= delivery->queue[0].length;
    delivery->count--;
    memmove(delivery->queue, delivery->queue + 1, delivery->count * sizeof *delivery->queue);
}

void delivery_add(struct delivery *delivery, struct body body) {
    while (delivery->count &&
           (delivery->count == DELIVERY_MOST || delivery->bytes + body.length > DELIVERY_BYTES_MOST)) {
        delivery_drop(delivery);
        delivery->dropped++;
    }
    delivery->queue[delivery->count++] = body;
    delivery->bytes += body.length;
}

bool delivery_is_due(const struct delivery *delivery) {
    return !delivery->pause_ns || duration_now() >= delivery->again_ns;
}

static void delivery_ask(const struct delivery *delivery, const struct body *body, struct http_answer *answer) {
    char path[2048];
    snprintf(path, sizeof path, "%s%s", delivery->url.path, body_path(delivery->form));
    struct http_request request = {.host = delivery->url.host,
                                   .port = delivery->url.port,
                                   .method = "POST",
                                   .path = path,
                                   .body = body->text,
                                   .headers = delivery->headers,
                                   .length = body->length,
                                   .within_ns = WITHIN_NS};
    if (delivery->url.secure)
        https_send(answer, &request, delivery->authorities);
    else
        http_send(answer, &request);
}

/* Whether the same request may succeed later. */
static bool delivery_may_help(int status) { return !status || status == 408 || status == 429 || status >= 500; }

/* Writes what the server answered, for example "status 404: not found", or the reason why there is no answer. */
static void delivery_why(const struct http_answer *answer, char *why, size_t size) {
    const char *text = answer->body ? answer->body : "";
    size_t line = strcspn(text, "\r\n");
    if (line > 200) line = 200;
    if (!answer->status)
        snprintf(why, size, "%s", answer->why);
    else
        snprintf(why, size, "status %d%s%.*s", answer->status, line ? ": " : "", (int)line, text);
}

/* Sends the oldest request. Returns the status of the answer; 0: there is none. */
static int delivery_try(struct delivery *delivery, char *why, size_t size) {
    struct http_answer answer;
    delivery_ask(delivery, &delivery->queue[0], &answer);
    delivery_why(&answer, why, size);
    free(answer.body);
    return answer.status;
}

static void delivery_pause(struct delivery *delivery, const char *why) {
    if (!delivery->pause_ns) complain("%s: %s; it is asked again later", delivery_server(delivery), TEXT_SAFE(why));
    delivery->pause_ns = delivery->pause_ns ? 2 * delivery->pause_ns : PAUSE_FIRST_NS;
    if (delivery->pause_ns > PAUSE_MOST_NS) delivery->pause_ns = PAUSE_MOST_NS;
    delivery->again_ns = duration_now() + delivery->pause_ns;
}

static void delivery_resume(struct delivery *delivery) {
    if (delivery->pause_ns)
        complain("%s answers again; profiles that were dropped meanwhile: %zu", delivery_server(delivery),
                 delivery->dropped);
    delivery->pause_ns = 0;
    delivery->dropped = 0;
}

static int delivery_refused(const struct delivery *delivery, const char *why) {
    complain("%s: %s", delivery_server(delivery), TEXT_SAFE(why));
    return EXIT_UNREADABLE;
}

int delivery_send(struct delivery *delivery) {
    char why[512];
    while (delivery->count) {
        int status = delivery_try(delivery, why, sizeof why);
        if (delivery_may_help(status)) {
            delivery_pause(delivery, why);
            return EXIT_FINE;
        }
        if (status < 200 || status > 299) return delivery_refused(delivery, why);
        delivery_drop(delivery);
        delivery_resume(delivery);
    }
    return EXIT_FINE;
}

int delivery_end(struct delivery *delivery) {
    char why[512];
    int code = EXIT_FINE;
    while (code == EXIT_FINE && delivery->count) {
        int status = delivery_try(delivery, why, sizeof why);
        if (status < 200 || status > 299)
            code = delivery_refused(delivery, why);
        else
            delivery_drop(delivery);
    }
    while (delivery->count) delivery_drop(delivery);
    return code;
}
