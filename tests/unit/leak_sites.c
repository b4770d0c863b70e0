/* leak_sites.c — the memory of sites by run, differences between readings, and a series that is written and read
 * again. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tools/leaks/leaks.h"
#include "tools/leaks/series.h"

enum { RUNS_MOST = 1200, MODEL_OWNER = 1, NODE_OWNER = 2, FIRST_RUN = 3 };

static char strings[] = "\0model\0node\0run\0origin";
static struct leak_sites sites;

/* A process of up to RUNS_MOST runs. Each run left memory at a site of the model. One more site has no owner. */
struct process {
    struct snap_owner owners[RUNS_MOST + 2];
    struct snap_tag tags[RUNS_MOST + 1];
    struct total totals[RUNS_MOST + 1];
    struct image image;
};

static struct image *process_of(struct process *self, uint32_t runs, bool on, uint64_t left, uint64_t untagged) {
    memset(self, 0, sizeof *self);
    self->owners[0] = (struct snap_owner){.id = MODEL_OWNER, .kind = SNAP_OWNER_MODEL, .name = 1, .origin = 16};
    self->owners[1] = (struct snap_owner){.id = NODE_OWNER, .kind = SNAP_OWNER_NODE, .name = 7};
    self->totals[0] = (struct total){.class = SNAP_HOST, .alloc_bytes = untagged, .alloc_blocks = 1};
    for (uint32_t i = 0; i < runs; i++) {
        bool last = on && i + 1 == runs;
        self->owners[2 + i] = (struct snap_owner){.id = FIRST_RUN + i,
                                                  .kind = SNAP_OWNER_RUN,
                                                  .name = 12,
                                                  .state = last ? SNAP_OWNER_LIVE : SNAP_OWNER_RETIRED,
                                                  .end_ns = last ? 0 : i + 1};
        self->tags[1 + i] = (struct snap_tag){MODEL_OWNER, NODE_OWNER, FIRST_RUN + i, 0};
        self->totals[1 + i] = (struct total){.class = SNAP_HOST, .tag = 1 + i, .alloc_bytes = left, .alloc_blocks = 1};
    }
    self->image = (struct image){.header = {.taken_ns = 1000 + runs},
                                 .strings = strings,
                                 .strings_size = sizeof strings,
                                 .owners = self->owners,
                                 .owner_count = 2 + runs,
                                 .tags = self->tags,
                                 .tag_count = 1 + runs,
                                 .totals = self->totals,
                                 .total_count = 1 + runs};
    return &self->image;
}

static struct process *make(void) {
    struct process *self = calloc(1, sizeof *self);
    cr_assert(self);
    leak_sites_begin(&sites);
    return self;
}

Test(leak_sites, what_is_left_of_each_run) {
    struct process *process = make();
    cr_assert_eq(leak_sites_read(&sites, process_of(process, 10, true, 5000, 70)), 0);
    cr_expect_eq(sites.count, 2);
    cr_expect_eq(sites.run_count, 9, "the one that is on is none");
    cr_expect_eq(sites.left.count, 9);
    cr_expect_eq(sites.list[1].live_bytes, 9 * 5000);
    for (uint32_t i = 0; i < 9; i++) {
        cr_expect_eq(sites.left.list[i].change.point, i);
        cr_expect_eq(sites.left.list[i].change.bytes, 5000);
    }
    leak_sites_end(&sites);
    free(process);
}

/* Only device memory and pinned memory of CUDA are judged. Other kinds are counted elsewhere, or are no memory. A stack
 * with device and host memory is two sites. */
Test(leak_sites, cuda_memory) {
    static const uint8_t kinds[] = {
        0, SNAP_CUDA_DEVICE_MEMORY, SNAP_CUDA_PINNED, SNAP_CUDA_REGISTERED, SNAP_CUDA_GRAPH, SNAP_CUDA_RESERVED};
    enum { KINDS = sizeof kinds };
    struct process *process = make();
    struct image *image = process_of(process, 10, false, 5000, 70);
    struct snap_cuda_site records[KINDS] = {{0}};
    struct total totals[KINDS] = {{0}};
    for (uint32_t i = 1; i < KINDS; i++) {
        records[i].kind = kinds[i];
        totals[i] = (struct total){.class = SNAP_ON_CUDA, .tag = 3, .alloc_bytes = i * 1000000, .alloc_blocks = 1};
    }
    image->cuda = (struct cuda_image){.used = true, .sites = records, .totals = totals, .site_count = KINDS};
    cr_assert_eq(leak_sites_read(&sites, image), 0);
    cr_expect_eq(sites.count, 3);
    cr_expect(!sites.list[1].on_cuda && sites.list[1].live_bytes == 10 * 5000 + 2000000);
    cr_expect(sites.list[2].on_cuda && sites.list[2].live_bytes == 1000000);
    leak_sites_end(&sites);
    free(process);
}

/* Reads the process after each of these runs. */
static void take_points(struct process *process, uint32_t from, uint32_t to) {
    for (uint32_t run = from; run < to; run++) {
        cr_assert_eq(leak_sites_read(&sites, process_of(process, run, false, 5000, 100 * (run + 1))), 0);
        cr_assert_eq(leak_sites_point(&sites, &process->image), 0);
    }
    cr_assert_eq(leak_entries_sort(&sites.moved, sites.count, sites.point_count), 0);
}

static int64_t sum_of(uint32_t site) {
    int64_t sum = 0;
    for (size_t i = 0; i < sites.moved.count; i++)
        if (sites.moved.list[i].site == site) sum += sites.moved.list[i].change.bytes;
    return sum;
}

Test(leak_sites, readings_say_what_changed) {
    struct process *process = make();
    take_points(process, 0, 20);
    cr_expect_eq(sites.point_count, 20);
    cr_expect_eq(sum_of(0), 2000);
    cr_expect_eq(sum_of(1), 19 * 5000);
    cr_expect_eq(sites.points[7].runs, 1);
    cr_expect_eq(sites.points[7].live_bytes, 7 * 5000 + 800);
    struct leaks leaks;
    cr_assert_eq(leaks_find(&leaks, &sites, &process->image, 10), 0);
    cr_expect_eq(leaks.count, 2);
    cr_expect_eq(leaks.list[0].judged.bytes_per_run, 5000.0);
    cr_expect_eq(leaks.list[1].judged.bytes_per_run, 100.0);
    cr_expect(leaks.list[1].by_readings && leaks.list[1].oldest == UINT32_MAX);
    leaks_clear(&leaks);
    leak_sites_end(&sites);
    free(process);
}

/* If there are too many readings, every two neighbouring readings are joined into one. The sums and the number of
 * runs stay the same. */
Test(leak_sites, readings_are_bounded) {
    struct process *process = make();
    take_points(process, 0, 1100);
    cr_expect_eq(sites.point_count, LEAK_POINTS_MOST / 2 + 1100 - LEAK_POINTS_MOST);
    cr_expect_eq(sum_of(1), 1099 * 5000);
    uint32_t runs = 0;
    for (uint32_t i = 0; i < sites.point_count; i++) runs += sites.points[i].runs;
    cr_expect_eq(runs, 1099);
    leak_sites_end(&sites);
    free(process);
}

/* Memory that came and went takes no room from readings of live memory. */
Test(leak_sites, sites_that_are_gone_make_room) {
    struct process *process = make();
    take_points(process, 0, 20);
    struct leak_site *gone = leak_sites_find(&sites, 0, 0, 1),
                     *here = leak_sites_look(&sites, 0, 0, sites.list[0].path);
    uint32_t at = (uint32_t)(gone - sites.list);
    for (int i = 0; i < LEAK_CHANGES_MOST; i++)
        cr_assert_eq(leak_entries_add(&sites.moved, at, (struct leak_change){i % 20, i % 2 ? -64 : 64, 0, 0}), 0);
    take_points(process, 20, 21);
    cr_expect_eq(sites.point_count, 21);
    cr_expect_eq(sum_of(at), 0);
    cr_expect_eq(sum_of(0), 2100);
    cr_expect_eq(here->live_bytes, 2100);
    leak_sites_end(&sites);
    free(process);
}

Test(leak_sites, a_series_is_read_as_it_was_written) {
    static struct leak_sites again;
    struct process *process = make();
    take_points(process, 0, 30);
    cr_assert_eq(series_pack(&sites, &process->image), 0);
    leak_sites_begin(&again);
    cr_assert_eq(leak_sites_read(&again, &process->image), 0);
    cr_assert_eq(series_unpack(&again, &process->image), 0);
    cr_assert_eq(again.point_count, sites.point_count);
    cr_expect_eq(memcmp(again.points, sites.points, sizeof sites.points), 0);
    cr_assert_eq(again.moved.count, sites.moved.count);
    for (size_t i = 0; i < sites.moved.count; i++) {
        const struct leak_change *was = &sites.moved.list[i].change, *is = &again.moved.list[i].change;
        cr_expect(was->point == is->point && was->bytes == is->bytes && was->blocks == is->blocks);
    }
    for (size_t cut = 0; cut < process->image.series_size; cut++) { /* shorter than it says: damaged, or just empty */
        struct image image = process->image;
        image.series_size = cut;
        leak_sites_end(&again);
        cr_assert_eq(leak_sites_read(&again, &image), 0);
        cr_expect_eq(series_unpack(&again, &image), cut ? -2 : 0, "%zu", cut);
    }
    free(process->image.series);
    leak_sites_end(&again);
    leak_sites_end(&sites);
    free(process);
}
