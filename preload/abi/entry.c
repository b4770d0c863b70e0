/* entry.c — see entry.h. */
#include "preload/abi/entry.h"

#include <errno.h>
#include <string.h>

#include "preload/ledger/ledger.h"
#include "include/memstow.h"
#include "preload/shared/os.h"
#include "preload/base/seal.h"

static __thread const char *last_error __attribute__((tls_model("initial-exec")));

EXPORTED const char *memstow_error(void) { return last_error ? last_error : ""; }

int64_t entry_fails(int64_t code, const char *why) {
    last_error = why;
    return code;
}

int64_t entry_not_tracked(void) { return entry_fails(-ENODEV, "the process keeps no ledger"); }

int64_t entry_result(int64_t result) {
    static const struct {
        int64_t code;
        const char *why;
    } known[] = {
        {-ENOENT, "no such owner"},
        {-ENOMEM, "no memory for the library's own tables"},
        {-EBUSY, "another thread has held a lock of memstow's for too long"},
        {-ENOSPC, "there are 2^20 owners already"},
        {-EINVAL, "an argument makes no sense"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].code == result) return entry_fails(result, known[i].why);
    return result < 0 ? entry_fails(result, "the call failed; only its result (-errno) says why") : result;
}

/* os_peek or os_poke. */
typedef bool kernel_copy(void *to, const void *from, size_t length);

/* The kernel copies, and finds out whether the pointer is valid. In two cases the pointer is trusted: in a sandbox
 * (seccomp), where the kernel must not be asked; and on a system where the kernel cannot copy even our own memory
 * (os_peek). */
static bool copy_checked(kernel_copy *copy, void *to, const void *from, size_t length) {
    char own = 0, probe;
    if (seal_settles()) {
        if (copy(to, from, length)) return true;
        if (copy(&probe, &own, sizeof own)) return false;
    } else if (!seal_is_for_good()) {
        return false;
    }
    memcpy(to, from, length);
    return true;
}

bool entry_in(void *to, const void *from, size_t length) { return from && copy_checked(os_peek, to, from, length); }

bool entry_out(void *to, const void *from, size_t length) { return to && copy_checked(os_poke, to, from, length); }

/* Reads page by page, because a page is readable as a whole or not at all. */
bool entry_text(char *to, size_t capacity, const char *from) {
    size_t done = 0;
    to[0] = 0;
    while (from && done < capacity - 1) {
        size_t part = OS_PAGE - (uintptr_t)(from + done) % OS_PAGE;
        if (part > capacity - 1 - done) part = capacity - 1 - done;
        if (!entry_in(to + done, from + done, part)) return false;
        if (memchr(to + done, 0, part)) return true;
        done += part;
        to[done] = 0;
    }
    return true;
}

int64_t entry_size(const void *structure, uint32_t least, uint32_t most) {
    uint32_t size = 0;
    if (!entry_in(&size, structure, sizeof size)) return entry_fails(-EFAULT, "the structure cannot be read");
    if (size < least) return entry_fails(-EINVAL, "the structure's first field, its size, is too small");
    return size < most ? size : most;
}
