// A reader outside of an iteration gets the committed value while another one is put, moved or abandoned. It gets a
// view of the value's own file, and no copy.
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "preload/owners/owned.h"
#include "preload/state/state_loop.h"
#include "preload/state/state_owner.h"
#include "state_begin.h"

enum { PAGE = 4096 };

static int64_t loop;

static uint32_t put(const char *id, const char *type) {
    struct state_header header = {.length = PAGE};
    const struct state_source source = {&header, NULL};
    strcpy(header.type, type);
    int64_t owner = state_put(loop, id, &source, (struct caller){0});
    cr_assert_gt(owner, 0, "%ld", owner);
    return (uint32_t)owner;
}

/* The number of the file that is mapped at an address. */
static unsigned long file_at(const void *address) {
    char line[512];
    unsigned long start, inode = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%*x %*s %*x %*s %lu", &start, &inode) == 2 && start == (unsigned long)address) break;
    fclose(maps);
    return inode;
}

static void expect_committed(const char *type) {
    struct memstow_state_value value;
    cr_assert_eq(state_get_committed(loop, "x", &value), 0);
    cr_expect_str_eq(value.type, type);
    cr_expect_str_eq(((struct state_header *)value.view)->type, type);
    cr_expect_eq(file_at(value.view), state_loop_known(loop)->committed->data.file.inode);
    ((char *)value.view)[PAGE - 1] = 1; /* the next reader does not see it */
    os_unmap(value.view, value.view_length);
    cr_assert_eq(state_get_committed(loop, "x", &value), 0);
    cr_expect_eq(((char *)value.view)[PAGE - 1], 0);
    os_unmap(value.view, value.view_length);
}

static void begin(void) { loop = state_begin_loop(0); }

TestSuite(state_committed, .init = begin);

Test(state_committed, never_committed) {
    struct memstow_state_value value;
    put("x", "new");
    cr_expect_eq(state_get_committed(loop, "x", &value), -ENOENT);
    cr_expect_eq(state_get_committed(loop + 1, "x", &value), -ENOENT);
}

Test(state_committed, replaced_in_an_iteration) {
    struct memstow_state_value value;
    put("x", "old");
    cr_assert_eq(state_commit(loop), 1);
    expect_committed("old");
    cr_assert_eq(state_begin(loop), 2);
    put("x", "new");
    expect_committed("old");
    cr_assert_eq(state_get(loop, "x", &value), 0);
    cr_expect_str_eq(value.type, "new");
    os_unmap(value.view, value.view_length);
    cr_assert_eq(state_abandon_iteration(loop), 0);
    expect_committed("old");
    cr_assert_eq(state_begin(loop), 2);
    put("x", "new");
    cr_assert_eq(state_commit(loop), 2);
    expect_committed("new");
    cr_assert_eq(state_release(loop, "x"), 0);
    cr_expect_eq(state_get_committed(loop, "x", &value), -ENOENT);
}

Test(state_committed, moved) {
    uint32_t owner = put("x", "old");
    cr_assert_eq(state_commit(loop), 1);
    cr_assert_eq(state_begin(loop), 2);
    put("x", "new");
    int64_t moved = state_owner_store.move(owner, true, (struct move_end){0});
    if (moved == -ENOTSUP) cr_skip_test("no disk here");
    cr_assert_eq(moved, 2 * PAGE, "%ld", moved);
    expect_committed("old");
}
