/* symbols.h — names the frames of an image: functions, files and lines.
 * In: frame ids. Out: names. Each frame is looked up at the first request and then kept. A separate process reads ELF
 * files, so a damaged or hostile file costs only its own names. A file that cannot be used is reported once, on
 * standard error. */
#ifndef MEMSTOW_SYMBOLS_H
#define MEMSTOW_SYMBOLS_H

#include "tools/image/image.h"

#include <sys/types.h>

struct symbol {
    const char *function, *file; /* NULL: not known */
    uint32_t line;               /* 0: not known */
};

/* The names of a frame. With inlined functions it has several symbols, the innermost first. It always has at least
 * one. */
struct named_frame {
    const char *module; /* path; NULL for Python frames and for code outside any file */
    uint64_t offset;    /* of a native frame: address in the module's file or, without a module, in the process */
    bool python;
    uint32_t count;
    struct symbol symbols[];
};

struct symbols;

/* Makes names for an image. `pid`: the image's process if it still runs, otherwise 0. With a pid, files are opened as
 * that process sees them. Returns NULL if there is no memory. */
struct symbols *symbols_begin(const struct image *image, pid_t pid);
void symbols_end(struct symbols *symbols);
/* For the image of a program that runs on. Call this when frames or modules were added to the image. Names that were
 * looked up stay. Returns false if there is no memory; then no frame that was added may be looked up. */
bool symbols_grow(struct symbols *symbols);
/* Two functions for a ledger that is read again and again. symbols_rest ends the process that reads ELF files; after it
 * the caller may close the image. symbols_follow goes on with a later image of the same ledger. It keeps the names that
 * were found, but looks up two kinds of names again: those of code in no file, and those of functions in files that
 * could not be read. It returns false if the image has other frames, if too many texts were collected, or if there is
 * no memory. After that, only symbols_end may be called. */
void symbols_rest(struct symbols *symbols);
bool symbols_follow(struct symbols *symbols, const struct image *image);
/* The names of a frame; never NULL. */
const struct named_frame *symbols_frame(struct symbols *symbols, uint32_t id);

/* One function of a frame. It is shown on a line of its own. */
struct symbol_line {
    uint32_t frame, symbol;
};
/* Returns the line that represents all lines with the same module, function, file and line number. It is the first of
 * these lines that symbols_alike was called with. A line without a function represents only itself. */
struct symbol_line symbols_alike(struct symbols *symbols, struct symbol_line line);

/* Finds modules among the frames that were looked up: those in which functions are known, but lines are not. Writes at
 * most `most` names, and returns the number of all such modules. */
size_t symbols_without_lines(const struct symbols *symbols, const char **names, size_t most);

/* Returns an array by frame id: 1 if the name of the frame's module, or of one of its functions or files, contains the
 * text, otherwise 0. `any_case`: capital and small letters are the same. Looks up all frames. Returns NULL if there is
 * no memory. */
uint8_t *symbols_match(struct symbols *symbols, const char *text, bool any_case);

/* Returns the last name of a path. If this name begins with "__", as in torch/__init__.py, returns the last two
 * names. */
const char *symbols_short_path(const char *path);
/* The text for an unknown function: "libx.so+0x1f0", or "(unknown)" for a Python function. */
enum { SYMBOL_NAMELESS = 320 };
const char *symbol_nameless(const struct named_frame *frame, char name[SYMBOL_NAMELESS]);

/* symbol_text() gives "function  file:line", both shortened to fit into `width` columns. After symbol_text_absolute()
 * (--absolute) it gives whole paths, so that editors can jump to them, and lines may be longer. */
void symbol_text_absolute(void);
bool symbol_text_is_absolute(void);
struct text_line symbol_text(const struct named_frame *frame, const struct symbol *symbol, int width);

#endif
