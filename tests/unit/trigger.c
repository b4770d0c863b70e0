// Triggers with owners that the test invents: the actions, the outcomes, and the lines of the trace, in which the
// tools' check finds no fault.
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/decisions/decisions.h"
#include "tools/reader/image_load.h"
#include "preload/ledger/ledger.h"
#include "preload/shared/os.h"
#include "preload/shared/policy.h"
#include "preload/shared/pressure.h"
#include "preload/ledger/trace.h"
#include "preload/triggers/trigger.h"
#include "preload/triggers/watch.h"
#include "preload/base/seal.h"
#include "preload/owners/moving.h"
#include "preload/owners/mover.h"

enum { NONE = MEMSTOW_NO_POLICY, KEEP = MEMSTOW_KEEP, STOW = MEMSTOW_STOW, FREE = MEMSTOW_FREE, MOST = 300 };

/* --- the owners --- */

bool moving_can_stow, moving_can_in_use; /* moving.c is not in this test */

static struct owner_state owners[MOST];
static uint32_t count;
static int64_t stow_fails, stow_gives = 1000;
static char done[8192]; /* "s3 r3": stowed, released */

uint32_t owners_list(struct owner_state *out, uint32_t room) {
    if (room) memcpy(out, owners, (count < room ? count : room) * sizeof *owners);
    return count;
}

static void note(char what, uint32_t owner) { sprintf(done + strlen(done), "%s%c%u", *done ? " " : "", what, owner); }

void mover_begin_call(void) {}
int64_t moving_stow(uint32_t owner) {
    note('s', owner);
    if (stow_fails) return stow_fails;
    for (uint32_t i = 0; i < count; i++)
        if (owners[i].id == owner) owners[i].stowed_bytes = owners[i].movable_bytes;
    return stow_gives;
}

int64_t moving_stow_host(uint32_t owner) {
    note('h', owner);
    return stow_gives;
}

int64_t moving_stow_device(uint32_t owner) {
    note('d', owner);
    return stow_gives;
}

int64_t moving_release(uint32_t owner) {
    note('r', owner);
    return 10;
}

static struct owner_state *owner(uint32_t policy, uint64_t bytes) {
    owners[count] = (struct owner_state){
        .id = count + 1, .kind = MEMSTOW_MODEL, .policy = policy, .live_bytes = bytes, .movable_bytes = bytes};
    trigger_note_policy(count + 1, MEMSTOW_MODEL, "a model", (const uint64_t[2]){count, 0}, policy, 0);
    return &owners[count++];
}

/* --- the trace --- */

static char path[64];

static void begin(void) {
    snprintf(path, sizeof path, "/tmp/memstow-unit-%d.mst", (int)getpid());
    struct ledger_identity who = {.path = path, .name = "unit", .exe = "/bin/unit", .command = "unit test"};
    cr_assert(ledger_begin(&who));
    moving_can_stow = moving_can_in_use = true;
}

/* Returns all lines of one kind, without their number and time. If `kind` is "", returns the lines of all kinds but
 * SET. */
static const char *lines(const char *kind) {
    static char all[1 << 20];
    char line[SNAP_LINE_MOST + 1], wanted[40];
    uint64_t place = 0, number;
    all[0] = 0;
    snprintf(wanted, sizeof wanted, "{\"kind\":\"%s\"", kind);
    for (size_t length; (length = trace_read(&place, line, &number));) {
        line[length] = 0;
        char *start = strstr(line, "\"kind\"");
        *--start = '{';
        if (*kind ? strncmp(start, wanted, strlen(wanted)) == 0 : !strstr(start, "\"SET\""))
            strcat(strcat(all, start), "\n");
    }
    return all;
}

/* The number of faults that the tools find in the file. */
static size_t faults(void) {
    struct image image;
    struct source source;
    struct decisions decisions;
    FILE *file = fopen(path, "rb");
    cr_assert(file && source_file(&source, dup(fileno(file))) == 0);
    fclose(file);
    cr_assert_eq(image_load(&image, &source, false), 0, "%s", image.error);
    cr_assert_eq(decisions_load(&decisions, &image), 0);
    size_t found = decisions.fault_count;
    for (size_t i = 0; i < found; i++) printf("line %d: %s\n", (int)decisions.faults[i].n, decisions.faults[i].text);
    decisions_clear(&decisions);
    image_clear(&image);
    source_close(&source);
    return found;
}

static void end(void) {
    cr_expect_eq(faults(), 0);
    unlink(path);
}

/* Removes a member whose number differs each time. */
static void cut(char *text, const char *member, char end) {
    char *at = strstr(text, member), *rest = strchr(at, end);
    memmove(at, rest, strlen(rest) + 1);
}

/* --- tests --- */

Test(trigger, a_run_ended, .init = begin, .fini = end) {
    const struct memstow_decision *decisions;
    owner(FREE, 1000);
    owner(KEEP, 500);
    owner(STOW, 2000);
    owner(NONE, 0);
    cr_assert_eq(trigger_begin(MEMSTOW_RUN_ENDED, "failed", 0, true, &decisions), 4);
    cr_expect(decisions[0].owner == 1 && decisions[1].owner == 3 && decisions[2].owner == 2 && decisions[3].owner == 4);
    owners[0].live_bytes = 0; /* the program drops it */
    cr_expect_eq(trigger_end(), 1000 + 1000 + 10);
    cr_expect_str_eq(done, "r1 s3 r3");
    char act[1000];
    snprintf(act, sizeof act, "%s", strstr(lines("ACT"), "{"));
    *strstr(act, ",\"took_ns\"") = 0;
    cr_expect_str_eq(
        act, "{\"kind\":\"ACT\",\"trigger\":1,\"kept\":1,\"stowed\":1,\"freed\":1,\"blocked\":0,\"models_before\":3,"
             "\"models_after\":2,\"before_bytes\":3500,\"after_bytes\":2500,\"moved_bytes\":1000,"
             "\"released_bytes\":20,\"given_bytes\":2010");
    char *all = strdup(lines(""));
    cut(all, ",\"began_ns\":", '}');
    *strstr(all, "{\"kind\":\"ACT\"") = 0;
    cr_expect_str_eq(
        all,
        "{\"kind\":\"TRIGGER\",\"trigger\":1,\"reason\":\"run_ended\",\"text\":\"failed\",\"needed\":0,\"owners\":4,"
        "\"before_bytes\":3500}\n"
        "{\"kind\":\"DECISION\",\"trigger\":1,\"owner\":1,\"policy\":\"free\",\"action\":\"free\",\"why\":\"policy\","
        "\"bytes\":1000}\n"
        "{\"kind\":\"DECISION\",\"trigger\":1,\"owner\":3,\"policy\":\"stow\",\"action\":\"stow\",\"why\":\"policy\","
        "\"bytes\":2000}\n"
        "{\"kind\":\"DECISION\",\"trigger\":1,\"owner\":2,\"policy\":\"keep\",\"action\":\"keep\",\"why\":\"policy\","
        "\"bytes\":500}\n"
        "{\"kind\":\"DECISION\",\"trigger\":1,\"owner\":4,\"policy\":\"keep\",\"action\":\"keep\",\"why\":\"empty\","
        "\"bytes\":0}\n"
        "{\"kind\":\"CATEGORY\",\"trigger\":1,\"owner\":1,\"category\":\"freed\",\"before_bytes\":1000,\"after_bytes\":"
        "0,\"stowed_bytes\":0}\n"
        "{\"kind\":\"CATEGORY\",\"trigger\":1,\"owner\":3,\"category\":\"stowed\",\"before_bytes\":2000,\"after_"
        "bytes\":2000,\"stowed_bytes\":2000}\n"
        "{\"kind\":\"CATEGORY\",\"trigger\":1,\"owner\":2,\"category\":\"kept\",\"before_bytes\":500,\"after_bytes\":"
        "500,\"stowed_bytes\":0}\n"
        "{\"kind\":\"REMAINING\",\"trigger\":1,\"owner\":3,\"bytes\":2000,\"stowed_bytes\":2000,\"why\":\"stowed\"}\n"
        "{\"kind\":\"REMAINING\",\"trigger\":1,\"owner\":2,\"bytes\":500,\"stowed_bytes\":0,\"why\":\"policy\"}\n");
    free(all);
}

Test(trigger, what_does_not_work_is_blocked_and_says_why, .init = begin, .fini = end) {
    owner(FREE, 1000);
    owner(STOW, 2000);
    owner(FREE, 30)->retired = true;
    stow_fails = -ENOSPC;
    cr_expect_eq(trigger_run(MEMSTOW_REQUEST, "", 0), 10 + 10 + 10, "what the heaps gave back");
    cr_expect_str_eq(done, "r1 s2 r2 r3");
    const char *categories = lines("CATEGORY");
    cr_expect(strstr(categories, "\"owner\":2,\"category\":\"blocked\"") && strstr(categories, "\"error\":\"ENOSPC\""));
    const char *remaining = lines("REMAINING");
    cr_expect(strstr(remaining, "\"owner\":1,\"bytes\":1000,\"stowed_bytes\":0,\"why\":\"alive\""));
    cr_expect(strstr(remaining, "\"owner\":2,\"bytes\":2000,\"stowed_bytes\":0,\"why\":\"refused\""));
    cr_expect(strstr(remaining, "\"owner\":3,\"bytes\":30,\"stowed_bytes\":0,\"why\":\"retired\""));
    stow_fails = -12345;
    trigger_run(MEMSTOW_REQUEST, "", 0);
    cr_expect(strstr(lines("CATEGORY"), "\"error\":\"other\""));
}

/* The trace says how much device memory each owner had before, how much it has afterwards, and how much of it is
 * stowed. An owner that has only device memory is not taken for empty. */
Test(trigger, what_is_in_a_device_counts, .init = begin, .fini = end) {
    const struct memstow_decision *decisions;
    struct owner_state *freed = owner(FREE, 0), *stowed = owner(STOW, 500), *left = owner(FREE, 0);
    freed->device_bytes = 1 << 20;
    stowed->device_bytes = stowed->device_movable_bytes = 4000;
    stowed->movable_bytes = 4500;
    stowed->idle = left->retired = true;
    left->device_bytes = 70;
    stow_gives = 4500;
    cr_assert_eq(trigger_begin(MEMSTOW_RUN_ENDED, "ok", 0, true, &decisions), 3);
    cr_expect(decisions[0].owner == 1 && decisions[0].device_bytes == 1 << 20);
    freed->device_bytes = 0;
    stowed->device_stowed_bytes = 4000;
    cr_expect_eq(trigger_end(), (1 << 20) + 10 + 4500 + 10 + 10);
    cr_expect_str_eq(done, "r1 s2 r2 r3");
    const char *categories = lines("CATEGORY");
    cr_expect(strstr(categories, "\"owner\":1,\"category\":\"freed\",\"before_bytes\":0,\"after_bytes\":0,"
                                 "\"stowed_bytes\":0,\"device_before_bytes\":1048576}"));
    cr_expect(strstr(categories, "\"owner\":2,\"category\":\"stowed\",\"before_bytes\":500,\"after_bytes\":500,"
                                 "\"stowed_bytes\":4500,\"device_before_bytes\":4000,\"device_after_bytes\":4000,"
                                 "\"device_stowed_bytes\":4000}"));
    cr_expect(strstr(categories, "\"owner\":3,\"category\":\"blocked\""));
    cr_expect(strstr(lines("REMAINING"), "\"owner\":3,\"bytes\":0,\"stowed_bytes\":0,\"device_bytes\":70,"
                                         "\"why\":\"retired\"}"));
    cr_expect(strstr(lines("ACT"), "\"device_before_bytes\":1052646,\"device_after_bytes\":4070,"));
}

Test(trigger, under_pressure_only_the_hosts_memory_moves, .init = begin, .fini = end) {
    owner(STOW, 1000)->device_bytes = 1000;
    trigger_run(MEMSTOW_PRESSURE, "", 1);
    cr_expect_str_eq(done, "h1 r1");
}

/* A rescue runs in a hook, so it gives back no host memory. */
Test(trigger, a_rescue_moves_what_is_in_devices_alone, .init = begin, .fini = end) {
    struct owner_state *idle = owner(FREE, 500);
    idle->device_bytes = idle->device_movable_bytes = 1000;
    idle->idle = true;
    owner(FREE, 10)->retired = true;
    const struct memstow_decision *decisions;
    cr_expect_eq(trigger_begin(POLICY_RESCUE, "", 1, false, &decisions), 2);
    idle->live_bytes = 400; /* the program frees host memory meanwhile, which does not help the device */
    cr_expect_eq(trigger_end(), 1000);
    cr_expect_str_eq(done, "d1");
    cr_expect(strstr(lines("TRIGGER"), "\"reason\":\"rescue\""));
    cr_expect(strstr(lines("DECISION"), "\"policy\":\"free\",\"action\":\"stow\",\"why\":\"rescue\""));
    idle->policy = KEEP;
    trigger_note_policy(1, MEMSTOW_MODEL, "a model", (const uint64_t[2]){0, 0}, KEEP, 0);
    cr_expect_eq(trigger_rescue(1, true, NULL), 1000);
    cr_expect_str_eq(done, "d1 d1");
}

Test(trigger, all_kept_touches_nothing, .init = begin, .fini = end) {
    owner(KEEP, 1000);
    owner(NONE, 1000);
    cr_expect_eq(trigger_run(MEMSTOW_RUN_ENDED, "ok", 0), 0);
    cr_expect_str_eq(done, "");
}

Test(trigger, without_owners_it_is_noted_all_the_same, .init = begin, .fini = end) {
    cr_expect_eq(trigger_run(MEMSTOW_RUN_ENDED, "ok", 0), 0);
    cr_expect(strstr(lines("TRIGGER"), "\"owners\":0") && strstr(lines("ACT"), "\"models_before\":0"));
}

Test(trigger, one_at_a_time, .init = begin, .fini = end) {
    const struct memstow_decision *decisions;
    owner(KEEP, 1);
    cr_expect_eq(trigger_end(), -ENOENT);
    cr_expect_eq(trigger_begin(0, "", 0, true, &decisions), -EINVAL);
    cr_expect_eq(trigger_begin(POLICY_RESCUE + 1, "", 0, true, &decisions), -EINVAL);
    cr_assert_eq(trigger_begin(MEMSTOW_REQUEST, "", 0, true, &decisions), 1);
    cr_expect_eq(trigger_begin(MEMSTOW_REQUEST, "", 0, true, &decisions), -EBUSY);
    cr_expect_eq(trigger_run(MEMSTOW_REQUEST, "", 0), -EBUSY);
    cr_expect_eq(trigger_end(), 0);
    cr_expect_eq(trigger_end(), -ENOENT);
    cr_assert_eq(trigger_begin(MEMSTOW_REQUEST, "", 0, true, &decisions), 1);
    trigger_cancel();
    trigger_cancel();
    cr_assert_eq(trigger_begin(MEMSTOW_REQUEST, "", 0, true, &decisions), 1, "and so is one in a forked child");
    trigger_abandon();
    cr_expect_eq(trigger_run(MEMSTOW_REQUEST, "", 0), 0);
}

static void *begin_one(void *result) {
    const struct memstow_decision *decisions;
    *(int64_t *)result = trigger_begin(MEMSTOW_REQUEST, "", 0, true, &decisions);
    return NULL;
}

Test(trigger, whoever_began_one_is_gone, .init = begin, .fini = end) {
    pthread_t thread;
    int64_t result = 0;
    const struct memstow_decision *decisions;
    owner(KEEP, 10);
    cr_assert_eq(pthread_create(&thread, NULL, begin_one, &result), 0);
    pthread_join(thread, NULL);
    cr_assert_eq(result, 1);
    for (int i = 0; i < 1000 && (result = trigger_begin(MEMSTOW_REQUEST, "", 0, true, &decisions)) == -EBUSY; i++)
        usleep(1000); /* a thread that has been joined may still be there for a moment */
    cr_assert_eq(result, 1);
    cr_expect_eq(trigger_end(), 0);
}

Test(trigger, owners_that_come_and_go_meanwhile, .init = begin, .fini = end) {
    const struct memstow_decision *decisions;
    for (int i = 0; i < 250; i++) owner(FREE, 100);
    cr_assert_eq(trigger_begin(MEMSTOW_RUN_ENDED, "ok", 0, true, &decisions), 250);
    memmove(owners, owners + 200, 50 * sizeof *owners); /* 200 are gone */
    count = 50;
    owner(KEEP, 7)->id = 251;
    cr_expect_eq(trigger_end(), 200 * 100 + 50 * 10);
    cr_expect(strstr(lines("ACT"), "\"freed\":200,\"blocked\":50,\"models_before\":250,\"models_after\":50"));
}

Test(trigger, numbers_as_large_as_there_are, .init = begin, .fini = end) {
    owner(FREE, UINT64_MAX);
    owner(STOW, UINT64_MAX);
    owner(KEEP, UINT64_MAX);
    const struct memstow_decision *decisions;
    cr_assert_eq(trigger_begin(MEMSTOW_PRESSURE, "", UINT64_MAX, true, &decisions), 3);
    owners[0].live_bytes = 0;
    cr_expect_eq(trigger_end(), INT64_MAX);
}

/* --- polling --- */

static uint32_t asked;
static uint64_t asked_for;
static bool passed_on;

static bool ask(uint32_t reason, const char *text, uint64_t needed) {
    cr_expect_str_eq(text, reason == MEMSTOW_IDLE ? "an owner was not used lately" : "too much memory is in use");
    asked = reason;
    asked_for = needed;
    return passed_on;
}

static size_t triggers(void) {
    size_t n = 0;
    for (const char *at = lines("TRIGGER"); (at = strchr(at, '\n')); at++) n++;
    return n;
}

Test(trigger, pressure_waits_longer_each_time_that_nothing_came_of_it, .init = begin, .fini = end) {
    static const uint64_t second = 1000000000;
    struct owner_state *model = owner(STOW, 1000);
    pressure_wish("1000000G", "");
    cr_expect(watch_is_wanted());
    stow_fails = -EIO;
    uint64_t seen = 0;
    size_t before = triggers();
    for (uint64_t now = 1; now <= 10 * 60; now++) { /* at 1, 11, 31, 71, 151, 311 s … and then every 300 s */
        watch_poll(now * second, NULL);
        if (triggers() == before) continue;
        before = triggers();
        cr_expect(now == 1 || now == 11 || now == 31 || now == 71 || now == 151 || now == 311, "%d", (int)now);
        seen++;
    }
    cr_expect_eq(seen, 6);
    stow_fails = 0;
    stow_gives = INT64_MAX / 2;
    watch_poll(700 * second, NULL); /* memory was freed: wait for ten seconds */
    watch_poll(709 * second, NULL);
    watch_poll(710 * second, NULL);
    cr_expect_eq(triggers(), before + 2);
    (void)model;
}

Test(trigger, an_owner_that_became_idle_is_seen_to_once, .init = begin, .fini = end) {
    static const uint64_t second = 1000000000;
    struct owner_state *model = owner(STOW, 1000);
    uint64_t now = os_now(); /* a trigger asks the clock itself */
    pressure_wish("", "60");
    cr_expect(watch_is_wanted());
    model->last_use_ns = now;
    watch_poll(now + 59 * second, NULL);
    cr_expect_eq(triggers(), 0);
    stow_fails = -EBUSY; /* the model stays: no retry each second */
    watch_poll(now + 64 * second, NULL);
    cr_expect_eq(triggers(), 0, "it is looked for ten times in so long");
    watch_poll(now + 65 * second, NULL);
    watch_poll(now + 75 * second, NULL);
    watch_poll(now + 5000 * second, NULL);
    cr_expect_eq(triggers(), 1);
    model->last_use_ns = now + 6000 * second;
    watch_poll(now + 6059 * second, NULL);
    cr_expect_eq(triggers(), 1);
    watch_poll(now + 6065 * second, NULL);
    cr_expect_eq(triggers(), 2);
}

Test(trigger, who_answers_requests_is_asked, .init = begin, .fini = end) {
    static const uint64_t now = 1000000000000;
    owner(STOW, 1000);
    passed_on = true;
    pressure_wish("1000000G", "60");
    cr_expect_eq(watch_poll(now, ask), MEMSTOW_PRESSURE);
    cr_expect(asked == MEMSTOW_PRESSURE && asked_for > (uint64_t)1 << 49);
    cr_expect_eq(watch_poll(now, ask), MEMSTOW_IDLE, "pressure waits now");
    cr_expect(asked == MEMSTOW_IDLE && asked_for == 0);
    cr_expect_eq(watch_poll(now + 1, ask), 0);
    cr_expect_eq(triggers(), 0);
    passed_on = false; /* nobody to answer */
    trigger_abandon();
    watch_abandon();
    cr_expect_eq(watch_poll(now, ask), MEMSTOW_PRESSURE);
    cr_expect_eq(triggers(), 1);
}

Test(trigger, in_a_sandbox_nothing_is_looked_at, .init = begin) {
    owner(STOW, 1000);
    pressure_wish("1000000G", "1");
    seal_leave(true);
    watch_poll(1000000000000, NULL);
    cr_expect_eq(triggers(), 0);
    unlink(path);
}

Test(trigger, polls_for_nothing_unless_it_was_asked_for) { cr_expect_not(watch_is_wanted()); }
