/* lookup.h — looks up the addresses of a host within a time limit.
 * In: a name or an address, a port, and the moment at which to give up. Out: addresses, or the reason why there are
 * none. It never waits past that moment. */
#ifndef MEMSTOW_LOOKUP_H
#define MEMSTOW_LOOKUP_H

#include <netdb.h>
#include <stdint.h>

/* Returns the addresses of the host, to be freed by freeaddrinfo. If there are none, returns NULL, and *why is the
 * reason. */
struct addrinfo *lookup_host(const char *host, uint16_t port, uint64_t end_ns, const char **why);

#endif
