/* url.h — the address of a server. In: a text. Out: its parts, or no address. */
#ifndef MEMSTOW_URL_H
#define MEMSTOW_URL_H

#include <stdbool.h>
#include <stdint.h>

struct url {
    bool secure; /* https */
    uint16_t port;
    char host[256];
    char path[1024]; /* without a slash at its end; "": none */
};

/* False: it is not http://HOST[:PORT][/PATH] or the same with https. A user, a query or a fragment is refused, too. */
bool url_parse(struct url *url, const char *text);

#endif
