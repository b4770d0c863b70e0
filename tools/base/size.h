/* size.h — sizes as people write them: "64K", "1.5MiB", "4096".
 * In: a text. Out: bytes. It must not depend on the locale. */
#ifndef MEMSTOW_SIZE_H
#define MEMSTOW_SIZE_H

#include <stdbool.h>

/* One size and nothing else. */
bool size_parse(const char *string, double *bytes);
/* The number in front: where it ends, or NULL when there is none. */
const char *size_number(const char *string, double *value);
/* How many bytes one of the unit is. Nothing is bytes; K, KiB and KB are 1024 of them. */
bool size_unit(const char *unit, double *factor);

#endif
