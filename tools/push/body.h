/* body.h — a profile as a request to a server of profiles, in the JSON form of protocol buffers.
 * In: a profile, labels. Out: a text. It is a push.v1.PushRequest (api/push/v1/push.proto) for Pyroscope, and a
 * WriteRawRequest (proto/parca/profilestore/v1alpha1/profilestore.proto) for Parca. */
#ifndef MEMSTOW_BODY_H
#define MEMSTOW_BODY_H

#include <stddef.h>

enum body_form { BODY_PYROSCOPE, BODY_PARCA };

struct body_label {
    const char *name, *value;
};
struct body {
    char *text; /* the caller frees it */
    size_t length;
};

/* The path of requests of this form. It comes after the path in the server's URL. */
const char *body_path(enum body_form form);
/* Writes the request with a profile of `length` bytes. Returns 0, or -1: no memory. */
int body_write(struct body *body, enum body_form form, const struct body_label *labels, size_t count,
               const void *profile, size_t length);

#endif
