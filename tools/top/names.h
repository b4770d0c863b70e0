/* names.h — the names of rows, and the lines of a stack.
 * In: a key of a row. Out: text for people, without control characters. Frames are looked up (symbols.h) only for rows
 * that are on the screen, and for a search. */
#ifndef MEMSTOW_TOP_NAMES_H
#define MEMSTOW_TOP_NAMES_H

#include "tools/base/text.h"
#include "tools/symbols/symbols.h"
#include "tools/top/grouping.h"

enum { NAMES_FRAMES_MOST = 4096 };

struct names {
    struct sampling *sampling;
    struct symbols *symbols;
    uint32_t execs; /* sampling->execs when `symbols` was made */
    uint32_t words[NAMES_FRAMES_MOST + 1];
    struct snap_node nodes[2];
};

void names_begin(struct names *names, struct sampling *sampling);
void names_end(struct names *names);

struct text_line names_row(struct names *names, enum view view, uint64_t key, int width);
/* The owners of a site, "model UNET, node KSampler"; "" if it has none. */
struct text_line names_owners(const struct names *names, uint32_t tag, int width);
/* Writes a site's whole stack, innermost first, a line for each function. Returns the number of lines. */
size_t names_stack(struct names *names, uint64_t key, struct text_line *lines, size_t most, int width);
/* Marks all frames whose function, file or module has the text. All frames are looked up for this. Returns a byte for
 * each frame, which the caller frees. NULL: no memory. */
uint8_t *names_match(struct names *names, const char *text);

#endif
