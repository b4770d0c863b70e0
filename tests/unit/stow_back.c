// A range comes back even if the kernel has no memory for a while in the middle of a step that cannot be undone. At
// that moment the range is unmapped, and only the mover has its content. So the mover tries again, and sleeps in
// between.
// build: -Wl,--wrap=os_call6
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/shared/os.h"
#include "preload/stow/stow.h"
#include "preload/stow/stow_back.h"

enum { LENGTH = 3 << 20, SHORTAGE_MS = 300, ASKED_MOST = 100 };

static char *range;
static uint64_t short_until; /* 0: it has not begun */
static unsigned asked;

long __real_os_call6(long number, long a, long b, long c, long d, long e, long f);
long __wrap_os_call6(long number, long a, long b, long c, long d, long e, long f);

static bool takes_the_range(long number, long a, long d, long e) {
    if (number == SYS_mremap) return d & MREMAP_FIXED && e == (long)range;
    return number == SYS_mmap && d & MAP_FIXED && a == (long)range;
}

/* A double of the kernel: it unmaps the range, and then has no memory for a while. */
long __wrap_os_call6(long number, long a, long b, long c, long d, long e, long f) {
    if (!range || !takes_the_range(number, a, d, e)) return __real_os_call6(number, a, b, c, d, e, f);
    asked++;
    if (!short_until) short_until = os_now() + SHORTAGE_MS * (uint64_t)1000000;
    if (os_now() >= short_until) return __real_os_call6(number, a, b, c, d, e, f);
    __real_os_call6(SYS_munmap, (long)range, b, 0, 0, 0, 0);
    return -ENOMEM;
}

static void map_range(void) {
    FILE *file = tmpfile();
    cr_assert_not_null(file);
    for (unsigned i = 0; i < LENGTH / sizeof i; i++) cr_assert_eq(fwrite(&i, sizeof i, 1, file), 1);
    cr_assert_eq(fflush(file), 0);
    range = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE, fileno(file), 0);
    cr_assert_neq(range, MAP_FAILED);
    fclose(file);
    memset(range + 8192, 7, 4096); /* written to since it was stowed */
}

static bool word_is_right(unsigned i) {
    unsigned word, written = 0x07070707;
    memcpy(&word, range + i * sizeof word, sizeof word);
    return word == (i >= 2048 && i < 3072 ? written : i);
}

static void comes_back(bool mine, bool faults) {
    struct stow_back back;
    map_range();
    if (stow_back_begin(&back, mine, false) || (faults && back.uffd < 0)) cr_skip("no userfaultfd here");
    if (!faults) back.uffd = -1;
    for (uint64_t all = 0, done; all < LENGTH; all += done) {
        short_until = 0;
        asked = 0;
        cr_assert_eq(stow_back_in(&back, (uintptr_t)range + all, LENGTH - all, &done), STOW_DONE);
        if (!all) cr_assert(asked > 2 && asked < ASKED_MOST, "asked %u times in %d ms", asked, SHORTAGE_MS);
    }
    for (unsigned i = 0; i < LENGTH / sizeof i; i++) cr_assert(word_is_right(i), "word %u", i);
    stow_back_end(&back);
}

Test(stow_back, waits_for_memory_while_the_range_is_in_use) { comes_back(false, true); }

Test(stow_back, waits_for_memory_while_nobody_uses_the_range) { comes_back(true, true); }

Test(stow_back, waits_for_memory_without_userfaultfd) { comes_back(true, false); }
