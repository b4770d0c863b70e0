// The points of a curve. The first, the highest and the newest point stay, whatever points are added. There are never
// more points than there are records for them. At each step of a change, every point is complete.
#include <criterion/criterion.h>
#include <stdbool.h>
#include <string.h>

#include "preload/ledger/points.h"

enum { ROOM = 64, ADDED_MOST = 1 << 20, MS = 1000000 };

static uint64_t records[ROOM][3];
static uint32_t room;
static uint64_t added[ADDED_MOST], highest, highest_ns, last_ns, first_ns;
static bool checked;
static struct points points;

static bool is_there(uint64_t time_ns) {
    for (uint32_t i = 0; i < ROOM; i++)
        if (records[i][0] == time_ns) return true;
    return false;
}

/* A reader may look at any moment. So at each step every point that has a time must be complete, and the highest point
 * and the first point must be there. */
static uint64_t *at(uint32_t index) {
    for (uint32_t i = 0; checked && i < ROOM; i++) cr_assert(!records[i][0] || records[i][1] + records[i][2]);
    if (checked && highest_ns) cr_assert(is_there(highest_ns) && is_there(first_ns));
    return index < room ? records[index] : NULL;
}

static void begin(void) {
    points = (struct points){.at = at, .values = 2, .summed = 2};
    memset(records, 0, sizeof records);
    room = ROOM;
    highest = highest_ns = first_ns = 0;
    checked = false;
}

static void add(uint64_t time_ns, uint64_t a, uint64_t b) {
    const uint64_t values[] = {a, b};
    points_add(&points, time_ns, values);
    last_ns = time_ns;
    if (!first_ns) first_ns = time_ns;
    if (a + b <= highest) return;
    highest = a + b;
    highest_ns = time_ns;
}

static void expect_sound(void) {
    cr_assert(points.count && points.count <= room, "%u points", points.count);
    cr_assert_eq(records[0][0], first_ns, "the first point stays");
    cr_assert_eq(records[points.count - 1][0], last_ns, "the newest point is the last");
    cr_assert(is_there(highest_ns), "the highest point stays");
    for (uint32_t i = 1; i < points.count; i++) cr_assert_lt(records[i - 1][0], records[i][0]);
    for (uint32_t i = points.count; i < ROOM; i++) cr_assert_eq(records[i][0], 0);
}

Test(points, few_points_all_stay, .init = begin) {
    for (uint64_t i = 0; i < ROOM; i++) add(1 + i * 2 * MS, i % 7, 1);
    cr_expect_eq(points.count, ROOM);
    expect_sound();
}

Test(points, an_interval_has_its_highest_and_its_last, .init = begin) {
    add(5, 1, 1);
    add(6 * MS, 3, 0);
    add(6 * MS + 1, 9, 4);
    add(6 * MS + 2, 1, 0);
    add(6 * MS + 3, 2, 0);
    cr_assert_eq(points.count, 3);
    cr_expect(records[1][0] == 6 * MS + 1 && records[1][1] == 9 && records[1][2] == 4);
    cr_expect(records[2][0] == 6 * MS + 3 && records[2][1] == 2);
    add(6 * MS + 4, 20, 0);
    cr_expect_eq(points.count, 2, "the last one is the highest");
    expect_sound();
}

/* Expects that the highest and the last point of each interval are kept. */
static void expect_envelope(const uint64_t *heights, uint64_t step_ns, uint64_t count) {
    uint64_t from = 0;
    for (uint64_t to = 1; to <= count; to++) {
        uint64_t interval = from * step_ns / points.interval_ns, most = 0, found = 0, last = 0;
        if (to < count && to * step_ns / points.interval_ns == interval) continue;
        for (uint64_t i = from; i < to; i++) most = heights[i] > most ? heights[i] : most;
        for (uint32_t i = 0; i < points.count; i++)
            if ((records[i][0] - first_ns) / points.interval_ns == interval) {
                found = records[i][1] > found ? records[i][1] : found;
                last = records[i][1];
            }
        cr_assert_eq(found, most, "the highest of interval %lu", interval);
        cr_assert_eq(last, heights[to - 1], "the last of interval %lu", interval);
        from = to;
    }
}

Test(points, a_million_points, .init = begin) {
    const uint64_t step = 40 * MS;
    for (uint64_t i = 0, random = 1; i < ADDED_MOST; i++) {
        random = random * 6364136223846793005 + 1442695040888963407;
        added[i] = 1 + (random >> 44);
        add(1 + i * step, added[i], 0);
    }
    expect_sound();
    expect_envelope(added, step, ADDED_MOST);
    cr_expect_gt(points.count, ROOM / 4, "room is used");
}

Test(points, a_reader_at_every_step, .init = begin) {
    checked = true;
    for (uint64_t i = 0, random = 7; i < 3000; i++) {
        random = random * 6364136223846793005 + 1442695040888963407;
        add(1 + i * MS + (random >> 45) % MS, 1 + (random >> 50), 1);
    }
    expect_sound();
}

/* An hour between two points, then a burst. */
Test(points, rare_and_many, .init = begin) {
    for (uint64_t i = 0; i < 40; i++) add(1 + i * 3600000 * (uint64_t)MS, 100 + i, 0);
    cr_expect_eq(points.count, 40);
    for (uint64_t i = 0; i < 10000; i++) add(2 + 39 * 3600000 * (uint64_t)MS + i * 2 * MS, i % 50, 1);
    expect_sound();
}

Test(points, little_room, .init = begin) {
    for (room = 0; room < 4; room++) {
        points.count = points.newest = 0;
        points.interval_ns = first_ns = highest = highest_ns = 0;
        memset(records, 0, sizeof records);
        for (uint64_t i = 0; i < 1000; i++) add(1 + i * MS, i % 10, 1);
        cr_expect_leq(points.count, room);
    }
}
