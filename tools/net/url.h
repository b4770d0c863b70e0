/* url.h — takes the address of a server apart. In: a text. Out: host, port and path; or false. */
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

/* Parses http://HOST[:PORT][/PATH] or https://… Returns false if the text has another form, or names a user, a query or
 * a fragment. */
bool url_parse(struct url *url, const char *text);

#endif
