/* owners_json.h — the registered owners as one JSON document.
 * In: the owners of an image. Out: JSON on a stream. */
#ifndef MEMSTOW_OWNERS_JSON_H
#define MEMSTOW_OWNERS_JSON_H

#include "tools/views/roster.h"

#include <stdio.h>

void owners_json(const struct roster *roster, const struct image *image, FILE *to);

#endif
