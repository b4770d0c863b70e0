/* lookup.c — see lookup.h. getaddrinfo itself waits for name servers as long as resolv.conf says, which may be minutes.
 * With getaddrinfo_a, a thread of libc waits instead. A numeric address needs no name server, and so no thread. */
#include "tools/net/lookup.h"
#include "tools/base/duration.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* What the thread of getaddrinfo_a() reads and writes. If that thread does not end in time, this memory is never
 * freed. */
struct lookup {
    struct gaicb request;
    struct addrinfo hints;
    char host[256], port[8];
};

static struct lookup *lookup_make(const char *host, uint16_t port) {
    struct lookup *lookup = calloc(1, sizeof *lookup);
    if (!lookup) return NULL;
    snprintf(lookup->host, sizeof lookup->host, "%s", host);
    snprintf(lookup->port, sizeof lookup->port, "%u", port);
    lookup->hints = (struct addrinfo){.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    lookup->request.ar_name = lookup->host;
    lookup->request.ar_service = lookup->port;
    lookup->request.ar_request = &lookup->hints;
    return lookup;
}

/* Waits until the look-up is done or the time is over. Returns what getaddrinfo would return, or EAI_INPROGRESS if the
 * time is over. */
static int lookup_wait(struct lookup *lookup, uint64_t end_ns) {
    const struct gaicb *list[] = {&lookup->request};
    int error;
    while ((error = gai_error(&lookup->request)) == EAI_INPROGRESS) {
        uint64_t now = duration_now(), left = end_ns > now ? end_ns - now : 0;
        if (!left) return error;
        struct timespec wait = {(time_t)(left / 1000000000), (long)(left % 1000000000)};
        gai_suspend(list, 1, &wait);
    }
    return error;
}

static const char *lookup_reason(int error) {
    return error == EAI_INPROGRESS || error == EAI_CANCELED ? "the name servers do not answer in time"
                                                            : gai_strerror(error);
}

/* Reads the host as a numeric address. Returns what getaddrinfo returns. EAI_NONAME means that the host is no such
 * address. */
static int lookup_number(struct lookup *lookup) {
    struct addrinfo hints = lookup->hints;
    hints.ai_flags |= AI_NUMERICHOST;
    return getaddrinfo(lookup->host, lookup->port, &hints, &lookup->request.ar_result);
}

/* Looks up the host's name in the thread of getaddrinfo_a(). Returns what lookup_wait returns. */
static int lookup_name(struct lookup *lookup, uint64_t end_ns) {
    struct gaicb *list[] = {&lookup->request};
    int error = getaddrinfo_a(GAI_NOWAIT, list, 1, NULL);
    return error ? error : lookup_wait(lookup, end_ns);
}

struct addrinfo *lookup_host(const char *host, uint16_t port, uint64_t end_ns, const char **why) {
    struct lookup *lookup = lookup_make(host, port);
    *why = lookup_reason(EAI_MEMORY);
    if (!lookup) return NULL;
    int error = lookup_number(lookup);
    if (error == EAI_NONAME) error = lookup_name(lookup, end_ns);
    bool in_use = error == EAI_INPROGRESS && gai_cancel(&lookup->request) == EAI_NOTCANCELED;
    if (error == EAI_INPROGRESS && !in_use) error = gai_error(&lookup->request); /* it may have been done just now */
    if (error) *why = lookup_reason(error);
    struct addrinfo *found = error ? NULL : lookup->request.ar_result;
    if (!in_use) free(lookup);
    return found;
}
