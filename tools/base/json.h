/* json.h — one JSON document, written as it goes, so that a million sites need no memory.
 * In: keys and values in document order. Out: indented text on a stream. It never writes a string that is not
 * UTF-8: other bytes come out as U+FFFD. */
#ifndef MEMSTOW_JSON_H
#define MEMSTOW_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
    FILE *out;
    int depth;
    bool some;     /* the innermost object or array has a member already */
    bool one_line; /* what comes now goes on one line */
    size_t used;
    char buffer[1 << 16];
};

/* A NULL key is for members of an array and for the document itself. */
void json_object(struct json *json, const char *key);
void json_array(struct json *json, const char *key);
void json_end_object(struct json *json);
void json_end_array(struct json *json);
void json_number(struct json *json, const char *key, uint64_t value);
void json_signed(struct json *json, const char *key, int64_t value);
void json_real(struct json *json, const char *key, double value);
void json_bool(struct json *json, const char *key, bool value);
void json_null(struct json *json, const char *key);
void json_string(struct json *json, const char *key, const char *value); /* NULL gives null */
/* A value that is JSON already. */
void json_value(struct json *json, const char *key, const char *value, size_t length);
/* Members that another struct json of the same depth wrote, without the comma in front. */
void json_raw(struct json *json, const char *members, size_t length);
void json_flush(struct json *json);                                /* writes out what is buffered */
void json_begin(struct json *json, FILE *out, const char *format); /* {"format": …, "version": 1 */
void json_finish(struct json *json);

#endif
