/* known.h — growth that is known, as diff and check are told of it.
 * In: the file of suppressions that an option names. Out: its lines; and, once growth was judged, which of them were of
 * what use. */
#ifndef MEMSTOW_KNOWN_H
#define MEMSTOW_KNOWN_H

#include "tools/base/json.h"
#include "tools/diff/suppressions.h"

/* NULL: no lines. 0, or an exit code after complaining. Ends with suppressions_end(). */
int known_load(struct suppressions *suppressions, const char *path);
/* Why the line is of no use; NULL when it is of some. */
const char *known_useless(const struct suppression *suppression);
/* The line as it reads. */
void known_words(const struct suppression *suppression, char *to, size_t room);

/* The lines that are of no use, behind an empty one. */
void known_text(const struct suppressions *suppressions, const char *path, FILE *to);
/* All, as "suppressions": [...]. */
void known_json(const struct suppressions *suppressions, struct json *json);

#endif
