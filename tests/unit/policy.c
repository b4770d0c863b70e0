// The tests check which decisions policy_decide makes for owners, in which order it gives them, and what it does with
// the largest numbers. A row of a table is one owner. A test gives owners in one order and expects decisions in
// another.
#include <criterion/criterion.h>
#include <string.h>

#include "preload/shared/policy.h"

enum { NONE = MEMSTOW_NO_POLICY, KEEP = MEMSTOW_KEEP, STOW = MEMSTOW_STOW, FREE = MEMSTOW_FREE, MOST = 64 };
static const uint64_t SECOND = 1000000000;

/* An owner for a row of a table. By default it is a live model that has 100 bytes to move and was last used at 1 s.
 * A row names only the fields that differ. */
#define OWNER(number, ...)                                                                                             \
    ((struct owner_state){.id = (number),                                                                              \
                          .kind = MEMSTOW_MODEL,                                                                       \
                          .live_bytes = 100,                                                                           \
                          .movable_bytes = 100,                                                                        \
                          .last_use_ns = 1000000000,                                                                   \
                          __VA_ARGS__})

static struct policy_question question(uint32_t reason) {
    return (struct policy_question){.reason = reason,
                                    .can_stow = true,
                                    .can_in_use = true,
                                    .drops = true,
                                    .now_ns = 100 * SECOND,
                                    .idle_ns = 60 * SECOND};
}

struct expected {
    uint32_t owner, policy, action, why;
};

static void check(const struct owner_state *owners, uint32_t count, const struct policy_question *asked,
                  const struct expected *expected, uint32_t expected_count) {
    struct owner_state copy[MOST];
    struct memstow_decision found[MOST];
    memcpy(copy, owners, count * sizeof *owners);
    uint32_t n = policy_decide(copy, count, asked, found);
    cr_assert_eq(n, expected_count, "%u decisions, not %u", n, expected_count);
    for (uint32_t i = 0; i < n; i++)
        cr_assert(found[i].owner == expected[i].owner && found[i].policy == expected[i].policy &&
                      found[i].action == expected[i].action && found[i].why == expected[i].why,
                  "%u: owner %u, policy %u, action %u, why %u", i, found[i].owner, found[i].policy, found[i].action,
                  found[i].why);
}

#define CHECK(owners, asked, ...)                                                                                      \
    do {                                                                                                               \
        static const struct expected expected_[] = {__VA_ARGS__};                                                      \
        check(owners, sizeof(owners) / sizeof *(owners), asked, expected_, sizeof expected_ / sizeof *expected_);      \
    } while (0)

static const uint32_t reasons[] = {MEMSTOW_RUN_ENDED, MEMSTOW_REQUEST, MEMSTOW_PRESSURE, MEMSTOW_IDLE};

/* The decision for one owner, whatever the reason of the trigger. */
static void expect_always(struct owner_state owner, uint32_t policy, uint32_t action, uint32_t why) {
    for (int i = 0; i < 4; i++) {
        struct policy_question asked = question(reasons[i]);
        check(&owner, 1, &asked, &(struct expected){owner.id, policy, action, why}, 1);
    }
}

Test(policy, of_no_owner_nothing_is_decided) {
    for (int i = 0; i < 4; i++) {
        struct policy_question asked = question(reasons[i]);
        cr_assert_eq(policy_decide(NULL, 0, &asked, NULL), 0);
    }
}

Test(policy, what_is_set_is_done_and_nothing_said_is_keep) {
    expect_always(OWNER(1, .policy = NONE), KEEP, KEEP, MEMSTOW_WHY_NOTHING_SAID);
    expect_always(OWNER(1, .policy = KEEP), KEEP, KEEP, MEMSTOW_WHY_POLICY);
    expect_always(OWNER(1, .policy = STOW), STOW, STOW, MEMSTOW_WHY_POLICY);
    expect_always(OWNER(1, .policy = FREE), FREE, FREE, MEMSTOW_WHY_POLICY);
    expect_always(OWNER(1, .policy = FREE, .kind = MEMSTOW_CUSTOM), FREE, FREE, MEMSTOW_WHY_POLICY);
    expect_always(OWNER(1, .policy = 77), KEEP, KEEP, MEMSTOW_WHY_NOTHING_SAID);
}

Test(policy, what_is_in_use_is_kept_now) {
    expect_always(OWNER(1, .policy = STOW, .scope_open = true), STOW, KEEP, MEMSTOW_WHY_IN_USE);
    expect_always(OWNER(1, .policy = FREE, .scope_open = true), FREE, KEEP, MEMSTOW_WHY_IN_USE);
    expect_always(OWNER(1, .policy = KEEP, .scope_open = true), KEEP, KEEP, MEMSTOW_WHY_POLICY);
}

Test(policy, what_has_nothing_is_left_alone) {
    expect_always(OWNER(1, .policy = FREE, .live_bytes = 0), FREE, KEEP, MEMSTOW_WHY_EMPTY);
    expect_always(OWNER(1, .policy = NONE, .live_bytes = 0), KEEP, KEEP, MEMSTOW_WHY_EMPTY);
    expect_always(OWNER(1, .policy = STOW, .live_bytes = 0, .scope_open = true), STOW, KEEP, MEMSTOW_WHY_EMPTY);
}

Test(policy, what_a_retired_owner_left_is_only_reported) {
    expect_always(OWNER(1, .policy = FREE, .retired = true), FREE, KEEP, MEMSTOW_WHY_RETIRED);
    expect_always(OWNER(1, .policy = STOW, .retired = true, .scope_open = true), STOW, KEEP, MEMSTOW_WHY_RETIRED);
}

Test(policy, of_retired_owners_the_largest_come_last) {
    struct policy_question asked = question(MEMSTOW_RUN_ENDED);
    struct owner_state owners[MOST];
    struct memstow_decision found[MOST];
    for (uint32_t i = 0; i < 50; i++)
        owners[i] = OWNER(i + 1, .policy = FREE, .retired = i > 0, .live_bytes = i + 1, .priority = (int32_t)i % 7,
                          .last_use_ns = i % 3);
    cr_assert_eq(policy_decide(owners, 50, &asked, found), 1 + POLICY_RETIRED_MOST);
    cr_expect(found[0].owner == 1 && found[0].action == FREE);
    for (uint32_t i = 1; i <= POLICY_RETIRED_MOST; i++)
        cr_expect(found[i].owner == 51 - i && found[i].why == MEMSTOW_WHY_RETIRED, "%u: %u", i, found[i].owner);
}

Test(policy, who_is_not_in_the_list) {
    struct owner_state owners[] = {
        OWNER(1, .policy = FREE, .kind = MEMSTOW_NODE),
        OWNER(2, .policy = FREE, .kind = MEMSTOW_RUN),
        OWNER(3, .policy = FREE, .kind = 0),
        OWNER(4, .policy = FREE, .kind = 99),
        OWNER(5, .policy = FREE, .adopted_by = 6),
        OWNER(6, .policy = FREE, .retired = true, .live_bytes = 0),
        OWNER(7, .policy = KEEP),
    };
    for (int i = 0; i < 4; i++) {
        struct policy_question asked = question(reasons[i]);
        CHECK(owners, &asked, {7, KEEP, KEEP, MEMSTOW_WHY_POLICY});
    }
}

Test(policy, what_cannot_be_moved_is_not) {
    struct policy_question asked = question(MEMSTOW_RUN_ENDED);
    struct owner_state owners[] = {OWNER(1, .policy = STOW), OWNER(2, .policy = STOW, .idle = true)};
    asked.can_in_use = false;
    CHECK(owners, &asked, {2, STOW, STOW, MEMSTOW_WHY_POLICY}, {1, STOW, KEEP, MEMSTOW_WHY_CANNOT});
    asked.can_stow = false;
    CHECK(owners, &asked, {1, STOW, KEEP, MEMSTOW_WHY_CANNOT}, {2, STOW, KEEP, MEMSTOW_WHY_CANNOT});
}

Test(policy, idle_is_for_who_was_not_used_for_so_long) {
    struct policy_question asked = question(MEMSTOW_IDLE);
    struct owner_state owners[] = {
        OWNER(1, .policy = STOW, .last_use_ns = 40 * SECOND),     /* exactly as long */
        OWNER(2, .policy = STOW, .last_use_ns = 40 * SECOND + 1), /* not quite */
        OWNER(3, .policy = FREE, .last_use_ns = 101 * SECOND),    /* used since then */
        OWNER(4, .policy = FREE, .last_use_ns = 0),               /* never */
        OWNER(5, .policy = KEEP, .last_use_ns = 0),
    };
    CHECK(owners, &asked, {4, FREE, FREE, MEMSTOW_WHY_POLICY}, {1, STOW, STOW, MEMSTOW_WHY_POLICY},
          {5, KEEP, KEEP, MEMSTOW_WHY_POLICY}, {2, STOW, KEEP, MEMSTOW_WHY_RECENT},
          {3, FREE, KEEP, MEMSTOW_WHY_RECENT});
}

/* An owner whose memory is all on a device. */
#define IN_DEVICE(number, ...)                                                                                         \
    OWNER(number, .live_bytes = 0, .device_bytes = 100, .device_movable_bytes = 100, __VA_ARGS__)

Test(policy, what_is_in_a_device_is_memory_too) {
    struct policy_question asked = question(MEMSTOW_RUN_ENDED);
    struct memstow_decision found[1];
    expect_always(IN_DEVICE(1, .policy = KEEP), KEEP, KEEP, MEMSTOW_WHY_POLICY);
    expect_always(IN_DEVICE(1, .policy = FREE, .retired = true), FREE, KEEP, MEMSTOW_WHY_RETIRED);
    struct owner_state owners[] = {IN_DEVICE(1, .policy = STOW), IN_DEVICE(2, .policy = STOW, .idle = true),
                                   OWNER(3, .policy = STOW, .device_bytes = 1, .device_movable_bytes = 1),
                                   IN_DEVICE(4, .policy = FREE)};
    CHECK(owners, &asked, {4, FREE, FREE, MEMSTOW_WHY_POLICY}, {3, STOW, STOW, MEMSTOW_WHY_POLICY},
          {2, STOW, STOW, MEMSTOW_WHY_POLICY},
          {1, STOW, KEEP, MEMSTOW_WHY_CANNOT}); /* use on a device does not bring memory back */
    cr_assert_eq(policy_decide(owners, 1, &asked, found), 1);
    cr_expect(found[0].live_bytes == 0 && found[0].device_bytes == 100);
}

/* Memory that leaves a device goes to the host, so it stays where it is while the host's memory is short. */
Test(policy, under_pressure_what_is_in_a_device_stays_there) {
    struct policy_question asked = question(MEMSTOW_PRESSURE);
    struct owner_state owners[] = {
        IN_DEVICE(1, .policy = STOW, .idle = true),
        OWNER(2, .policy = STOW, .priority = 1, .movable_bytes = 1090, .device_bytes = 1000,
              .device_movable_bytes = 1000, .idle = true),
        OWNER(3, .policy = STOW, .priority = 2),
        IN_DEVICE(4, .policy = FREE),
    };
    asked.needed = 100;
    CHECK(owners, &asked, {2, STOW, STOW, MEMSTOW_WHY_POLICY}, {3, STOW, STOW, MEMSTOW_WHY_POLICY},
          {1, STOW, KEEP, MEMSTOW_WHY_CANNOT}, {4, FREE, KEEP, MEMSTOW_WHY_CANNOT});
}

/* --- order --- */

Test(policy, what_is_freed_comes_first_then_what_is_stowed) {
    struct policy_question asked = question(MEMSTOW_RUN_ENDED);
    struct owner_state owners[] = {
        OWNER(1, .policy = KEEP, .priority = -9),
        OWNER(2, .policy = STOW, .priority = -5),
        OWNER(3, .policy = FREE, .priority = 5),
        OWNER(4, .policy = FREE, .priority = -6, .scope_open = true),
    };
    CHECK(owners, &asked, {3, FREE, FREE, MEMSTOW_WHY_POLICY}, {2, STOW, STOW, MEMSTOW_WHY_POLICY},
          {1, KEEP, KEEP, MEMSTOW_WHY_POLICY}, {4, FREE, KEEP, MEMSTOW_WHY_IN_USE});
}

Test(policy, then_by_priority_use_size_and_id) {
    struct policy_question asked = question(MEMSTOW_REQUEST);
    struct owner_state owners[] = {
        OWNER(9, .policy = STOW, .priority = 1, .last_use_ns = 0, .live_bytes = 999),
        OWNER(8, .policy = STOW, .last_use_ns = 5, .live_bytes = 10),
        OWNER(7, .policy = STOW, .last_use_ns = 5, .live_bytes = 20),
        OWNER(6, .policy = STOW, .last_use_ns = 4, .live_bytes = 1),
        OWNER(5, .policy = STOW, .priority = INT32_MIN, .last_use_ns = UINT64_MAX, .live_bytes = 1),
        OWNER(4, .policy = STOW, .priority = INT32_MAX, .last_use_ns = 0),
        OWNER(3, .policy = STOW, .last_use_ns = 5, .live_bytes = 10),
    };
    CHECK(owners, &asked, {5, STOW, STOW, MEMSTOW_WHY_POLICY}, {6, STOW, STOW, MEMSTOW_WHY_POLICY},
          {7, STOW, STOW, MEMSTOW_WHY_POLICY}, {3, STOW, STOW, MEMSTOW_WHY_POLICY}, {8, STOW, STOW, MEMSTOW_WHY_POLICY},
          {9, STOW, STOW, MEMSTOW_WHY_POLICY}, {4, STOW, STOW, MEMSTOW_WHY_POLICY});
}

static uint64_t next_random(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static struct owner_state any_owner(uint32_t id, uint64_t *state) {
    return OWNER(id, .policy = (uint32_t)next_random(state) % 4, .priority = (int32_t)(next_random(state) % 3) - 1,
                 .live_bytes = next_random(state) % 3, .movable_bytes = next_random(state) % 3,
                 .last_use_ns = next_random(state) % 3 * 50 * SECOND, .retired = next_random(state) % 8 == 0,
                 .scope_open = next_random(state) % 4 == 0, .idle = next_random(state) % 2);
}

static void shuffle(struct owner_state *owners, uint32_t count, uint64_t *state) {
    for (uint32_t i = count; i-- > 1;) {
        uint32_t other = (uint32_t)next_random(state) % (i + 1);
        struct owner_state moved = owners[i];
        owners[i] = owners[other];
        owners[other] = moved;
    }
}

/* Many owners have equal figures. Whatever the order of the input, the decisions are the same, and each owner has
 * one. */
Test(policy, the_same_figures_give_the_same_list) {
    uint64_t state = 42;
    for (int round = 0; round < 2000; round++) {
        struct policy_question asked = question(reasons[round % 4]);
        struct owner_state owners[MOST];
        struct memstow_decision first[MOST], second[MOST];
        uint32_t count = (uint32_t)next_random(&state) % (MOST + 1);
        asked.needed = next_random(&state) % 20;
        asked.take_kept = round % 8 < 4;
        asked.can_in_use = round % 16 < 12;
        for (uint32_t i = 0; i < count; i++) owners[i] = any_owner(i + 1, &state);
        shuffle(owners, count, &state);
        struct owner_state copy[MOST];
        memcpy(copy, owners, sizeof copy);
        shuffle(copy, count, &state);
        uint32_t n = policy_decide(owners, count, &asked, first);
        cr_assert_eq(policy_decide(copy, count, &asked, second), n);
        cr_assert_eq(memcmp(first, second, n * sizeof *first), 0, "round %d", round);
        uint64_t seen[2] = {0};
        for (uint32_t i = 0; i < n; i++) {
            uint64_t bit = (uint64_t)1 << first[i].owner % 64;
            cr_assert(!(seen[first[i].owner / 64] & bit), "owner %u twice", first[i].owner);
            seen[first[i].owner / 64] |= bit;
        }
    }
}

/* --- pressure --- */

Test(policy, pressure_ends_when_what_is_needed_is_met) {
    struct policy_question asked = question(MEMSTOW_PRESSURE);
    struct owner_state owners[] = {
        OWNER(1, .policy = STOW, .priority = 3),
        OWNER(2, .policy = FREE, .priority = 2),
        OWNER(3, .policy = STOW, .priority = 1),
        OWNER(4, .policy = KEEP, .priority = 0),
        OWNER(5, .policy = STOW, .priority = 0, .scope_open = true),
    };
    asked.needed = 101; /* the first is not enough */
    CHECK(owners, &asked, {3, STOW, STOW, MEMSTOW_WHY_POLICY}, {2, FREE, FREE, MEMSTOW_WHY_POLICY},
          {1, STOW, KEEP, MEMSTOW_WHY_NOT_NEEDED}, {4, KEEP, KEEP, MEMSTOW_WHY_POLICY},
          {5, STOW, KEEP, MEMSTOW_WHY_IN_USE});
    asked.needed = 100; /* the first is just enough */
    CHECK(owners, &asked, {3, STOW, STOW, MEMSTOW_WHY_POLICY}, {2, FREE, KEEP, MEMSTOW_WHY_NOT_NEEDED},
          {1, STOW, KEEP, MEMSTOW_WHY_NOT_NEEDED}, {4, KEEP, KEEP, MEMSTOW_WHY_POLICY},
          {5, STOW, KEEP, MEMSTOW_WHY_IN_USE});
    asked.needed = 0; /* 0: as many bytes as possible */
    CHECK(owners, &asked, {3, STOW, STOW, MEMSTOW_WHY_POLICY}, {2, FREE, FREE, MEMSTOW_WHY_POLICY},
          {1, STOW, STOW, MEMSTOW_WHY_POLICY}, {4, KEEP, KEEP, MEMSTOW_WHY_POLICY},
          {5, STOW, KEEP, MEMSTOW_WHY_IN_USE});
}

Test(policy, other_triggers_do_all_there_is_to_do) {
    struct policy_question asked = question(MEMSTOW_RUN_ENDED);
    struct owner_state owners[] = {OWNER(1, .policy = STOW), OWNER(2, .policy = STOW)};
    asked.needed = 1;
    CHECK(owners, &asked, {1, STOW, STOW, MEMSTOW_WHY_POLICY}, {2, STOW, STOW, MEMSTOW_WHY_POLICY});
}

Test(policy, kept_owners_are_taken_last_and_only_when_that_is_allowed) {
    struct policy_question asked = question(MEMSTOW_PRESSURE);
    struct owner_state owners[] = {
        OWNER(1, .policy = KEEP, .priority = -5),
        OWNER(2, .policy = STOW, .priority = 5),
        OWNER(3, .policy = NONE, .priority = -4),
        OWNER(4, .policy = KEEP, .priority = -6, .scope_open = true),
        OWNER(5, .policy = KEEP, .priority = -7, .stowed_bytes = 100),
    };
    asked.needed = 150;
    CHECK(owners, &asked, {2, STOW, STOW, MEMSTOW_WHY_POLICY}, {5, KEEP, KEEP, MEMSTOW_WHY_POLICY},
          {4, KEEP, KEEP, MEMSTOW_WHY_POLICY}, {1, KEEP, KEEP, MEMSTOW_WHY_POLICY},
          {3, KEEP, KEEP, MEMSTOW_WHY_NOTHING_SAID});
    asked.take_kept = true;
    CHECK(owners, &asked, {2, STOW, STOW, MEMSTOW_WHY_POLICY}, {1, KEEP, STOW, MEMSTOW_WHY_PRESSURE},
          {3, KEEP, KEEP, MEMSTOW_WHY_NOT_NEEDED}, {5, KEEP, KEEP, MEMSTOW_WHY_POLICY},
          {4, KEEP, KEEP, MEMSTOW_WHY_POLICY});
    asked.can_stow = false;
    CHECK(owners, &asked, {5, KEEP, KEEP, MEMSTOW_WHY_POLICY}, {4, KEEP, KEEP, MEMSTOW_WHY_POLICY},
          {1, KEEP, KEEP, MEMSTOW_WHY_POLICY}, {3, KEEP, KEEP, MEMSTOW_WHY_NOTHING_SAID},
          {2, STOW, KEEP, MEMSTOW_WHY_CANNOT});
    asked = question(MEMSTOW_RUN_ENDED);
    asked.take_kept = true;
    CHECK(owners, &asked, {2, STOW, STOW, MEMSTOW_WHY_POLICY}, {5, KEEP, KEEP, MEMSTOW_WHY_POLICY},
          {4, KEEP, KEEP, MEMSTOW_WHY_POLICY}, {1, KEEP, KEEP, MEMSTOW_WHY_POLICY},
          {3, KEEP, KEEP, MEMSTOW_WHY_NOTHING_SAID});
}

/* --- rescue --- */

/* Fields of an owner that also has 80 bytes on a device, 60 of which can leave. */
#define HALF_IN_DEVICE .device_bytes = 80, .device_movable_bytes = 60, .movable_bytes = 160

/* The decision for one owner when a device has no memory left: without and with permission to take kept owners. */
Test(policy, a_rescue_takes_what_idle_owners_have_in_devices) {
    static const struct {
        struct owner_state owner;
        struct expected without, with;
    } rows[] = {
        {OWNER(1, HALF_IN_DEVICE, .policy = STOW, .idle = true),
         {1, STOW, STOW, MEMSTOW_WHY_POLICY},
         {1, STOW, STOW, MEMSTOW_WHY_POLICY}},
        {OWNER(2, HALF_IN_DEVICE, .policy = FREE, .idle = true),
         {2, FREE, STOW, POLICY_WHY_RESCUE},
         {2, FREE, STOW, POLICY_WHY_RESCUE}},
        {OWNER(3, HALF_IN_DEVICE, .policy = KEEP, .idle = true),
         {3, KEEP, KEEP, MEMSTOW_WHY_POLICY},
         {3, KEEP, STOW, POLICY_WHY_RESCUE}},
        {OWNER(4, HALF_IN_DEVICE, .policy = NONE, .idle = true),
         {4, KEEP, KEEP, MEMSTOW_WHY_NOTHING_SAID},
         {4, KEEP, STOW, POLICY_WHY_RESCUE}},
        {OWNER(5, HALF_IN_DEVICE, .policy = STOW), /* not idle */
         {5, STOW, KEEP, MEMSTOW_WHY_CANNOT},
         {5, STOW, KEEP, MEMSTOW_WHY_CANNOT}},
        {OWNER(6, HALF_IN_DEVICE, .policy = KEEP),
         {6, KEEP, KEEP, MEMSTOW_WHY_POLICY},
         {6, KEEP, KEEP, MEMSTOW_WHY_POLICY}},
        {OWNER(7, HALF_IN_DEVICE, .policy = STOW, .idle = true, .scope_open = true),
         {7, STOW, KEEP, MEMSTOW_WHY_IN_USE},
         {7, STOW, KEEP, MEMSTOW_WHY_IN_USE}},
        {OWNER(8, HALF_IN_DEVICE, .policy = KEEP, .idle = true, .scope_open = true),
         {8, KEEP, KEEP, MEMSTOW_WHY_POLICY},
         {8, KEEP, KEEP, MEMSTOW_WHY_POLICY}},
        {OWNER(9, .policy = STOW, .idle = true), /* all of it on the host */
         {9, STOW, KEEP, MEMSTOW_WHY_CANNOT},
         {9, STOW, KEEP, MEMSTOW_WHY_CANNOT}},
        {OWNER(10, HALF_IN_DEVICE, .policy = KEEP, .idle = true, .device_stowed_bytes = 60), /* it is out already */
         {10, KEEP, KEEP, MEMSTOW_WHY_POLICY},
         {10, KEEP, KEEP, MEMSTOW_WHY_POLICY}},
        {OWNER(11, HALF_IN_DEVICE, .policy = STOW, .idle = true, .retired = true),
         {11, STOW, KEEP, MEMSTOW_WHY_RETIRED},
         {11, STOW, KEEP, MEMSTOW_WHY_RETIRED}},
        {OWNER(12, .policy = STOW, .idle = true, .live_bytes = 0),
         {12, STOW, KEEP, MEMSTOW_WHY_EMPTY},
         {12, STOW, KEEP, MEMSTOW_WHY_EMPTY}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct policy_question asked = question(POLICY_RESCUE);
        asked.drops = false;
        check(&rows[i].owner, 1, &asked, &rows[i].without, 1);
        asked.take_kept = true;
        check(&rows[i].owner, 1, &asked, &rows[i].with, 1);
        asked.can_stow = asked.can_in_use = false; /* of host memory: it does not matter */
        check(&rows[i].owner, 1, &asked, &rows[i].with, 1);
    }
}

Test(policy, a_rescue_ends_when_what_is_needed_has_left_the_device) {
    struct policy_question asked = question(POLICY_RESCUE);
    struct owner_state owners[] = {
        OWNER(1, HALF_IN_DEVICE, .policy = KEEP, .idle = true, .priority = -9),
        OWNER(2, HALF_IN_DEVICE, .policy = STOW, .idle = true, .priority = 2),
        OWNER(3, HALF_IN_DEVICE, .policy = FREE, .idle = true, .priority = 1),
        OWNER(4, HALF_IN_DEVICE, .policy = STOW, .idle = true, .priority = 0, .device_stowed_bytes = 50,
              .stowed_bytes = 90),
    };
    asked.take_kept = true;
    asked.needed = 70; /* 10 of the first, 60 of the next */
    CHECK(owners, &asked, {4, STOW, STOW, MEMSTOW_WHY_POLICY}, {3, FREE, STOW, POLICY_WHY_RESCUE},
          {2, STOW, KEEP, MEMSTOW_WHY_NOT_NEEDED}, {1, KEEP, KEEP, MEMSTOW_WHY_NOT_NEEDED});
    asked.needed = 131;
    CHECK(owners, &asked, {4, STOW, STOW, MEMSTOW_WHY_POLICY}, {3, FREE, STOW, POLICY_WHY_RESCUE},
          {2, STOW, STOW, MEMSTOW_WHY_POLICY}, {1, KEEP, STOW, POLICY_WHY_RESCUE});
}

/* Memory that is already in files does not count towards the needed amount. Memory that only the program could free
 * does not count either. */
Test(policy, only_what_gives_something_counts_for_what_is_needed) {
    struct policy_question asked = question(MEMSTOW_PRESSURE);
    struct owner_state owners[] = {
        OWNER(1, .policy = STOW, .priority = 1, .stowed_bytes = 60),
        OWNER(2, .policy = FREE, .priority = 2, .live_bytes = 50),
        OWNER(3, .policy = STOW, .priority = 3, .movable_bytes = 0),
        OWNER(4, .policy = STOW, .priority = 4, .stowed_bytes = 200),
        OWNER(5, .policy = STOW, .priority = 5),
    };
    asked.needed = 90;
    CHECK(owners, &asked, {1, STOW, STOW, MEMSTOW_WHY_POLICY}, {2, FREE, FREE, MEMSTOW_WHY_POLICY},
          {3, STOW, KEEP, MEMSTOW_WHY_NOT_NEEDED}, {4, STOW, KEEP, MEMSTOW_WHY_NOT_NEEDED},
          {5, STOW, KEEP, MEMSTOW_WHY_NOT_NEEDED});
    asked.drops = false;
    CHECK(owners, &asked, {1, STOW, STOW, MEMSTOW_WHY_POLICY}, {2, FREE, FREE, MEMSTOW_WHY_POLICY},
          {3, STOW, STOW, MEMSTOW_WHY_POLICY}, {4, STOW, STOW, MEMSTOW_WHY_POLICY},
          {5, STOW, STOW, MEMSTOW_WHY_POLICY});
}

Test(policy, numbers_as_large_as_there_are) {
    struct policy_question asked = question(MEMSTOW_PRESSURE);
    struct owner_state owners[] = {
        OWNER(1, .policy = STOW, .live_bytes = UINT64_MAX, .movable_bytes = UINT64_MAX, .last_use_ns = UINT64_MAX),
        OWNER(2, .policy = FREE, .live_bytes = UINT64_MAX, .last_use_ns = UINT64_MAX),
        OWNER(UINT32_MAX, .policy = STOW, .live_bytes = UINT64_MAX, .movable_bytes = UINT64_MAX,
              .last_use_ns = UINT64_MAX),
        OWNER(3, .policy = STOW, .live_bytes = 1, .movable_bytes = 1, .last_use_ns = 0),
    };
    asked.now_ns = UINT64_MAX;
    asked.needed = UINT64_MAX;
    CHECK(owners, &asked, {3, STOW, STOW, MEMSTOW_WHY_POLICY}, {1, STOW, STOW, MEMSTOW_WHY_POLICY},
          {2, FREE, KEEP, MEMSTOW_WHY_NOT_NEEDED}, {UINT32_MAX, STOW, KEEP, MEMSTOW_WHY_NOT_NEEDED});
    asked.reason = MEMSTOW_IDLE;
    asked.idle_ns = UINT64_MAX;
    CHECK(owners, &asked, {3, STOW, STOW, MEMSTOW_WHY_POLICY}, {1, STOW, KEEP, MEMSTOW_WHY_RECENT},
          {2, FREE, KEEP, MEMSTOW_WHY_RECENT}, {UINT32_MAX, STOW, KEEP, MEMSTOW_WHY_RECENT});
    cr_expect_eq(policy_sum(UINT64_MAX, 1), UINT64_MAX);
    cr_expect_eq(policy_sum(UINT64_MAX - 1, 1), UINT64_MAX);
    cr_expect_eq(policy_sum(3, 4), 7);
}

/* --- afterwards --- */

Test(policy, what_came_of_it) {
    static const struct {
        uint32_t action, why;
        uint64_t before, after, stowed;
        enum policy_category category;
    } rows[] = {
        {KEEP, MEMSTOW_WHY_POLICY, 100, 100, 0, POLICY_KEPT},
        {KEEP, MEMSTOW_WHY_POLICY, 100, 0, 0, POLICY_KEPT},
        {KEEP, MEMSTOW_WHY_NOTHING_SAID, 100, 100, 100, POLICY_KEPT},
        {KEEP, MEMSTOW_WHY_NOT_NEEDED, 100, 100, 0, POLICY_KEPT},
        {KEEP, MEMSTOW_WHY_RECENT, 100, 100, 0, POLICY_KEPT},
        {KEEP, MEMSTOW_WHY_IN_USE, 100, 100, 0, POLICY_BLOCKED},
        {KEEP, MEMSTOW_WHY_CANNOT, 100, 100, 0, POLICY_BLOCKED},
        {KEEP, MEMSTOW_WHY_RETIRED, 100, 100, 0, POLICY_BLOCKED},
        {KEEP, MEMSTOW_WHY_RETIRED, 100, 0, 0, POLICY_FREED},
        {FREE, MEMSTOW_WHY_POLICY, 100, 0, 0, POLICY_FREED},
        {FREE, MEMSTOW_WHY_POLICY, 100, 5, 0, POLICY_FREED},
        {FREE, MEMSTOW_WHY_POLICY, 100, 6, 0, POLICY_BLOCKED},
        {FREE, MEMSTOW_WHY_POLICY, 100, 100, 100, POLICY_BLOCKED},
        {STOW, MEMSTOW_WHY_POLICY, 100, 100, 1, POLICY_STOWED},
        {STOW, MEMSTOW_WHY_PRESSURE, 100, 100, 0, POLICY_BLOCKED},
        {STOW, MEMSTOW_WHY_POLICY, 100, 0, 0, POLICY_FREED},
        {FREE, MEMSTOW_WHY_POLICY, UINT64_MAX, UINT64_MAX, 0, POLICY_BLOCKED},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_expect_eq(policy_category(rows[i].action, rows[i].why, rows[i].before, rows[i].after, rows[i].stowed),
                     rows[i].category, "row %zu", i);
}

Test(policy, who_became_idle_is_told_once) {
    struct policy_question asked = question(MEMSTOW_IDLE);
    struct owner_state owner = OWNER(1, .policy = STOW, .last_use_ns = 30 * SECOND); /* idle at 90 */
    cr_expect(policy_became_idle(&owner, &asked, 0));
    cr_expect(policy_became_idle(&owner, &asked, 90 * SECOND - 1));
    cr_expect_not(policy_became_idle(&owner, &asked, 90 * SECOND));
    owner.last_use_ns = 50 * SECOND;
    cr_expect_not(policy_became_idle(&owner, &asked, 0), "used lately");
    owner = OWNER(1, .policy = STOW, .stowed_bytes = 100);
    cr_expect_not(policy_became_idle(&owner, &asked, 0), "nothing is left to move");
    owner = OWNER(1, .policy = KEEP);
    cr_expect_not(policy_became_idle(&owner, &asked, 0), "nothing is to be done");
    owner = OWNER(1, .policy = FREE, .kind = MEMSTOW_NODE);
    cr_expect_not(policy_became_idle(&owner, &asked, 0), "no owner with a policy");
}
