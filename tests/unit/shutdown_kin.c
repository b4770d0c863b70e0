// Which processes are kin, on a system with many processes. Whatever their relations, the number of steps grows only in
// proportion to the number of processes.
// build: -fsanitize-coverage=trace-pc -Wl,--wrap=os_open,--wrap=os_read,--wrap=os_each_name,--wrap=os_pid
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "preload/shutdown/shutdown_kin.c"

#include "kin_system.h"

enum { FEW = 300, TIMES = 200 };

/* --- counting steps: a step is one basic block of this file or of shutdown_kin.c --- */

static uint64_t steps;

NOT_COUNTED void __sanitizer_cov_trace_pc(void);
NOT_COUNTED void __sanitizer_cov_trace_pc(void) { steps++; }

static bool was_visited[1 << 17];
static uint32_t visited;

static void visit(void *context, const struct shutdown_relative *relative) {
    (void)context;
    was_visited[relative->pid] = true;
    visited++;
}

static uint64_t steps_of_look(void) {
    uint64_t before = steps;
    visited = 0;
    memset(was_visited, 0, sizeof was_visited);
    cr_assert_eq(shutdown_kin_look(NULL, 0, visit, NULL), 0);
    return steps - before;
}

/* --- many --- */

static uint64_t steps_of_strangers(uint32_t count) {
    begin();
    for (uint32_t i = 0; i < count; i++) add(SELF + 1 + i, 1, SELF + 1 + i, SELF + 1 + i, START + i);
    uint64_t taken = steps_of_look();
    cr_assert_eq(visited, 0);
    return taken;
}

/* Each process has a lower pid than its parent, as after the pids wrapped around. So one pass in order of pids cannot
 * find all of them. */
static uint64_t steps_of_chain(uint32_t count) {
    begin();
    for (uint32_t i = 0; i < count; i++) add(SELF - count + i, SELF - count + i + 1, 1, 1, START + 1);
    uint64_t taken = steps_of_look();
    cr_assert_eq(visited, count);
    return taken;
}

/* Returns the steps of a search among processes whose group leaders have ended. The search looks for those leaders
 * among the processes that it found earlier. */
static uint64_t steps_of_orphans(uint32_t count) {
    begin();
    for (uint32_t i = 0; i < KNOWN_MOST; i++) add(SELF + 1 + i, SELF, 1, 1, START + 1);
    steps_of_look();
    all_count = 1;
    for (uint32_t i = 0; i < count; i++) add(SELF + 2000 + i, 1, SELF + 1 + i % KNOWN_MOST, 1, START + 2);
    uint64_t taken = steps_of_look();
    cr_assert_eq(visited, count);
    return taken;
}

Test(shutdown_kin, steps_grow_as_the_processes_do) {
    uint64_t (*const shapes[])(uint32_t count) = {steps_of_strangers, steps_of_chain, steps_of_orphans};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        uint64_t some = shapes[i](1500), many = shapes[i](12000);
        cr_assert_lt(many, 12 * some, "shape %zu: %lu steps, then %lu of eight times as many", i, some, many);
        cr_assert_lt(many, UINT64_C(12000) * 2000, "shape %zu: %lu steps", i, many);
    }
}

/* --- any --- */

static bool names_kin(uint32_t number, const bool *kin) { return number != SELF && kin[number]; }

/* Applies the rule in shutdown_kin.h once to each process. Returns whether this added a process to `kin`. */
static bool expect_more(bool *kin) {
    bool more = false;
    for (uint32_t i = 1; i < all_count; i++) {
        const struct one *one = &all[i];
        int parent = place_in_all(one->parent);
        if (kin[one->pid] || one->start < START) continue;
        bool started = parent >= 0 && kin[one->parent] && all[parent].start <= one->start;
        bool own = (one->group == SELF || one->session == SELF) && one->parent != all[0].parent;
        kin[one->pid] = started || own || names_kin(one->group, kin) || names_kin(one->session, kin);
        more |= kin[one->pid];
    }
    return more;
}

static uint32_t any_pid(void) { return SELF - FEW + (uint32_t)rand() % (2 * FEW); }

Test(shutdown_kin, those_are_found_that_are_kin) {
    static bool kin[1 << 17];
    srand(1);
    for (int time = 0; time < TIMES; time++) {
        memset(kin, 0, sizeof kin);
        kin[SELF] = true;
        begin();
        for (uint32_t pid = SELF - FEW; pid < SELF + FEW; pid++) {
            bool there = pid != SELF && rand() % 2, leads = rand() % 8;
            if (there) add(pid, any_pid(), leads ? pid : any_pid(), leads ? pid : any_pid(), START - 2 + rand() % 9);
        }
        while (expect_more(kin)) continue;
        steps_of_look();
        for (uint32_t i = 1; i < all_count; i++)
            cr_assert_eq(was_visited[all[i].pid], kin[all[i].pid], "time %d: %u", time, all[i].pid);
    }
}
