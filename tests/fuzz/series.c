/* series.c — fuzz target: any readings and sites of a series are read, judged, merged in pairs, and packed again
 * without harm. An input is the section SERIES of a snapshot with two owners, three runs and four sites. */
#include <stdlib.h>
#include <string.h>

#include "tools/leaks/leaks.h"
#include "tools/leaks/series.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct snap_owner owners[] = {
    {.id = 1, .kind = SNAP_OWNER_MODEL, .name = 1, .state = SNAP_OWNER_RETIRED},
    {.id = 2, .kind = SNAP_OWNER_NODE, .name = 3, .state = SNAP_OWNER_LIVE},
    {.id = 3, .kind = SNAP_OWNER_RUN, .state = SNAP_OWNER_RETIRED},
    {.id = 4, .kind = SNAP_OWNER_RUN, .state = SNAP_OWNER_RETIRED},
    {.id = 5, .kind = SNAP_OWNER_RUN, .state = SNAP_OWNER_LIVE},
};
static struct snap_tag tags[] = {{0, 0, 0, 0}, {1, 0, 3, 0}, {1, 2, 4, 0}, {0, 2, 5, 0}};
static struct total totals[] = {
    {.tag = 0, .class = SNAP_HOST, .alloc_bytes = 100000, .alloc_blocks = 10},
    {.tag = 1, .class = SNAP_HOST, .alloc_bytes = 70000, .alloc_blocks = 1},
    {.tag = 2, .class = SNAP_MAPPED, .alloc_bytes = 200000, .alloc_blocks = 2, .free_bytes = 1},
    {.tag = 3, .class = SNAP_HOST, .alloc_bytes = 5, .alloc_blocks = 1},
};
static char strings[] = "\0m\0n";

static struct image image_of(const uint8_t *data, size_t size) {
    return (struct image){.header = {.state = SNAP_RUNNING, .taken_ns = 1000},
                          .strings = strings,
                          .strings_size = sizeof strings,
                          .owners = owners,
                          .owner_count = sizeof owners / sizeof *owners,
                          .tags = tags,
                          .tag_count = sizeof tags / sizeof *tags,
                          .totals = totals,
                          .total_count = sizeof totals / sizeof *totals,
                          .series = (uint8_t *)data,
                          .series_size = size};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct leak_sites sites;
    struct image image = image_of(data, size);
    struct leaks leaks;
    leak_sites_begin(&sites);
    if (leak_sites_read(&sites, &image) == 0 && series_unpack(&sites, &image) == 0) {
        if (leaks_find(&leaks, &sites, &image, 1) == 0) leaks_total(&leaks);
        leaks_clear(&leaks);
        if (leak_sites_halve(&sites) < 0 || leak_sites_point(&sites, &image) < 0) abort();
        image.series = NULL;
        if (leak_entries_sort(&sites.moved, sites.count, sites.point_count) < 0 || series_pack(&sites, &image) < 0)
            abort();
        free(image.series);
    }
    leak_sites_end(&sites);
    return 0;
}
