// A folder of values is opened with few comparisons for each name, however many there are. Files that its manifest does
// not name are removed. A manifest that cannot be flushed, or that is too large to be read again, does not replace the
// last one.
// build: -Wl,--wrap=os_decimal -Wl,--wrap=os_call6
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/shared/os.h"
#include "preload/state/state_files.h"

enum { VALUES = 3000, LEFT_OVER = 100, LOOKS_MOST = 3 };

static char directory[] = "state-files-XXXXXX", path[200];
static unsigned long looks; /* each name of a file contains one number */

char *__real_os_decimal(char *to, uint64_t number);
char *__wrap_os_decimal(char *to, uint64_t number);
char *__wrap_os_decimal(char *to, uint64_t number) {
    looks++;
    return __real_os_decimal(to, number);
}

static const char *path_of(unsigned i, unsigned generation) {
    snprintf(path, sizeof path, "%s/many.state/value-%u.%u.value", directory, i, generation);
    return path;
}

static void make_value(unsigned i, unsigned generation) {
    int fd = open(path_of(i, generation), O_WRONLY | O_CREAT, 0600);
    cr_assert_geq(fd, 0);
    close(fd);
}

static void write_manifest(const struct state_files *files) {
    struct state_manifest *manifest = calloc(1, sizeof *manifest + VALUES * sizeof *manifest->entries);
    cr_assert_not_null(manifest);
    manifest->count = VALUES;
    manifest->generation = 7;
    for (unsigned i = 0; i < VALUES; i++) {
        snprintf(manifest->entries[i].id, sizeof manifest->entries[i].id, "value-%u", i);
        manifest->entries[i].generation = 7;
        make_value(i, 7);
    }
    cr_assert_eq(state_files_write(files, manifest), 0);
    free(manifest);
}

Test(state_files, opening_looks_at_each_name_a_few_times) {
    struct state_files files;
    struct state_manifest *manifest;
    uint64_t length;
    cr_assert_not_null(mkdtemp(directory));
    cr_assert_eq(state_files_open(&files, directory, "many"), 0);
    cr_assert_eq(state_files_lock(&files), 0);
    write_manifest(&files);
    for (unsigned i = 0; i < LEFT_OVER; i++) make_value(i, 6);
    looks = 0;
    cr_assert_eq(state_files_read(&files, &manifest, &length), 0);
    cr_assert_lt(looks, LOOKS_MOST * VALUES, "%lu looks for %d values", looks, VALUES);
    cr_assert_eq(manifest->count, VALUES);
    for (unsigned i = 0; i < VALUES; i++) cr_assert_eq(access(path_of(i, 7), F_OK), 0, "value %u is gone", i);
    for (unsigned i = 0; i < LEFT_OVER; i++) cr_assert_neq(access(path_of(i, 6), F_OK), 0, "value %u is left over", i);
    os_unmap(manifest, length);
    state_files_close(&files, true);
    cr_assert_eq(rmdir(directory), 0);
}

/* --- the last flush fails --- */

static bool cannot_exchange, cannot_undo;
static int flushes_left = 1000;

long __real_os_call6(long number, long a, long b, long c, long d, long e, long f);
long __wrap_os_call6(long number, long a, long b, long c, long d, long e, long f);
long __wrap_os_call6(long number, long a, long b, long c, long d, long e, long f) {
    if (number == SYS_renameat2 && cannot_exchange) return -EINVAL;
    if (cannot_undo && flushes_left < 0 && (number == SYS_renameat2 || number == SYS_unlinkat)) return -EROFS;
    if (number == SYS_fsync && flushes_left-- <= 0) return -EIO;
    return __real_os_call6(number, a, b, c, d, e, f);
}

static struct state_files failing;

static int write_generation(uint64_t generation, int flushes) {
    struct state_manifest manifest = {.generation = generation};
    flushes_left = flushes;
    int error = state_files_write(&failing, &manifest);
    flushes_left = 1000;
    return error;
}

static uint64_t generation_on_disk(void) {
    struct state_manifest *manifest;
    uint64_t length, generation = 0;
    cr_assert_eq(state_files_read(&failing, &manifest, &length), 0);
    if (!manifest) return 0;
    generation = manifest->generation;
    os_unmap(manifest, length);
    return generation;
}

static bool is_there(const char *name) {
    snprintf(path, sizeof path, "%s/failing.state/%s", directory, name);
    return access(path, F_OK) == 0;
}

static void open_failing(void) {
    cr_assert_not_null(mkdtemp(directory));
    cr_assert_eq(state_files_open(&failing, directory, "failing"), 0);
    cr_assert_eq(state_files_lock(&failing), 0);
}

static void close_failing(void) {
    cr_expect(!is_there("manifest.new"));
    state_files_close(&failing, true);
    cr_expect_eq(rmdir(directory), 0);
}

enum { ALL = 3 }; /* a commit flushes three things: the names of the values' files, the manifest, the manifest's name */

Test(state_files, a_flush_that_fails_is_an_error, .init = open_failing, .fini = close_failing) {
    for (int flushes = 0; flushes < ALL; flushes++) {
        cr_expect_eq(write_generation(1, flushes), -EIO, "after %d flushes", flushes);
        cr_expect(!is_there("manifest") && !is_there("manifest.new"), "after %d flushes", flushes);
    }
    cr_assert_eq(write_generation(1, ALL), 0);
    for (int flushes = 0; flushes < ALL; flushes++) {
        cr_expect_eq(write_generation(2, flushes), -EIO, "after %d flushes", flushes);
        cr_expect(!is_there("manifest.new"), "after %d flushes", flushes);
        cr_expect_eq(generation_on_disk(), 1, "after %d flushes", flushes);
    }
    cr_assert_eq(write_generation(2, ALL), 0);
    cr_expect_eq(generation_on_disk(), 2);
}

/* If names cannot be exchanged, the new manifest cannot be undone, so it is the valid one. */
Test(state_files, names_that_cannot_be_exchanged, .init = open_failing, .fini = close_failing) {
    cannot_exchange = true;
    cr_assert_eq(write_generation(1, ALL), 0);
    cr_expect_eq(write_generation(2, ALL - 1), 0);
    cr_expect_eq(generation_on_disk(), 2);
    cr_expect_eq(write_generation(3, ALL), 0);
    cr_expect_eq(generation_on_disk(), 3);
}

/* The last flush fails, and the new manifest cannot be removed either. It stays, so its files must stay, too. */
Test(state_files, a_disk_that_cannot_undo, .init = open_failing, .fini = close_failing) {
    cannot_undo = true;
    cr_expect_eq(write_generation(1, ALL - 1), 0);
    cr_expect_eq(generation_on_disk(), 1);
    cr_expect_eq(write_generation(2, ALL - 1), 0);
    cr_expect_eq(generation_on_disk(), 2);
}

/* A manifest of more than 256 MiB is refused. The test needs little memory, because nothing touches the pages of the
 * entries. */
Test(state_files, a_manifest_that_is_too_large, .init = open_failing, .fini = close_failing) {
    enum { MOST = 256 << 20 };
    const uint32_t count = (MOST - sizeof(struct state_manifest)) / sizeof(struct state_entry) + 1;
    const uint64_t bytes = sizeof(struct state_manifest) + count * sizeof(struct state_entry);
    struct state_manifest *manifest = os_map(bytes);
    cr_assert_not_null(manifest);
    manifest->count = count;
    cr_assert_eq(write_generation(1, ALL), 0);
    cr_expect_eq(state_files_write(&failing, manifest), -E2BIG);
    cr_expect_eq(generation_on_disk(), 1);
    os_unmap(manifest, bytes);
}
