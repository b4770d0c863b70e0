/* owners_mark.c — the records of what owners have at each mark of the history. Two threads may write such records at
 * the same time, each for its own mark. */
#include <criterion/criterion.h>

/* Test doubles: one model with as many bytes as the test says, and a list in place of the ledger's records. */
#define owner_count double_count
#define owner_kind double_kind
#define owned_of_all double_of_all
#define owned_let_go double_let_go
#define history_note_owner double_note
#include "preload/owners/owners_mark.c"

enum { MODEL = 1, OWNERS };
static struct owned has[OWNERS];
static struct snap_owner_mark notes[8];
static size_t note_count;

uint32_t double_count(void) { return OWNERS; }
uint32_t double_kind(uint32_t owner) { return owner == MODEL ? MEMSTOW_MODEL : 0; }
struct owned *double_of_all(uint32_t count) {
    (void)count;
    return has;
}
void double_let_go(struct owned *all, uint32_t count) {
    (void)all;
    (void)count;
}
bool double_note(const struct snap_owner_mark *note) {
    notes[note_count++] = *note;
    return true;
}

static void note(uint64_t time_ns, uint64_t live) {
    has[MODEL].live_bytes = live;
    note_owners(time_ns);
}

static void expect_last(uint64_t time_ns, uint64_t live) {
    cr_assert_gt(note_count, 0);
    cr_expect_eq(notes[note_count - 1].time_ns, time_ns);
    cr_expect_eq(notes[note_count - 1].live, live);
}

Test(owners_mark, only_a_change_is_noted) {
    note(100, 5);
    expect_last(100, 5);
    note(200, 5);
    cr_expect_eq(note_count, 1);
    note(300, 6);
    expect_last(300, 6);
}

/* Thread A marks at 100 and adds up 5 bytes. Before A notes them, thread B marks at 200, adds up 6 bytes and notes
 * them. At 300 there are 5 bytes again, which must be noted. */
Test(owners_mark, a_thread_that_comes_late_does_not_hide_the_next_change) {
    note(200, 6);
    note(100, 5);
    expect_last(200, 6);
    note(300, 5);
    expect_last(300, 5);
}
