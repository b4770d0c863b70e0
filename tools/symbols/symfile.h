/* symfile.h — functions and lines of addresses in one ELF file with debug information, by elfutils.
 * In: a path, the build id of the file that the process ran, addresses in the file. Out: names, innermost first. The
 * file may be hostile, and elfutils is not safe against that, so symreader.c calls this in a separate process. Nothing
 * is fetched from the network. */
#ifndef MEMSTOW_SYMFILE_H
#define MEMSTOW_SYMFILE_H

#include <stddef.h>
#include <stdint.h>

enum symfile_state {
    SYMFILE_FINE,
    SYMFILE_NAMES_ONLY,  /* no debug information: functions, but no lines and no inlined functions */
    SYMFILE_MISSING,     /* the file cannot be opened */
    SYMFILE_OTHER_BUILD, /* the process ran another build of the file */
    SYMFILE_DAMAGED,
    SYMFILE_NO_MEANS, /* this command lacks descriptors or memory to read the file */
};

/* When elfutils lacks memory, it prints a line on stderr and ends the process with this status. */
enum { SYMFILE_ENDED_FOR_MEMORY = 1 };

struct symfile_name {
    const char *function, *file; /* NULL: not known; valid until the next look-up */
    uint32_t line;               /* 0: not known */
};
enum { SYMFILE_NAMES_MAX = 64 };

/* Opens a file; symfile_state() says how that went. In a state other than FINE and NAMES_ONLY the file gives no names.
 * Returns NULL only if there is no memory. */
struct symfile *symfile_open(const char *path, const uint8_t *build_id, size_t build_id_length);
enum symfile_state symfile_state(const struct symfile *file);
/* The errno that explains SYMFILE_NO_MEANS. */
int symfile_error(const struct symfile *file);
/* Returns the errno that says what this process lacks to open a file of this size. Returns 0 if it lacks nothing. */
int symfile_lack(size_t size);
void symfile_close(struct symfile *file);

/* Finds the names of an address, the innermost first. There are several names if functions were inlined. Returns their
 * number; 0 means that no name is known. */
size_t symfile_lookup(struct symfile *file, uint64_t address, struct symfile_name names[SYMFILE_NAMES_MAX]);

#endif
