/* Requests from outside: they keep their order, each goes to one answerer, and each answer to its client. A forked
 * child has none of them. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/control/requests.h"
#include "preload/owners/mover.h"

static int64_t result;
static char text[256];

static enum request_state look(int64_t ticket) { return requests_look((uint64_t)ticket, &result, text); }

Test(requests, come_in_order_and_go_back) {
    struct memstow_request got;
    int64_t first = requests_add(MEMSTOW_ASK_STOW, 7, "one"), second = requests_add(MEMSTOW_ASK_TRIGGER, 0, "two");
    cr_assert(first > 0 && second == first + 1);
    cr_assert_eq(look(first), REQUEST_WAITING);
    cr_assert(requests_take(&got) && got.ticket == (uint64_t)first && got.kind == MEMSTOW_ASK_STOW && got.owner == 7);
    cr_assert_str_eq(got.text, "one");
    cr_assert_eq(got.reason, 0);
    cr_assert_eq(look(first), REQUEST_TAKEN);
    cr_assert(requests_take(&got) && got.ticket == (uint64_t)second && got.reason == MEMSTOW_REQUEST);
    cr_assert_not(requests_take(&got));
    cr_assert_eq(requests_done((uint64_t)second, -ENOSPC, "no room"), 0);
    cr_assert_eq(requests_done((uint64_t)second, 0, ""), -ENOENT, "once");
    cr_assert_eq(look(second), REQUEST_DONE);
    cr_assert_eq(result, -ENOSPC);
    cr_assert_str_eq(text, "no room");
    cr_assert_eq(look(second), REQUEST_NONE, "told once");
    cr_assert_eq(look(first), REQUEST_TAKEN);
}

Test(requests, are_the_programs_once_it_asks) {
    struct memstow_request got;
    int64_t ticket = requests_add(MEMSTOW_ASK_RELEASE, 1, "");
    cr_assert(requests_for_worker());
    cr_assert_eq(requests_next(&got, REQUESTS_OLD, 0), 1);
    cr_assert_eq(got.ticket, (uint64_t)ticket);
    requests_add(MEMSTOW_ASK_RELEASE, 1, "");
    cr_assert_not(requests_for_worker());
    cr_assert_not(requests_take(&got));
    cr_assert_eq(requests_next(&got, REQUESTS_OLD, 0), 1);
    cr_assert_eq(requests_next(&got, REQUESTS_OLD, 0), 0);
    cr_assert_eq(requests_next(&got, REQUESTS_OLD, 5), 0, "after waiting");
}

/* A program may answer some kinds of requests, and leave the others to memstow. */
Test(requests, of_some_kinds_are_the_programs) {
    enum { LOOKS = 1 << MEMSTOW_ASK_COLLECT | 1 << MEMSTOW_ASK_HOLDERS };
    struct memstow_request got;
    cr_assert_eq(requests_add(MEMSTOW_ASK_COLLECT, 0, ""), -ENOTSUP, "nobody answers it");
    cr_assert_eq(requests_next(&got, LOOKS, 0), 0);
    int64_t stow = requests_add(MEMSTOW_ASK_STOW, 1, ""), collect = requests_add(MEMSTOW_ASK_COLLECT, 0, "");
    int64_t holders = requests_add(MEMSTOW_ASK_HOLDERS, 0, "find 0");
    cr_assert(stow > 0 && collect > 0 && holders > 0);
    cr_assert_eq(requests_next(&got, LOOKS, 0), 1);
    cr_assert(got.ticket == (uint64_t)collect && got.kind == MEMSTOW_ASK_COLLECT);
    cr_assert(requests_take(&got) && got.ticket == (uint64_t)stow, "the worker has the others");
    cr_assert_not(requests_for_worker());
    cr_assert_eq(requests_next(&got, REQUESTS_OLD, 0), 0, "who asks as before gets what there was before");
    cr_assert_eq(requests_next(&got, LOOKS, 0), 1);
    cr_assert_eq(got.ticket, (uint64_t)holders);
    cr_assert_str_eq(got.text, "find 0");
}

Test(requests, are_bounded) {
    struct memstow_request got;
    int64_t tickets[REQUESTS_MOST];
    for (int i = 0; i < REQUESTS_MOST; i++) cr_assert((tickets[i] = requests_add(MEMSTOW_ASK_STOW, 1, "")) > 0);
    cr_assert_eq(requests_add(MEMSTOW_ASK_STOW, 1, ""), -EBUSY);
    cr_assert(requests_take_back((uint64_t)tickets[3]));
    cr_assert_not(requests_take_back((uint64_t)tickets[3]));
    cr_assert(requests_add(MEMSTOW_ASK_STOW, 1, "") > 0);
    cr_assert(requests_take(&got));
    cr_assert_not(requests_take_back((uint64_t)tickets[0]), "it has begun");
    requests_leave((uint64_t)tickets[0]);
    cr_assert_eq(requests_add(MEMSTOW_ASK_STOW, 1, ""), -EBUSY, "it is at it still");
    cr_assert_eq(requests_done((uint64_t)tickets[0], 0, ""), 0);
    cr_assert_eq(look(tickets[0]), REQUEST_NONE, "nobody waits");
    cr_assert(requests_add(MEMSTOW_ASK_STOW, 1, "") > 0);
    for (int i = 1; i < REQUESTS_MOST; i++) requests_leave((uint64_t)tickets[i]);
    cr_assert(requests_add(MEMSTOW_ASK_STOW, 1, "") > 0);
}

Test(requests, memory_that_is_short_is_told_once) {
    struct memstow_request got;
    cr_assert_not(requests_pass_on(MEMSTOW_PRESSURE, "full", 1 << 20), "memstow answers by itself");
    cr_assert_eq(requests_next(&got, REQUESTS_OLD, 0), 0);
    cr_assert(requests_pass_on(MEMSTOW_PRESSURE, "full", 1 << 20));
    cr_assert(requests_pass_on(MEMSTOW_PRESSURE, "full", 2 << 20), "it knows already");
    cr_assert_eq(requests_next(&got, REQUESTS_OLD, 0), 1);
    cr_assert(got.kind == MEMSTOW_ASK_TRIGGER && got.reason == MEMSTOW_PRESSURE && got.needed == 1 << 20);
    cr_assert_str_eq(got.text, "full");
    cr_assert_eq(requests_next(&got, REQUESTS_OLD, 0), 0);
}

static bool ends(uint32_t owner, bool out) {
    struct move_end end;
    return requests_end(owner, out, &end) && move_is_ended(end);
}

static uint64_t taken(uint32_t kind, uint32_t owner) {
    struct memstow_request got;
    requests_add(kind, owner, "");
    cr_assert_eq(requests_next(&got, REQUESTS_OLD, 0), 1);
    return got.ticket;
}

Test(requests, taken_back_end_what_is_moved_for_them) {
    struct memstow_request got;
    uint64_t back = taken(MEMSTOW_ASK_RESTORE, 1), out = taken(MEMSTOW_ASK_STOW, 2), other = taken(MEMSTOW_ASK_STOW, 3);
    cr_assert(!ends(1, false) && !ends(2, true));
    struct move_end at_work;
    cr_assert_eq(requests_end(1, false, &at_work), back);
    requests_cancel(back);
    cr_assert(move_is_ended(at_work) && ends(1, false));
    cr_assert(!ends(1, true) && !ends(2, false) && !ends(2, true), "another direction, another owner");
    requests_cancel(out);
    requests_cancel(other);
    cr_assert_eq(requests_done(other, 0, ""), 0);
    cr_assert(ends(2, true) && !ends(3, true), "the answer to one leaves the other");
    requests_leave(back);
    cr_assert(move_is_ended(at_work) && !ends(1, false), "it ends, and what comes later is the program's own");
    requests_cancel(other);
    cr_assert_not(ends(3, true), "it has been answered");
    uint64_t all = taken(MEMSTOW_ASK_TRIGGER, 0);
    requests_cancel(all);
    cr_assert(ends(1, true) && ends(3, true) && !ends(3, false));
    requests_add(MEMSTOW_ASK_STOW, 4, "");
    cr_assert_eq(requests_next(&got, REQUESTS_OLD, 0), 1);
    requests_cancel(got.ticket);
    cr_assert_eq(requests_done(all, 0, ""), 0);
    cr_assert(!ends(3, true) && ends(4, true));
}

static bool worker_is_ended(void) {
    struct mover self = {.owner = 1, .out = true};
    mover_begin(&self);
    mover_leave(&self, 0);
    return move_is_ended(self.end);
}

/* A cancel of a request that the worker has taken ends the worker's work. A cancel of another request does not, even if
 * the worker has worked on that other request before. */
Test(requests, of_the_worker_end_its_work_for_them_alone) {
    struct memstow_request got;
    int64_t first = requests_add(MEMSTOW_ASK_STOW, 1, ""), second = requests_add(MEMSTOW_ASK_STOW, 2, "");
    mover_begin_work();
    cr_assert(requests_take(&got) && got.ticket == (uint64_t)first);
    requests_cancel((uint64_t)second);
    cr_assert_not(worker_is_ended(), "nobody has taken it");
    cr_assert_eq(requests_done((uint64_t)first, 0, ""), 0);
    mover_begin_work();
    cr_assert(requests_take(&got) && got.ticket == (uint64_t)second);
    requests_cancel((uint64_t)first);
    cr_assert_not(worker_is_ended(), "it has been answered");
    requests_cancel((uint64_t)second);
    cr_assert(worker_is_ended());
    mover_end_work();
}

/* A cancel from outside ends the move of its own request, not of a later request in the same entry. The move may
 * continue on another thread than the one that took the request. */
Test(requests, end_what_began_for_them_and_nothing_that_began_before) {
    struct move_end before, now, none;
    uint64_t first = taken(MEMSTOW_ASK_STOW, 1);
    cr_assert_eq(requests_end(1, true, &before), first);
    cr_assert_eq(requests_done(first, 0, ""), 0);
    requests_leave(first);
    uint64_t next = taken(MEMSTOW_ASK_STOW, 2);
    cr_assert_eq(requests_end(2, true, &now), next);
    cr_assert_eq(now.word, before.word, "the same place");
    requests_cancel(first);
    cr_assert_not(move_is_ended(now));
    requests_cancel(next);
    cr_assert(move_is_ended(now));
    cr_assert_not(move_is_ended(before));
    cr_assert_eq(requests_end(2, false, &none), 0);
    cr_assert_not(move_is_ended(none));
}

/* A cancelled request stays cancelled when another request gets its entry. */
Test(requests, stay_ended) {
    struct move_end before, now;
    uint64_t first = taken(MEMSTOW_ASK_STOW, 1);
    cr_assert_eq(requests_end(1, true, &before), first);
    requests_cancel(first);
    cr_assert_eq(requests_done(first, 0, ""), 0);
    requests_leave(first);
    cr_assert_eq(requests_end(2, true, &now), 0);
    taken(MEMSTOW_ASK_STOW, 2);
    cr_assert_neq(requests_end(2, true, &now), 0);
    cr_assert_eq(now.word, before.word, "the same place");
    cr_assert(move_is_ended(before));
    cr_assert_not(move_is_ended(now));
}

Test(requests, of_the_worker_are_not_ended_here) {
    struct memstow_request got;
    requests_add(MEMSTOW_ASK_STOW, 1, "");
    cr_assert(requests_take(&got));
    requests_cancel(got.ticket);
    cr_assert_not(ends(1, true));
}

static void *ask_later(void *nothing) {
    usleep(50000);
    requests_add(MEMSTOW_ASK_STOW, 9, "");
    return nothing;
}

Test(requests, wake_who_waits, .timeout = 60) {
    struct memstow_request got;
    pthread_t thread;
    pthread_create(&thread, NULL, ask_later, NULL);
    cr_assert_eq(requests_next(&got, REQUESTS_OLD, 50000), 1);
    cr_assert_eq(got.owner, 9);
    pthread_join(thread, NULL);
}

Test(requests, are_the_parents_after_a_fork) {
    struct memstow_request got;
    int status;
    int64_t ticket = requests_add(MEMSTOW_ASK_STOW, 1, "");
    cr_assert_eq(requests_next(&got, REQUESTS_OLD, 0), 1);
    requests_add(MEMSTOW_ASK_STOW, 2, "");
    pid_t child = fork();
    if (!child) {
        bool none = requests_done((uint64_t)ticket, 0, "") == -ENOENT && !requests_take(&got);
        bool new = requests_add(MEMSTOW_ASK_STOW, 3, "") == 1 && requests_take(&got) && got.owner == 3;
        _exit(none && new ? 0 : 1);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_eq(status, 0);
    cr_assert_eq(requests_done((uint64_t)ticket, 0, ""), 0);
}
