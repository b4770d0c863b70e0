/* json.h — writes one JSON document piece by piece, so that a million sites need no memory.
 * In: keys and values in document order. Out: indented text on a stream. Strings are always written as UTF-8: invalid
 * bytes become U+FFFD. */
#ifndef MEMSTOW_JSON_H
#define MEMSTOW_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
    FILE *out;
    int depth;
    bool some;     /* the innermost object or array has a member already */
    bool one_line; /* set by the caller: what is written from now on goes on one line */
    size_t used;
    char buffer[1 << 16];
};

/* The key is NULL for members of an array and for the document itself. */
void json_object(struct json *json, const char *key);
void json_array(struct json *json, const char *key);
void json_end_object(struct json *json);
void json_end_array(struct json *json);
void json_number(struct json *json, const char *key, uint64_t value);
void json_signed(struct json *json, const char *key, int64_t value);
void json_real(struct json *json, const char *key, double value);
void json_bool(struct json *json, const char *key, bool value);
void json_null(struct json *json, const char *key);
void json_string(struct json *json, const char *key, const char *value); /* NULL is written as null */
/* Writes a value that is JSON already. */
void json_value(struct json *json, const char *key, const char *value, size_t length);
/* Writes `members`, which another struct json has written at the same depth. `members` must not begin with a comma. */
void json_raw(struct json *json, const char *members, size_t length);
void json_flush(struct json *json);                                /* writes the buffer */
void json_begin(struct json *json, FILE *out, const char *format); /* begins with {"format": …, "version": 1 */
void json_finish(struct json *json);

#endif
