// Sections and series of the ledger: ids are stable, records do not move, threads may take records at the same time,
// and the file is a chain of sections without gaps.
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "preload/ledger/ledger.h"
#include "preload/ledger/ledger_strings.h"
#include "preload/ledger/series.h"
#include "preload/shared/os.h"
#include "preload/base/seal.h"

static char path[64];

static struct ledger_identity identity(void) {
    snprintf(path, sizeof path, "/tmp/memstow-unit-%d.mst", (int)getpid());
    return (struct ledger_identity){.path = path, .name = "unit", .exe = "/bin/unit", .command = "unit test"};
}

static void begin(void) {
    struct ledger_identity who = identity();
    cr_assert(ledger_begin(&who));
}

static void end(void) { unlink(path); }

/* Reads the file as a reader does. Returns the number of records of the type in all sections. */
static uint64_t records_in_file(uint32_t type) {
    FILE *file = fopen(path, "rb");
    struct snap_header head;
    cr_assert(file && fread(&head, sizeof head, 1, file) == 1);
    uint64_t at = head.header_size, count = 0, next = 0;
    while (at < head.size) {
        struct snap_section section;
        fseek(file, (long)at, SEEK_SET);
        cr_assert_eq(fread(&section, sizeof section, 1, file), 1, "section at %lu", at);
        cr_assert(section.length >= sizeof section && at + section.length <= head.size, "section at %lu", at);
        cr_assert_leq(section.count * section.record_size, section.length - sizeof section);
        if (section.type == type) {
            cr_assert_eq(section.first, next, "ids go on from section to section");
            uint64_t capacity = (section.length - sizeof section) / section.record_size;
            next = section.count < capacity ? section.first + section.count : section.first + capacity;
            count += section.count;
        }
        at += section.length;
    }
    cr_assert_eq(at, head.size);
    fclose(file);
    return count;
}

enum { TYPE = 77 };

Test(series, ids_count_up_and_records_stay, .init = begin, .fini = end) {
    static struct series series = {.type = TYPE, .record_size = 24, .first_bits = 3, .limit = 100000};
    static char *records[100000];
    for (uint32_t id = 0; id < 100000; id++) {
        cr_assert_eq(series_take(&series), id);
        records[id] = series_at(&series, id);
        cr_assert(records[id]);
        memcpy(records[id], &id, sizeof id);
    }
    cr_assert_eq(series_take(&series), SERIES_NONE, "beyond the limit");
    for (uint32_t id = 0; id < 100000; id++) {
        cr_assert_eq(series_at(&series, id), records[id]);
        cr_assert_eq(memcmp(records[id], &id, sizeof id), 0);
    }
    cr_assert_null(series_at(&series, SERIES_NONE));
    cr_assert_eq(records_in_file(TYPE), 100000);
}

/* The records take 64 MB: many pieces of the file, and several windows of address space. */
Test(series, grows_through_windows, .init = begin, .fini = end) {
    static struct series series = {.type = TYPE, .record_size = 4096, .first_bits = 0, .limit = 16000};
    for (uint32_t id = 0; id < 16000; id++) {
        cr_assert_eq(series_take(&series), id);
        memset(series_at(&series, id), 1 + id % 255, 4096);
    }
    for (uint32_t id = 0; id < 16000; id++)
        for (int i = 0; i < 4096; i += 1024) cr_assert_eq(((uint8_t *)series_at(&series, id))[i], 1 + id % 255);
    cr_assert_eq(records_in_file(TYPE), 16000);
    cr_assert_eq(ledger_head->lost[SNAP_LOST_FILE], 0);
}

enum { THREADS = 4, EACH = 20000 };
static struct series shared = {.type = TYPE, .record_size = 32, .first_bits = 2, .limit = THREADS * EACH};

static void *take_many(void *argument) {
    uint64_t me = (uint64_t)(uintptr_t)argument;
    for (uint64_t i = 0; i < EACH; i++) {
        uint64_t *record = series_at(&shared, series_take(&shared));
        if (!record) return argument;
        __atomic_store_n(&record[0], me, __ATOMIC_RELAXED);
        __atomic_store_n(&record[1], i, __ATOMIC_RELAXED);
    }
    return NULL;
}

Test(series, threads_take_different_ids, .init = begin, .fini = end) {
    pthread_t threads[THREADS];
    static uint8_t seen[THREADS + 1][EACH];
    for (uintptr_t t = 0; t < THREADS; t++) pthread_create(&threads[t], NULL, take_many, (void *)(t + 1));
    for (int t = 0; t < THREADS; t++) {
        void *failed;
        pthread_join(threads[t], &failed);
        cr_assert_null(failed);
    }
    for (uint32_t id = 0; id < THREADS * EACH; id++) {
        uint64_t *record = series_at(&shared, id);
        cr_assert(record[0] >= 1 && record[0] <= THREADS && !seen[record[0]][record[1]]++);
    }
    cr_assert_eq(records_in_file(TYPE), THREADS * EACH);
}

Test(series, strings_are_found_again, .init = begin, .fini = end) {
    uint32_t at[3000];
    char text[100];
    cr_assert_eq(ledger_string(""), 0);
    for (int i = 0; i < 3000; i++) {
        snprintf(text, sizeof text, "string number %d", i);
        at[i] = ledger_string(text);
        cr_assert(at[i] != 0 && (i == 0 || at[i] > at[i - 1]));
    }
    static char huge[1 << 20];
    memset(huge, 'x', sizeof huge - 1);
    cr_assert_eq(ledger_string(huge), 0, "does not fit");
}

Test(series, the_end_gives_room_back_and_the_ledger_goes_on, .init = begin, .fini = end) {
    struct stat before, after;
    stat(path, &before);
    ledger_end(SNAP_EXITED);
    stat(path, &after);
    cr_assert_lt(after.st_size, before.st_size);
    cr_assert_eq(ledger_head->state, SNAP_EXITED);
    ledger_resume();
    cr_assert_eq(ledger_head->state, SNAP_RUNNING);
    static struct series series = {.type = TYPE, .record_size = 64, .first_bits = 10, .limit = 100000};
    for (uint32_t id = 0; id < 50000; id++) cr_assert_eq(series_take(&series), id);
    cr_assert_eq(records_in_file(TYPE), 50000);
}

/* The lock for growth is released although the file is gone. */
Test(series, the_end_without_a_file_is_no_dead_end, .init = begin, .fini = end) {
    unlink(path);
    ledger_end(SNAP_EXECED);
    ledger_resume();
    cr_assert(ledger_string("there is room left in what is mapped") != 0);
    static struct series series = {.type = TYPE, .record_size = 64, .first_bits = 2, .limit = 100000};
    cr_assert_eq(series_take(&series), 0);
}

Test(series, a_sealed_ledger_uses_what_it_has, .init = begin, .fini = end) {
    static struct series series = {.type = TYPE, .record_size = 64, .first_bits = 2, .limit = 1000000};
    seal_leave(true);
    uint32_t taken = 0;
    while (series_take(&series) != SERIES_NONE) taken++;
    cr_assert(taken > 100 && taken < 100000);
    cr_assert(ledger_head->lost[SNAP_LOST_FILE] > 0);
}

Test(memory, without_a_file_the_shape_is_the_same) {
    struct ledger_identity who = identity();
    who.path = NULL;
    cr_assert(ledger_begin(&who));
    cr_assert(ledger_head->flags & SNAP_MEMORY_ONLY);
    static struct series series = {.type = TYPE, .record_size = 4096, .first_bits = 2, .limit = 1000000};
    uint32_t taken = 0;
    while (series_take(&series) != SERIES_NONE) taken++;
    cr_assert_gt(taken, 4000);
    cr_assert_eq(access(path, F_OK), -1);
    ledger_end(SNAP_EXITED);
}

Test(memory, a_foreign_file_is_left_alone) {
    struct ledger_identity who = identity();
    FILE *file = fopen(path, "w");
    fputs("precious", file);
    fclose(file);
    cr_assert(ledger_begin(&who));
    cr_assert(ledger_head->flags & SNAP_MEMORY_ONLY);
    ledger_end(SNAP_EXITED);
    char text[20] = {0};
    file = fopen(path, "r");
    cr_assert(fgets(text, sizeof text, file));
    fclose(file);
    unlink(path);
    cr_assert_str_eq(text, "precious");
}
