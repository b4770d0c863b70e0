/* A hook that brings memory back ignores whether an earlier move was cancelled, and by whom. */
#include <criterion/criterion.h>
#include <sys/mman.h>

#include "preload/stow/stow_table.h"
#include "preload/stow/stow_work.h"

Test(stow_work, a_hook_looks_for_the_end_of_no_move) {
    enum { PAGE = 4096 };
    struct work asked = {.asked_by_hook = true};
    uint64_t *gone = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stow_work_current.end = (struct move_end){gone, 0};
    munmap(gone, PAGE);
    cr_assert(stow_work_begin(&asked, PAGE, 2 * PAGE));
    stow_table_lock();
    stow_work_end(&asked, PAGE);
    cr_assert_eq(asked.piece.refusal, STOW_DONE);
}

Test(stow_work, a_move_that_is_to_end_begins_no_chunk) {
    uint64_t ended = 7;
    struct work one = {0}, other = {0};
    stow_work_current.end = (struct move_end){&ended, 7};
    cr_assert_not(stow_work_begin(&one, 0, 4096));
    cr_assert_eq(one.piece.refusal, STOW_CANCELLED);
    stow_work_current.end.value = 8;
    cr_assert(stow_work_begin(&other, 0, 4096), "another's end");
    stow_table_lock();
    stow_work_end(&other, 4096);
}
