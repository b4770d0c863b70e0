/* top_sampling.c — looks of `memstow top` at a ledger in memory: what is read again, and what is refused. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "builder.h"
#include "tools/proc/process.h"
#include "tools/top/grouping.h"

enum { SITE = 20, MARKED = SNAP_CHUNK_SITES + 20, SITES = 2 * SNAP_CHUNK_SITES, BLOCK = 4096 };

struct seen {
    struct builder ledger;
    struct sampling sampling;
    size_t sites, chunk, marked; /* offsets of sections; `marked` is a chunk of counters that has a mark */
    char error[300];
};

/* Makes a ledger that claims to belong to this process, so that its process is found running. */
static void seen_begin(struct seen *seen) {
    struct process self;
    uint64_t words[SITES] = {0};
    *seen = (struct seen){.sites = 0};
    cr_assert_eq(process_look(&self, getpid()), 0);
    words[SITE] = SNAP_SITE_FREE;
    builder_begin(&seen->ledger, SNAP_LEDGER);
    builder_modules(&seen->ledger);
    seen->sites = builder_section(&seen->ledger, SNAP_SITE, sizeof *words, words, SITES, 0);
    seen->chunk = seen->ledger.size;
    builder_word(&seen->ledger, 0, SITE, 0);
    seen->marked = seen->ledger.size;
    builder_word(&seen->ledger, SNAP_THREAD_FIRST, MARKED, 0);
    struct snap_header *header = builder_header(&seen->ledger);
    header->state = SNAP_RUNNING;
    header->pid = (uint32_t)getpid();
    header->start_ticks = self.start_ticks;
    struct sampling *sampling = &seen->sampling;
    *sampling = (struct sampling){.pid = getpid()};
    source_buffer(&sampling->source, seen->ledger.bytes, seen->ledger.size);
    sampling->reader = (struct reader){.image = &sampling->image, .source = &sampling->source, .live = true};
}

static void seen_end(struct seen *seen) {
    sampling_end(&seen->sampling);
    builder_end(&seen->ledger);
}

static int look(struct seen *seen) { return sampling_look(&seen->sampling, seen->error, sizeof seen->error); }

static struct snap_chunk *chunk_of(struct seen *seen) {
    return (struct snap_chunk *)(void *)(seen->ledger.bytes + seen->chunk + sizeof(struct snap_section));
}

static struct snap_chunk *marked_of(struct seen *seen) {
    return (struct snap_chunk *)(void *)(seen->ledger.bytes + seen->marked + sizeof(struct snap_section));
}

static void word_set(struct seen *seen, uint32_t site, uint64_t word) {
    uint8_t *words = seen->ledger.bytes + seen->sites + sizeof(struct snap_section);
    memcpy(words + site * sizeof word, &word, sizeof word);
}

/* `count` blocks were allocated and none was freed. */
static void blocks_set(struct seen *seen, uint32_t site, uint64_t count) {
    chunk_of(seen)->words[site % SNAP_CHUNK_SITES] = BLOCK | count << 32;
}

static void expect_module(struct grouping *grouping, uint64_t module, int64_t live) {
    uint32_t row = rows_find(&grouping->rows, module);
    cr_expect_eq(grouping->rows.live[row], live, "module %d: %lld", (int)module, (long long)grouping->rows.live[row]);
}

/* At the first look the site has no word: a fold has freed its id, or a thread has just taken the id. The site gets its
 * word after that look. */
static void word_comes_later(uint64_t before) {
    struct seen seen;
    struct grouping grouping;
    seen_begin(&seen);
    word_set(&seen, SITE, before);
    cr_assert_eq(look(&seen), 0, "%s", seen.error);
    grouping_begin(&grouping, BY_MODULE);
    cr_assert_eq(grouping_take(&grouping, &seen.sampling), 0);
    word_set(&seen, SITE, snap_site(0, 0, 2).word);
    blocks_set(&seen, SITE, 3);
    cr_assert_eq(look(&seen), 0, "%s", seen.error);
    cr_assert_eq(grouping_take(&grouping, &seen.sampling), 0);
    expect_module(&grouping, 2, 3 * BLOCK);
    expect_module(&grouping, 0, 0);
    grouping_end(&grouping);
    seen_end(&seen);
}

Test(top_sampling, an_id_is_used_again) { word_comes_later(SNAP_SITE_FREE); }
Test(top_sampling, an_id_has_no_word_yet) { word_comes_later(0); }

/* Sets the number of the first module in the section of modules. If `first` is not 0, the modules before it
 * are missing, and a look fails when it reads the modules. Such a look has already read the counts. */
static void modules_spoil(struct seen *seen, uint64_t first) {
    const struct reader *reader = &seen->sampling.reader;
    for (size_t i = 0; i < reader->section_count; i++)
        if (reader->sections[i].head.type == SNAP_MODULE)
            builder_head(&seen->ledger, reader->sections[i].data - sizeof(struct snap_section))->first = first;
}

Test(top_sampling, a_failed_look_is_made_up_for) {
    struct seen seen;
    seen_begin(&seen);
    cr_assert_eq(look(&seen), 0, "%s", seen.error);
    cr_assert_eq(seen.sampling.image.module_count, 2);
    blocks_set(&seen, SITE, 3);
    modules_spoil(&seen, 5);
    cr_assert_eq(look(&seen), -1);
    cr_expect_eq(seen.sampling.image.module_count, 0, "a table that could not be read is empty");
    modules_spoil(&seen, 0);
    cr_assert_eq(look(&seen), 0, "%s", seen.error);
    cr_expect(seen.sampling.anew, "the rows did not take the changes of the look that failed");
    cr_expect_eq(seen.sampling.totals.host, 3 * BLOCK);
    cr_assert_eq(look(&seen), 0, "%s", seen.error);
    cr_expect(!seen.sampling.anew);
    seen_end(&seen);
}

/* The test changes counters without a mark, which no program does, to see whether they are read. */
static void changed_unmarked(struct seen *seen, uint64_t count) {
    marked_of(seen)->words[MARKED % SNAP_CHUNK_SITES] = BLOCK | count << 32;
}

Test(top_sampling, only_chunks_whose_mark_changed_are_read) {
    struct seen seen;
    seen_begin(&seen);
    changed_unmarked(&seen, 1);
    cr_assert_eq(look(&seen), 0, "%s", seen.error);
    cr_expect_eq(seen.sampling.totals.host, BLOCK, "the first look reads everything");
    changed_unmarked(&seen, 3);
    cr_assert_eq(look(&seen), 0, "%s", seen.error);
    cr_expect_eq(seen.sampling.totals.host, BLOCK, "without a new mark nothing is read");
    marked_of(&seen)->mark++;
    cr_assert_eq(look(&seen), 0, "%s", seen.error);
    cr_expect_eq(seen.sampling.totals.host, 3 * BLOCK);
    cr_assert_eq(seen.sampling.change_count, 1);
    cr_expect_eq(seen.sampling.changes[0].site, MARKED);
    cr_expect_eq(sampling_thread(&seen.sampling, SNAP_THREAD_FIRST).alloc_blocks, 3);
    seen_end(&seen);
}

Test(top_sampling, the_first_chunk_is_always_read) {
    struct seen seen;
    seen_begin(&seen);
    for (uint64_t count = 1; count < 4; count++) {
        blocks_set(&seen, SITE, count);
        cr_assert_eq(look(&seen), 0, "%s", seen.error);
        cr_expect_eq(seen.sampling.totals.host, count * BLOCK);
    }
    seen_end(&seen);
}

/* A fold moves counters to other sites and writes no marks, so after a fold everything must be read. */
Test(top_sampling, after_a_fold_everything_is_read) {
    struct seen seen;
    seen_begin(&seen);
    cr_assert_eq(look(&seen), 0, "%s", seen.error);
    changed_unmarked(&seen, 3);
    builder_header(&seen.ledger)->fold_sequence += 2;
    cr_assert_eq(look(&seen), 0, "%s", seen.error);
    cr_expect_eq(seen.sampling.totals.host, 3 * BLOCK);
    seen_end(&seen);
}

/* A process may be killed after it has counted an event, but before it has written the mark. So the last look reads
 * everything. */
Test(top_sampling, the_last_look_reads_everything) {
    struct seen seen;
    seen_begin(&seen);
    cr_assert_eq(look(&seen), 0, "%s", seen.error);
    changed_unmarked(&seen, 3);
    builder_header(&seen.ledger)->start_ticks++; /* as if another process had the pid now */
    cr_assert_eq(look(&seen), 0, "%s", seen.error);
    cr_assert_eq(seen.sampling.state, SAMPLING_ENDED);
    cr_expect_eq(seen.sampling.totals.host, 3 * BLOCK);
    seen_end(&seen);
}

/* The ledger of a program that was started with an older library has chunks without marks. */
Test(top_sampling, chunks_without_marks_are_always_read) {
    enum { OLD_SIZE = offsetof(struct snap_chunk, mark) };
    struct seen seen;
    seen_begin(&seen);
    builder_head(&seen.ledger, seen.marked)->record_size = OLD_SIZE;
    for (uint64_t count = 1; count < 4; count++) {
        changed_unmarked(&seen, count);
        cr_assert_eq(look(&seen), 0, "%s", seen.error);
        cr_expect_eq(seen.sampling.totals.host, count * BLOCK);
    }
    seen_end(&seen);
}

Test(top_sampling, a_bad_header_leaves_the_last_one) {
    struct seen seen;
    seen_begin(&seen);
    cr_assert_eq(look(&seen), 0, "%s", seen.error);
    builder_header(&seen.ledger)->magic[0] ^= 1;
    cr_assert_eq(look(&seen), -1);
    cr_expect_str_eq(seen.sampling.image.header.name, "program");
    cr_expect_eq(seen.sampling.totals.host, 0);
    seen_end(&seen);
}

Test(top_sampling, an_impossible_chunk_is_refused) {
    struct seen seen;
    seen_begin(&seen);
    chunk_of(&seen)->index = UINT32_MAX / SNAP_CHUNK_SITES + 1;
    cr_assert_eq(look(&seen), -1);
    cr_expect(strstr(seen.error, "counters of an impossible site"), "%s", seen.error);
    seen_end(&seen);
}

/* A damaged section may say that its first site has any number. */
Test(top_sampling, impossible_sites_are_refused) {
    struct seen seen;
    seen_begin(&seen);
    builder_head(&seen.ledger, seen.sites)->first = UINT32_MAX - SITES;
    cr_assert_eq(look(&seen), -1);
    cr_expect(strstr(seen.error, "more sites than the file can hold"), "%s", seen.error);
    seen_end(&seen);
}

/* The header says that its process is this one. This process has no ledger, so the ledger of a next program is never
 * found. */
Test(top_sampling, an_exec_is_waited_for) {
    struct seen seen;
    seen_begin(&seen);
    struct snap_header *header = builder_header(&seen.ledger);
    cr_assert_eq(look(&seen), 0, "%s", seen.error);
    for (int round = 0; round < 3; round++) { /* execvp tries one folder after the other */
        header->state = SNAP_EXECED;
        for (int i = 0; i < 3; i++) cr_assert_eq(look(&seen), 0, "%s", seen.error);
        cr_assert_eq(seen.sampling.state, SAMPLING_RUNS);
        header->state = SNAP_RUNNING;
        cr_assert_eq(look(&seen), 0, "%s", seen.error);
        cr_assert_eq(seen.sampling.exec_waits, 0);
    }
    header->state = SNAP_EXECED;
    for (int i = 0; i < 5; i++) {
        cr_assert_eq(seen.sampling.state, SAMPLING_RUNS, "look %d", i);
        cr_assert_eq(look(&seen), 0, "%s", seen.error);
    }
    cr_assert_eq(seen.sampling.state, SAMPLING_REPLACED);
    seen_end(&seen);
}

Test(top_sampling, the_ledger_of_the_next_program) {
    struct snap_header old = {.start_ns = 10, .state = SNAP_EXECED}, same = old;
    struct snap_header next = {.start_ns = 20, .state = SNAP_RUNNING}, goes_on = {.start_ns = 20, .state = SNAP_EXECED};
    cr_expect(sampling_is_next(&old, &next));
    cr_expect(!sampling_is_next(&old, &same), "execve has not happened yet");
    same.state = SNAP_RUNNING;
    cr_expect(!sampling_is_next(&old, &same), "execve has failed");
    cr_expect(!sampling_is_next(&old, &goes_on), "it becomes a third program just now");
}

/* Rows that only devices have. */
Test(top_sampling, a_focus_holds_for_devices) {
    struct snap_tag tags[] = {{0}, {.model = 1}, {.model = 2}};
    struct snap_cuda_site cuda[2] = {{.tag = 1, .kind = SNAP_CUDA_DEVICE_MEMORY, .counter.alloc_bytes = 100},
                                     {.tag = 2, .kind = SNAP_CUDA_DEVICE_MEMORY, .counter.alloc_bytes = 200}};
    struct sampling sampling = {.anew = true, .cuda_sites = cuda, .cuda_site_count = 2};
    struct grouping grouping;
    int64_t shown = 0;
    sampling.image.tags = tags;
    sampling.image.tag_count = 3;
    grouping_begin(&grouping, BY_SITE);
    grouping.focus = (struct focus){true, BY_MODEL, 1};
    cr_assert_eq(grouping_take(&grouping, &sampling), 0);
    cr_expect_eq(grouping.rows.count, 2);
    for (uint32_t row = 0; row < grouping.rows.count; row++)
        shown += grouping.rows.matched[row] ? grouping.rows.device[row] : 0;
    cr_expect_eq(shown, 100);
    grouping_end(&grouping);
}

/* After an execve the process may have as many modules as before, so an equal number does not prove that they are
 * the same modules. */
Test(top_sampling, modules_of_the_next_program) {
    char strings[] = "\0/bin/a\0/bin/b";
    struct snap_module same[] = {{.path = 1}, {.path = 1}}, other[] = {{.path = 1}, {.path = 8}};
    struct sampling sampling = {.anew = true, .image = {.strings = strings, .strings_size = sizeof strings}};
    struct grouping grouping;
    sampling.image.modules = same;
    sampling.image.module_count = 2;
    grouping_begin(&grouping, BY_MODULE);
    cr_assert_eq(grouping_take(&grouping, &sampling), 0);
    cr_expect_eq(grouping.modules[2], 1);
    sampling.image.modules = other;
    cr_assert_eq(grouping_take(&grouping, &sampling), 0);
    cr_expect_eq(grouping.modules[2], 2);
    grouping_end(&grouping);
}
