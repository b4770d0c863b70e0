// A range of a file mapping is made ready by threads that run ahead. While they are paused, they make nothing ready.
// After that they go on to the end.
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "preload/stow/stow.h"
#include "preload/stow/stow_ahead.h"

enum { SPAN = AHEAD_MOST, TRIES = 20, LOOKS = 3, PAUSE_MS = 50 };

static void wait_ms(long ms) { nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL); }

static char *map_file(void) {
    FILE *file = tmpfile();
    cr_assert_not_null(file);
    cr_assert_eq(ftruncate(fileno(file), SPAN), 0);
    char *p = mmap(NULL, SPAN, PROT_READ | PROT_WRITE, MAP_PRIVATE, fileno(file), 0);
    cr_assert_neq(p, MAP_FAILED);
    fclose(file);
    return p;
}

static uint64_t made_in(const struct stow_ahead *ahead) { return __atomic_load_n(&ahead->made, __ATOMIC_ACQUIRE); }

/* Waits until a few looks in a row see no progress. Returns what is made by then. */
static uint64_t made_at_rest(const struct stow_ahead *ahead) {
    uint64_t made = made_in(ahead);
    for (int same = 0; same < LOOKS;) {
        wait_ms(PAUSE_MS);
        uint64_t now = made_in(ahead);
        same = now == made ? same + 1 : 0;
        made = now;
    }
    return made;
}

/* Pauses the threads as soon as they have begun. Returns whether they stopped before they had made everything ready. */
static bool is_paused_in_time(char *p) {
    struct stow_ahead ahead;
    stow_ahead_begin(&ahead, (uint64_t)p, SPAN, 0, 0, false);
    stow_ahead_pause(&ahead);
    uint64_t made = made_at_rest(&ahead);
    stow_ahead_resume(&ahead);
    cr_assert_eq(stow_ahead_wait(&ahead, 0, SPAN), SPAN);
    stow_ahead_end(&ahead);
    return made != UINT64_MAX;
}

Test(stow_ahead, pauses_and_goes_on) {
    for (int i = 0; i < TRIES; i++) {
        char *p = map_file();
        bool in_time = is_paused_in_time(p);
        munmap(p, SPAN);
        if (in_time) return;
    }
    cr_assert(false, "in %d tries the threads never stopped before they had made everything ready", TRIES);
}

Test(stow_ahead, makes_pages_the_process_s_own) {
    struct stow_ahead ahead;
    char *p = map_file();
    stow_ahead_begin(&ahead, (uint64_t)p, SPAN, 0, 0, false);
    cr_assert_eq(stow_ahead_wait(&ahead, 0, SPAN), SPAN);
    cr_assert_eq(ahead.refusal, STOW_DONE);
    stow_ahead_end(&ahead);
    int fd = open("/proc/self/pagemap", O_RDONLY);
    for (uint64_t at = 0; at < SPAN; at += 4096) {
        uint64_t entry;
        cr_assert_eq(pread(fd, &entry, sizeof entry, (off_t)(((uint64_t)p + at) / 4096 * sizeof entry)), 8);
        cr_assert_eq(entry >> 61 & 5, 4, "page %lu is not there, or is the file's", (unsigned long)(at / 4096));
    }
    close(fd);
    munmap(p, SPAN);
}
