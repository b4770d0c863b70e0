/* folded.c — see folded.h. */
#include "tools/export/folded.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct folded *folded_of(struct profile_sink *sink) { return (struct folded *)sink; }

static void append(struct folded *folded, const char *text, size_t length) {
    struct profile_sink *sink = &folded->sink;
    if (sink->used + length + 1 > folded->room) {
        size_t room = 2 * (sink->used + length + 1);
        char *grown = realloc(folded->text, room);
        sink->failed |= !grown;
        if (!grown) return;
        folded->text = grown;
        folded->room = room;
    }
    memcpy(folded->text + sink->used, text, length);
    sink->used += length;
}

/* A ';' separates frames, and a line end separates stacks. */
static void append_safe(struct folded *folded, const char *text) {
    size_t from = folded->sink.used;
    append(folded, text, strlen(text));
    char *end = folded->text + folded->sink.used;
    for (char *c = folded->text + from; !folded->sink.failed && c < end; c++)
        *c = *c == ';' ? ':' : (unsigned char)*c < 0x20 || *c == 0x7f ? '?' : *c;
}

static void begin_frame(struct folded *folded) {
    if (folded->sink.used) append(folded, ";", 1);
}

static void push(struct profile_sink *sink, const char *name) {
    begin_frame(folded_of(sink));
    append_safe(folded_of(sink), name);
}

static void append_place(struct folded *folded, const struct symbol *symbol) {
    char line[16];
    append(folded, " (", 2);
    append_safe(folded, symbols_short_path(symbol->file));
    if (symbol->line) append(folded, line, (size_t)snprintf(line, sizeof line, ":%" PRIu32, symbol->line));
    append(folded, ")", 1);
}

static void push_function(struct profile_sink *sink, const struct named_frame *frame, const struct symbol *symbol) {
    char name[SYMBOL_NAMELESS];
    struct folded *folded = folded_of(sink);
    begin_frame(folded);
    if (frame->python) append(folded, "py:", 3);
    append_safe(folded, symbol->function ? symbol->function : symbol_nameless(frame, name));
    if (frame->python && symbol->file) append_place(folded, symbol);
}

static void put(struct profile_sink *sink, const uint64_t amounts[2]) {
    if (sink->failed) return;
    fwrite_unlocked(folded_of(sink)->text, 1, sink->used, stdout);
    printf(" %" PRIu64 "\n", amounts[0]);
}

static void put_pair(struct profile_sink *sink, const uint64_t amounts[2]) {
    if (sink->failed) return;
    fwrite_unlocked(folded_of(sink)->text, 1, sink->used, stdout);
    printf(" %" PRIu64 " %" PRIu64 "\n", amounts[0], amounts[1]);
}

void folded_begin(struct folded *folded, bool pairs) {
    *folded = (struct folded){.sink = {.push = push, .push_function = push_function, .put = pairs ? put_pair : put}};
}

void folded_end(struct folded *folded) {
    free(folded->text);
    folded->text = NULL;
}
