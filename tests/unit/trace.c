// The trace of decisions: its numbers have no gaps; its lines are whole, however often the ring is filled, and
// whichever thread writes; wrong lines are refused. The tools' reader reads the file, as after kill -9.
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "preload/ledger/ledger.h"
#include "preload/shared/os.h"
#include "preload/ledger/trace.h"
#include "preload/base/seal.h"
#include "tools/reader/image_load.h"
#include "tools/reader/trace_lines.h"

static char path[64];

static void begin(void) {
    snprintf(path, sizeof path, "/tmp/memstow-unit-%d.mst", (int)getpid());
    struct ledger_identity who = {.path = path, .name = "unit", .exe = "/bin/unit", .command = "unit test"};
    cr_assert(ledger_begin(&who));
}

static void end(void) { unlink(path); }

static int say(const char *text) { return trace_add_foreign(text, strlen(text)); }

/* The ledger as a reader has it while its process runs. */
static void load(struct image *image) {
    struct source source;
    FILE *file = fopen(path, "rb");
    cr_assert(file);
    cr_assert_eq(source_file(&source, dup(fileno(file))), 0);
    fclose(file);
    cr_assert_eq(source_map(&source), 0);
    cr_assert_eq(image_load(image, &source, true), 0, "%s", image->error);
    source_close(&source);
}

static uint64_t member(struct jsontext line, const char *name) {
    struct jsontext value;
    uint64_t number = UINT64_MAX;
    cr_assert(jsontext_member(line, name, &value) && jsontext_number(value, &number), "no %s in %.*s", name,
              (int)line.length, line.at);
    return number;
}

Test(trace, lines_get_a_number_and_a_time, .init = begin, .fini = end) {
    char line[SNAP_LINE_MOST + 1];
    uint64_t place = 0, number, before = os_now();
    cr_assert_eq(trace_read(&place, line, &number), 0);
    cr_assert_eq(say(" {\n\t\"kind\": \"SET\",\r\n \"a\":[1,\n2]} \n"), 0);
    cr_assert_eq(say("{}"), 0);
    cr_assert_eq(say("{ }"), 0);
    size_t length = trace_read(&place, line, &number);
    cr_assert(length && number == 1);
    line[length] = 0;
    uint64_t time = member((struct jsontext){line, length}, "t");
    cr_assert(time >= before && time <= os_now());
    char expected[200];
    snprintf(expected, sizeof expected, "{\"n\":1,\"t\":%llu,\"kind\": \"SET\",   \"a\":[1, 2]}",
             (unsigned long long)time);
    cr_expect_str_eq(line, expected);
    for (uint64_t n = 2; n <= 3; n++) {
        length = trace_read(&place, line, &number);
        cr_assert(length && number == n && jsontext_is_object(line, length));
    }
    cr_assert_eq(trace_read(&place, line, &number), 0);
}

Test(trace, what_is_no_object_or_has_members_of_ours_is_refused, .init = begin, .fini = end) {
    static const char *const bad[] = {"",
                                      " ",
                                      "{",
                                      "[]",
                                      "1",
                                      "{}{}",
                                      "{\"a\":}",
                                      "nonsense",
                                      "{\"n\":1}",
                                      "{\"t\":0}",
                                      "{\"a\":1,\"\\u006e\":2}",
                                      "{\"a\":\"\x80\"}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) cr_expect_eq(say(bad[i]), -EINVAL, "%s", bad[i]);
    cr_expect_eq(say("{\"a\":{\"n\":1,\"t\":2},\"nn\":3}"), 0);
    char text[TRACE_TEXT_MOST + 2];
    memset(text, ' ', sizeof text);
    memcpy(text, "{\"a\":\"", 6);
    memset(text + 6, 'x', TRACE_TEXT_MOST - 8);
    memcpy(text + TRACE_TEXT_MOST - 2, "\"}", 2);
    cr_expect_eq(trace_add_foreign(text, TRACE_TEXT_MOST), 0);
    cr_expect_eq(trace_add_foreign(text, TRACE_TEXT_MOST + 1), -EINVAL);
    uint64_t place = 0, number;
    char line[SNAP_LINE_MOST];
    while (trace_read(&place, line, &number)) cr_expect_leq(number, 2);
    cr_expect_eq(number, 2, "what is refused has no number");
}

Test(trace, without_a_line_there_is_no_ring, .init = begin, .fini = end) {
    struct image image;
    load(&image);
    cr_expect_eq(image.trace_size, 0);
    uint64_t size = ledger_head->size;
    image_clear(&image);
    cr_assert_eq(say("{}"), 0);
    cr_expect_gt(ledger_head->size, size + TRACE_SIZE);
    load(&image);
    size_t at = 0;
    struct trace_line line;
    cr_expect(trace_lines_next(&image, &at, &line) && line.number == 1);
    cr_expect_not(trace_lines_next(&image, &at, &line));
    image_clear(&image);
}

/* Lines of many lengths are added until they have filled the ring twice. Each line that is left is whole, and the last
 * lines are all there. */
Test(trace, the_ring_goes_round, .init = begin, .fini = end) {
    char text[TRACE_TEXT_MOST], line[SNAP_LINE_MOST];
    uint64_t added = 0;
    for (int i = 0; i < 3000; i++) {
        size_t fill = (size_t)i * 37 % 1500;
        int length = snprintf(text, sizeof text, "{\"i\":%d,\"fill\":\"%0*d\"}", i, (int)fill + 1, 0);
        cr_assert_eq(trace_add_foreign(text, (size_t)length), 0);
        added += (uint64_t)length;
    }
    cr_assert_gt(added, 2 * TRACE_SIZE, "it did go round");
    uint64_t place = 0, number, expected = 0, kept = 0;
    for (size_t length; (length = trace_read(&place, line, &number)); kept += length) {
        cr_assert(jsontext_is_object(line, length));
        cr_assert(!expected || number == expected, "%lu", (unsigned long)number);
        cr_assert_eq(member((struct jsontext){line, length}, "i"), number - 1);
        expected = number + 1;
    }
    cr_expect_eq(expected, 3001);
    cr_expect_gt(kept, TRACE_SIZE - 3 * SNAP_LINE_MOST - 3000 * 24, "no more than needed is gone");
    struct image image;
    struct trace_line read;
    load(&image);
    uint64_t in_file = 0;
    for (size_t at = 0; trace_lines_next(&image, &at, &read); in_file++)
        cr_assert_eq(member(read.object, "i"), read.number - 1);
    cr_expect_eq(read.number, 3000);
    cr_expect_gt(in_file, 500);
    image_clear(&image);
}

enum { THREADS = 4, EACH = 4000 };

static void *say_many(void *argument) {
    char text[200];
    for (int i = 0; i < EACH; i++) {
        int length = snprintf(text, sizeof text, "{\"thread\":%d,\"i\":%d,\"fill\":\"%0*d\"}", (int)(intptr_t)argument,
                              i, 1 + i % 100, 0);
        if (trace_add_foreign(text, (size_t)length) != 0) return argument;
    }
    return NULL;
}

/* A reader meanwhile finds whole lines with consecutive numbers, and the lines of each thread in order. */
Test(trace, threads_write_and_a_reader_reads, .init = begin, .fini = end) {
    pthread_t threads[THREADS];
    uint64_t last = 0;
    cr_assert_eq(say("{\"thread\":0,\"i\":0}"), 0);
    for (intptr_t i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, say_many, (void *)(i + 1)), 0);
    while (last < THREADS * EACH + 1) {
        struct image image;
        struct trace_line line;
        uint64_t latest[THREADS + 1] = {0}, before = 0;
        load(&image);
        for (size_t at = 0; trace_lines_next(&image, &at, &line); before = line.number) {
            cr_assert(!before || line.number == before + 1);
            uint64_t thread = member(line.object, "thread"), i = member(line.object, "i");
            cr_assert(!latest[thread] || i == latest[thread], "thread %d", (int)thread);
            latest[thread] = i + 1;
        }
        cr_assert_geq(before, last);
        last = before;
        image_clear(&image);
    }
    for (int i = 0; i < THREADS; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        cr_assert_null(failed);
    }
    cr_expect_eq(ledger_head->lost[SNAP_LOST_TRACE], 0);
}

Test(trace, what_the_program_scribbles_over_ends_the_lines, .init = begin, .fini = end) {
    char line[SNAP_LINE_MOST];
    uint64_t place = 0, number;
    for (int i = 0; i < 100; i++) cr_assert_eq(say("{\"a\":1}"), 0);
    cr_assert(trace_read(&place, line, &number));
    struct snap_section *section = (void *)((char *)ledger_head + ledger_head->header_size);
    while (section->type != SNAP_TRACE) section = (void *)((char *)section + section->length);
    struct snap_ring *ring = (void *)(section + 1);
    uint64_t second = place;
    ((char *)(ring + 1))[second + sizeof(struct snap_line) + 20] ^= 1;
    cr_expect_eq(trace_read(&place, line, &number), 0, "its check sum is another");
    cr_expect_eq(place, second);
    memset((char *)(ring + 1) + place, 0xff, TRACE_SIZE / 2);
    cr_expect_eq(trace_read(&place, line, &number), 0);
    for (int i = 0; i < 60000; i++) cr_assert_eq(say("{\"b\":1}"), 0);
    place = 0;
    while (trace_read(&place, line, &number)) continue;
    cr_expect_eq(number, 60100, "it goes on");
    ring->start = ring->end + 8;
    cr_assert_eq(say("{\"c\":1}"), 0);
    ring->end = UINT64_MAX - 7;
    cr_assert_eq(say("{\"c\":1}"), 0);
}

Test(trace, a_ledger_without_room_counts_what_is_lost, .init = begin, .fini = end) {
    seal_leave(true);
    cr_expect_eq(say("{}"), -ENOMEM);
    cr_expect_eq(say("{}"), -ENOMEM);
    cr_expect_eq(ledger_head->lost[SNAP_LOST_TRACE], 2);
}

Test(trace, without_a_ledger_there_is_none) {
    uint64_t place = 0, number;
    char line[SNAP_LINE_MOST];
    cr_expect_eq(say("{}"), -ENODEV);
    cr_expect_eq(trace_read(&place, line, &number), 0);
}

Test(trace, a_forked_child_begins_anew, .init = begin, .fini = end) {
    cr_assert_eq(say("{\"a\":1}"), 0);
    trace_abandon(); /* as in a child, which has a ledger of its own */
    cr_assert_eq(say("{\"a\":1}"), 0);
    uint64_t place = 0, number;
    char line[SNAP_LINE_MOST];
    cr_expect(trace_read(&place, line, &number));
    cr_expect_eq(number, 1);
    cr_expect_eq(trace_read(&place, line, &number), 0);
}

Test(line, whatever_the_text_it_is_json, .init = begin, .fini = end) {
    struct line line;
    char text[400], read[SNAP_LINE_MOST], back[400];
    uint64_t place = 0, number;
    for (unsigned i = 0; i < sizeof text - 1; i++) text[i] = (char)(1 + i % 255);
    text[sizeof text - 1] = 0;
    line_begin(&line, "TEST");
    line_string(&line, "bytes", text);
    line_string(&line, "name",
                "\"Modell\" gr\xc3\xb6\xc3\x9f"
                "er\\\n");
    line_signed(&line, "least", INT64_MIN);
    line_number(&line, "most", UINT64_MAX);
    line_pair(&line, "keys", 0, UINT64_MAX);
    trace_add_line(&line);
    struct jsontext object = {read, trace_read(&place, read, &number)}, value;
    cr_assert(jsontext_is_object(object.at, object.length), "%.*s", (int)object.length, object.at);
    cr_assert(jsontext_member(object, "name", &value) && jsontext_string(value, back, sizeof back));
    cr_expect_str_eq(back, "\"Modell\" gr\xc3\xb6\xc3\x9f"
                           "er\\\n");
    cr_assert(jsontext_member(object, "least", &value));
    cr_expect_eq(strncmp(value.at, "-9223372036854775808", value.length), 0);
    cr_expect_eq(member(object, "most"), UINT64_MAX);
    cr_assert(jsontext_member(object, "bytes", &value) && jsontext_string(value, back, sizeof back));
    cr_expect_eq(strlen(back), LINE_STRING);
    cr_expect_eq(strncmp(back, text, 127), 0, "ASCII stands for itself, control characters too");
}
