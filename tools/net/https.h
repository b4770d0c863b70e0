/* https.h — requests over TLS, by libcurl, which is opened when the first one is sent: the command is not linked with
 * it. In: a request. Out: what http.h has. The server's certificate is always checked. */
#ifndef MEMSTOW_HTTPS_H
#define MEMSTOW_HTTPS_H

#include "tools/net/http.h"

/* Whether libcurl is installed. */
int https_is_there(void);
/* `authorities`: a file with certificates to trust; NULL: those of the system. */
void https_send(struct http_answer *answer, const struct http_request *request, const char *authorities);

#endif
