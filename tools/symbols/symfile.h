/* symfile.h — one ELF file with its debug information → functions and lines of addresses, by elfutils.
 * In: a path, the build id that the process ran, addresses as the file has them. Out: names, innermost first. The file
 * may be hostile, and elfutils is no fortress: symbols.c lets a process of its own call this. It never asks the
 * network. */
#ifndef MEMSTOW_SYMFILE_H
#define MEMSTOW_SYMFILE_H

#include <stddef.h>
#include <stdint.h>

enum symfile_state {
    SYMFILE_FINE,
    SYMFILE_NAMES_ONLY,  /* no debug information: functions, but neither lines nor what was inlined */
    SYMFILE_MISSING,     /* it cannot be opened */
    SYMFILE_OTHER_BUILD, /* it is not what the process ran */
    SYMFILE_DAMAGED,
};

struct symfile_name {
    const char *function, *file; /* NULL: not known; valid until the next look-up */
    uint32_t line;               /* 0: not known */
};
enum { SYMFILE_NAMES_MAX = 64 };

/* Never NULL unless there is no memory; anything but FINE and NAMES_ONLY finds no names. */
struct symfile *symfile_open(const char *path, const uint8_t *build_id, size_t build_id_length);
enum symfile_state symfile_state(const struct symfile *file);
void symfile_close(struct symfile *file);

/* Number of names: more than one where functions are inlined, the innermost first; 0 when nothing is known. */
size_t symfile_lookup(struct symfile *file, uint64_t address, struct symfile_name names[SYMFILE_NAMES_MAX]);

#endif
