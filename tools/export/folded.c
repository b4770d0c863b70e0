/* folded.c — see folded.h. */
#include "tools/export/folded.h"
#include "preload/shared/utf8.h"
#include "tools/base/list.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

struct folded_line {
    UT_hash_handle hh;
    uint64_t amounts[2];
    char text[];
};

static struct folded *folded_of(struct profile_sink *sink) { return (struct folded *)sink; }

static void folded_append(struct folded *folded, const char *text, size_t length) {
    struct profile_sink *sink = &folded->sink;
    if (!list_grow(&folded->text, 1, sink->used, length + 1, &folded->capacity)) {
        sink->failed = true;
        return;
    }
    memcpy(folded->text + sink->used, text, length);
    sink->used += length;
}

/* Appends a text. These characters are replaced: ';', which separates frames; unprintable characters; bytes that are no
 * UTF-8; backslashes, because a backslash could end a string in the script that flamegraph.pl writes. */
static void append_safe(struct folded *folded, const char *text) {
    size_t from = folded->sink.used;
    folded_append(folded, text, strlen(text));
    if (folded->sink.failed) return;
    char *c = folded->text + from, *end = folded->text + folded->sink.used;
    for (size_t length; c < end; c += length) {
        length = utf8_printable(c, (size_t)(end - c));
        if (*c == ';') *c = ':';
        if (*c == '\\') *c = '/';
        if (!length) *c = '?', length = 1;
    }
}

static void begin_frame(struct folded *folded) {
    if (folded->sink.used) folded_append(folded, ";", 1);
}

static void folded_push(struct profile_sink *sink, const char *name) {
    begin_frame(folded_of(sink));
    append_safe(folded_of(sink), name);
}

static void append_source_line(struct folded *folded, const struct symbol *symbol) {
    char line[16];
    folded_append(folded, " (", 2);
    append_safe(folded, symbols_short_path(symbol->file));
    if (symbol->line) folded_append(folded, line, (size_t)snprintf(line, sizeof line, ":%" PRIu32, symbol->line));
    folded_append(folded, ")", 1);
}

static void push_function(struct profile_sink *sink, const struct named_frame *frame, const struct symbol *symbol) {
    char name[SYMBOL_NAMELESS];
    struct folded *folded = folded_of(sink);
    begin_frame(folded);
    if (frame->python) folded_append(folded, "py:", 3);
    append_safe(folded, symbol->function ? symbol->function : symbol_nameless(frame, name));
    if (frame->python && symbol->file) append_source_line(folded, symbol);
}

/* If the stack ends with a space and a number, replaces the space, because readers would take the number for an amount.
 * Returns the place of the space, for put_space_back; NULL: there was no such space. */
static char *replace_space(const struct folded *folded) {
    char *end = folded->text + folded->sink.used, *c = end;
    while (c > folded->text && ((c[-1] >= '0' && c[-1] <= '9') || c[-1] == '.')) c--;
    if (c == end || c == folded->text || c[-1] != ' ') return NULL;
    c[-1] = '_';
    return c - 1;
}

/* In the next stack, other frames can follow the number. */
static void put_space_back(char *space) {
    if (space) *space = ' ';
}

static void folded_put(struct profile_sink *sink, const uint64_t amounts[2]) {
    if (sink->failed) return;
    char *space = replace_space(folded_of(sink));
    fwrite_unlocked(folded_of(sink)->text, 1, sink->used, stdout);
    printf(" %" PRIu64 "\n", amounts[0]);
    put_space_back(space);
}

static struct folded_line *add_line(struct folded *folded) {
    struct folded_line *line = malloc(sizeof *line + folded->sink.used);
    folded->sink.failed |= !line;
    if (!line) return NULL;
    memcpy(line->text, folded->text, folded->sink.used);
    line->amounts[0] = line->amounts[1] = 0;
    HASH_ADD(hh, folded->lines, text, folded->sink.used, line);
    return line;
}

static void keep_pair(struct profile_sink *sink, const uint64_t amounts[2]) {
    struct folded *folded = folded_of(sink);
    struct folded_line *line;
    if (sink->failed) return;
    char *space = replace_space(folded);
    HASH_FIND(hh, folded->lines, folded->text, sink->used, line);
    if (!line) line = add_line(folded);
    put_space_back(space);
    for (int side = 0; line && side < 2; side++) line->amounts[side] += amounts[side];
}

static void write_pairs(struct folded *folded) {
    struct folded_line *line, *next;
    HASH_ITER(hh, folded->lines, line, next) {
        fwrite_unlocked(line->text, 1, line->hh.keylen, stdout);
        printf(" %" PRIu64 " %" PRIu64 "\n", line->amounts[0], line->amounts[1]);
        HASH_DEL(folded->lines, line);
        free(line);
    }
}

void folded_begin(struct folded *folded, bool pairs) {
    *folded = (struct folded){
        .sink = {.push = folded_push, .push_function = push_function, .put = pairs ? keep_pair : folded_put}};
}

void folded_end(struct folded *folded) {
    write_pairs(folded);
    free(folded->text);
    folded->text = NULL;
}
