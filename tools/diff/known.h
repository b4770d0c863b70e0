/* known.h — for diff and check: the known growth that a file of suppressions lists.
 * In: the file that an option names. Out: its lines; and, after growth was judged, the useless lines: those that have
 * expired or suppressed nothing. */
#ifndef MEMSTOW_KNOWN_H
#define MEMSTOW_KNOWN_H

#include "tools/base/json.h"
#include "tools/diff/suppressions.h"

/* Reads the lines of the file. If `path` is NULL, there are no lines. Returns 0, or an exit code after an error
 * message. Call suppressions_end() at the end. */
int known_load(struct suppressions *suppressions, const char *path);
/* Returns why the line is useless, such as "has expired". Returns NULL if the line has suppressed growth. */
const char *known_useless(const struct suppression *suppression);
/* The conditions of a line as text. */
void known_words(const struct suppression *suppression, char *to, size_t capacity);

/* If there are useless lines, prints an empty line and then these lines. */
void known_text(const struct suppressions *suppressions, const char *path, FILE *to);
/* Prints all lines as "suppressions": [...]. */
void known_json(const struct suppressions *suppressions, struct json *json);

#endif
