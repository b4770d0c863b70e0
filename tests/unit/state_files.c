// A folder of values is opened with few comparisons for each name, however many there are. Files that its manifest does
// not name are removed.
// build: -Wl,--wrap=os_decimal
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
