/* https.h — requests over TLS, by libcurl. The command is not linked with libcurl, but opens it when it is first
 * needed. In: a request. Out: an answer as in http.h, without a body. The server's certificate is always checked. */
#ifndef MEMSTOW_HTTPS_H
#define MEMSTOW_HTTPS_H

#include "tools/net/http.h"

/* Returns 1 if libcurl is installed and has all functions that are needed, otherwise 0. */
int https_is_there(void);
/* `authorities`: a file with certificates to trust; NULL: those of the system. */
void https_send(struct http_answer *answer, const struct http_request *request, const char *authorities);

#endif
