// While the bytes of a value are written, the value's loop is closed, and a new loop gets the structure that the closed
// loop had. The bytes go to the folder of the closed loop, not to that of the new one.
// build: -Wl,--wrap=state_bytes_in_file,--wrap=state_bytes_in_folder
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "preload/count/account.h"
#include "preload/count/site.h"
#include "preload/ledger/ledger.h"
#include "preload/state/state_bytes.h"
#include "preload/state/state_store.h"

static char first[] = "state-first-XXXXXX", second[] = "state-second-XXXXXX";
static const char *prefix;
static int64_t loop, next_loop;
static bool is_written;
static char written_to[PATH_MAX];

int __wrap_state_bytes_in_file(struct state_bytes *self, const struct state_source *source, const char *directory);
int __wrap_state_bytes_in_folder(struct state_bytes *self, const struct state_source *source, int folder);

static int64_t open_in(const char *name, const char *directory) {
    struct memstow_state_options options = {
        .size = sizeof options, .in_file = 1, .prefix = prefix, .directory = directory};
    return state_open(name, &options, (struct caller){0});
}

/* Another thread runs just before the bytes are written. */
static void replace_loop(void) {
    is_written = true;
    cr_assert_eq(state_close(loop, true), 0);
    next_loop = open_in("next", second);
    cr_assert_gt(next_loop, 0);
}

int __wrap_state_bytes_in_file(struct state_bytes *self, const struct state_source *source, const char *directory) {
    (void)self, (void)source;
    replace_loop();
    snprintf(written_to, sizeof written_to, "%s", directory);
    return -EIO;
}

int __wrap_state_bytes_in_folder(struct state_bytes *self, const struct state_source *source, int folder) {
    char path[64];
    (void)self, (void)source;
    replace_loop();
    snprintf(path, sizeof path, "/proc/self/fd/%d", folder);
    ssize_t length = readlink(path, written_to, sizeof written_to - 1);
    written_to[length > 0 ? length : 0] = 0;
    return -EIO;
}

static void put_while_replaced(void) {
    struct state_header header = {.type = "t", .length = 4096};
    const struct state_source source = {&header, NULL};
    loop = open_in("first", first);
    cr_assert_gt(loop, 0, "%ld", loop);
    cr_assert_eq(state_begin(loop), 1);
    cr_expect_eq(state_put(loop, "x", &source, (struct caller){0}), -EIO);
    cr_assert(is_written);
    cr_expect(strstr(written_to, first), "to %s", written_to);
    cr_expect_eq(state_close(next_loop, false), 0);
}

static void begin(void) {
    static const struct ledger_identity who = {.name = "unit", .exe = "unit", .command = "unit"};
    cr_assert(ledger_begin(&who));
    account_begin();
    site_begin(SNAP_STACKS_NONE, UINT64_MAX, "unit");
    cr_assert(mkdtemp(first) && mkdtemp(second));
}

/* Removes both folders. The first loop's own folder is still in `first`, because state_close was told to keep it. */
static void end(void) {
    char path[128];
    snprintf(path, sizeof path, "%s/p.state/lock", first);
    unlink(path);
    snprintf(path, sizeof path, "%s/p.state", first);
    rmdir(path);
    rmdir(first);
    rmdir(second);
}

Test(state_store, below_its_own_prefix, .init = begin, .fini = end) {
    prefix = "p";
    int before = open("/dev/null", O_RDONLY), after;
    close(before);
    put_while_replaced();
    after = open("/dev/null", O_RDONLY);
    close(after);
    cr_expect_eq(after, before, "a descriptor is left");
}

Test(state_store, in_its_own_directory, .init = begin, .fini = end) { put_while_replaced(); }
