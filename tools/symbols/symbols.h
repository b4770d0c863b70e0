/* symbols.h — frames of an image → functions, files and lines.
 * In: frame ids. Out: names, each frame looked up when it is first asked for and then kept. ELF files are read by a
 * process of its own: one that is damaged, or was made to do harm, costs its own names and nothing else. What is
 * missing is said once a file, on stderr. */
#ifndef MEMSTOW_SYMBOLS_H
#define MEMSTOW_SYMBOLS_H

#include "tools/image/image.h"

#include <sys/types.h>

struct symbol {
    const char *function, *file; /* NULL: not known */
    uint32_t line;               /* 0: not known */
};

/* What a frame is: several symbols where functions are inlined, the innermost first, and never none. */
struct named_frame {
    const char *module; /* path; NULL for Python frames and for code that belongs to no file */
    uint64_t offset;    /* native: address in the module's file, or in the process without a module */
    bool python;
    uint32_t count;
    struct symbol symbols[];
};

struct symbols;

/* pid: of a running process, whose view of the file system is taken; or 0. NULL: no memory. */
struct symbols *symbols_begin(const struct image *image, pid_t pid);
void symbols_end(struct symbols *symbols);
/* Never NULL. */
const struct named_frame *symbols_frame(struct symbols *symbols, uint32_t frame);

/* One function of a frame, as it is shown on a line of its own. */
struct symbol_line {
    uint32_t frame, symbol;
};
/* The line that was asked for first of those that read the same as this one: function, file and line. */
struct symbol_line symbols_alike(struct symbols *symbols, struct symbol_line line);

/* Modules of which functions are known but no lines, as far as frames were looked up: names of some, and their number.
 */
size_t symbols_without_lines(const struct symbols *symbols, const char **names, size_t most);

/* For each frame id whether a function or file in it contains the text; looks all of them up. NULL: no memory. */
uint8_t *symbols_match(struct symbols *symbols, const char *text);

/* The last name of a path; of one such as torch/__init__.py, which every package has, the last two. */
const char *symbols_short_path(const char *path);
/* What stands for a function that is not known: "libx.so+0x1f0", or "(unknown)" of Python's. */
enum { SYMBOL_NAMELESS = 320 };
const char *symbol_nameless(const struct named_frame *frame, char name[SYMBOL_NAMELESS]);

/* "function  file:line" in at most width columns, as much of both as there is room for. */
struct text_line symbol_text(const struct named_frame *frame, const struct symbol *symbol, int width);

#endif
