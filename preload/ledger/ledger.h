/* ledger.h — the ledger: a file that the process maps and writes as it goes (snapshot.h is its format).
 * In: requests for sections and records, from all files that count something. Out: memory that survives the process.
 * The ledger's code waits for a lock no longer than lock_wait does, and never leaves a descriptor open. */
#ifndef MEMSTOW_LEDGER_H
#define MEMSTOW_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/shared/os.h"
#include "preload/shared/snapshot.h"

#pragma GCC visibility push(hidden)

/* Describes the process of the ledger. process.c fills it in. The strings must outlive the ledger. */
struct ledger_identity {
    const char *path; /* absolute; NULL: memory only */
    const char *name; /* the name of the program */
    const char *exe;
    const char *command;
    uint8_t run_id[16];
    uint32_t stacks, allocator, flags, fork_depth, exec_generation, header_overhead;
    uint64_t inherited_bytes, sample_bytes;
};

/* The header of the present ledger. While there is no ledger, it is a private scratch header, so writes are always
 * safe. */
extern struct snap_header *ledger_head;

/* Whether this process has begun the present ledger. False in a forked child until the child begins a ledger of its
 * own: until then the present ledger is the parent's, and nothing may be recorded in it. Any code of the library may
 * run in such a child: if a signal handler calls fork, the child goes on with the code that the signal interrupted,
 * before it begins a ledger.
 *
 * The function makes no system call. It reads a page that the kernel wipes in a forked child. Linux before 4.14 does
 * not wipe the page, so there the answer in a child is always true. */
bool ledger_is_ours(void);

/* Makes the file. Where a file is not safe (docs/decisions/0026-ledger-file.md), makes the ledger in memory, with the
 * same layout. False: there is no memory for it, or another copy of this library keeps a ledger of this process. Call
 * it once per process, from one thread. */
bool ledger_begin(const struct ledger_identity *identity);

/* Forgets a ledger that was inherited over fork. It belongs to the parent, which goes on writing to it. */
void ledger_abandon(void);

/* Marks the end, and gives unused space of the file back. A memory-only ledger is written to a file now, if
 * possible. */
void ledger_end(enum snap_state state);

/* Undoes ledger_end if exec failed, because then the process goes on. */
void ledger_resume(void);

/* The file of the ledger; "" when it is in memory only. */
const char *ledger_path(void);

/* Removes the file of the ledger, if the path still leads to that file. For a forked child that is about to exec. */
void ledger_unlink(void);

/* Notes where the library's own memory lies, for the residency report. Call it at the start, at the end, and when the
 * library has got more memory. */
void ledger_note_own_memory(void);

static inline void ledger_lost(enum snap_lost what) {
    __atomic_fetch_add(&ledger_head->lost[what], 1, __ATOMIC_RELAXED);
}

/* Makes a section of `capacity` zeroed records, for a table that finds its records itself. `first`: the number of the
 * first record. NULL: there is no memory. */
void *ledger_section(uint32_t type, uint32_t record_size, uint64_t capacity, uint64_t first);

#pragma GCC visibility pop

#endif
