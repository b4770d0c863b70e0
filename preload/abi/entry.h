/* entry.h — what all entry points of memstow.h share: copies of arguments, and the reason why a call failed.
 * In: pointers of the program, which may lead nowhere. Out: copies, or an error. Each thread has its own last reason,
 * which memstow_error returns. */
#ifndef MEMSTOW_ENTRY_H
#define MEMSTOW_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

#define EXPORTED __attribute__((visibility("default")))

/* Notes `why`, so that memstow_error returns it, and returns `code`. `why` is not copied, so it must stay valid. */
int64_t entry_fails(int64_t code, const char *why);
/* Returns -ENODEV, and notes that the process keeps no ledger. */
int64_t entry_not_tracked(void);
/* Returns `result` unchanged. If it is -errno, notes the reason. */
int64_t entry_result(int64_t result);

/* Copies a text of the program, cut to the capacity. NULL counts as "". False: the text cannot be read. */
bool entry_text(char *to, size_t capacity, const char *from);
/* entry_in copies from memory of the program, entry_out to memory of the program. They return false in these cases:
 * - The program's pointer is NULL, or its memory cannot be read or written.
 * - The kernel must not be asked whether the pointer is valid, because a thread is on its way into a sandbox (seccomp),
 *   and the wait for that thread was too long (seal_settles). */
bool entry_in(void *to, const void *from, size_t length);
bool entry_out(void *to, const void *from, size_t length);
/* Reads the size of the program's structure from its first field. Returns that size, but at most `most`. -EFAULT: the
 * size cannot be read; -EINVAL: it is smaller than `least`. The reason is noted. */
int64_t entry_size(const void *structure, uint32_t least, uint32_t most);

#pragma GCC visibility pop

#endif
