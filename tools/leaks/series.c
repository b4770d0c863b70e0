/* series.c — see series.h. All numbers are unsigned LEB128. Numbers that may be negative have the sign in the lowest
 * bit. */
#include "tools/leaks/series.h"
#include "tools/base/list.h"

#include <stdlib.h>
#include <string.h>

enum { RUNS_MOST = 1 << 30 };

/* --- packing a series --- */

struct bytes {
    uint8_t *list;
    size_t count, capacity;
};

static int number_put(struct bytes *bytes, uint64_t number) {
    if (!list_grow(&bytes->list, 1, bytes->count, SNAP_NUMBER_MAX, &bytes->capacity)) return -1;
    bytes->count = (size_t)(snap_put_number(bytes->list + bytes->count, number) - bytes->list);
    return 0;
}

static int put_all(struct bytes *bytes, const uint64_t *numbers, size_t count) {
    int result = 0;
    for (size_t i = 0; result == 0 && i < count; i++) result = number_put(bytes, numbers[i]);
    return result;
}

static uint64_t series_folded(int64_t number) { return (uint64_t)number << 1 ^ (uint64_t)(number >> 63); }
static int64_t series_unfolded(uint64_t number) { return (int64_t)(number >> 1 ^ (0 - (number & 1))); }

static int put_points(struct bytes *to, const struct leak_sites *sites) {
    int result = number_put(to, sites->point_count);
    for (uint32_t i = 0; result == 0 && i < sites->point_count; i++) {
        const struct leak_point *point = &sites->points[i];
        const uint64_t numbers[] = {point->run, point->runs, point->taken_ns, point->live_bytes, point->live_blocks};
        result = put_all(to, numbers, sizeof numbers / sizeof *numbers);
    }
    return result;
}

static uint32_t owner_of(const struct leak_sites *sites, uint32_t name) { return name ? sites->names[name]->owner : 0; }

static int put_site(struct bytes *to, const struct leak_sites *sites, const struct leak_site *site,
                    const struct leak_entry *entries, size_t count) {
    const uint64_t head[] = {owner_of(sites, site->model), owner_of(sites, site->node), site->path, count};
    int result = put_all(to, head, sizeof head / sizeof *head);
    uint32_t last = 0;
    for (size_t i = 0; result == 0 && i < count; i++) {
        const struct leak_change *change = &entries[i].change;
        const uint64_t numbers[] = {change->point - last, series_folded(change->bytes), series_folded(change->blocks)};
        result = put_all(to, numbers, sizeof numbers / sizeof *numbers);
        last = change->point;
    }
    return result;
}

/* Packs the sites that hold something. *count: their number. `to` NULL: only counts them. Returns 0, or -1: no
 * memory. */
static int put_sites(struct bytes *to, const struct leak_sites *sites, uint64_t *count) {
    const struct leak_entries *moved = &sites->moved;
    int result = 0;
    *count = 0;
    for (size_t i = 0, next; result == 0 && i < moved->count; i = next) {
        const struct leak_site *site = &sites->list[moved->list[i].site];
        for (next = i; next < moved->count && moved->list[next].site == moved->list[i].site;) next++;
        if (!site->live_bytes) continue;
        (*count)++;
        if (to) result = put_site(to, sites, site, &moved->list[i], next - i);
    }
    return result;
}

int series_pack(const struct leak_sites *sites, struct image *image) {
    struct bytes bytes = {0};
    uint64_t count;
    put_sites(NULL, sites, &count);
    if (put_points(&bytes, sites) < 0 || number_put(&bytes, count) < 0 || put_sites(&bytes, sites, &count) < 0) {
        free(bytes.list);
        return -1;
    }
    free(image->series);
    image->series = bytes.list;
    image->series_size = bytes.count;
    return 0;
}

/* --- unpacking a series --- */

struct stream {
    const uint8_t *at, *end;
    struct known_name { /* the names of the previous site: the next site often has the same names */
        uint64_t owner;
        uint32_t name;
    } model, node;
};

static bool numbers_take(struct stream *from, uint64_t *numbers, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!snap_get_number(&from->at, from->end, &numbers[i])) return false;
    return true;
}

static bool take_points(struct stream *from, struct leak_sites *sites) {
    uint64_t count, numbers[5];
    if (!numbers_take(from, &count, 1) || count > LEAK_POINTS_MOST) return false;
    for (uint64_t i = 0; i < count; i++) {
        if (!numbers_take(from, numbers, 5) || numbers[0] > UINT32_MAX || numbers[1] > RUNS_MOST) return false;
        sites->points[i] =
            (struct leak_point){(uint32_t)numbers[0], (uint32_t)numbers[1], numbers[2], numbers[3], numbers[4]};
    }
    sites->point_count = (uint32_t)count;
    return true;
}

/* Reads the changes of one site. Returns 0; -1: no memory; -2: damaged. */
static int take_changes(struct stream *from, struct leak_sites *sites, const struct leak_site *site, uint64_t count) {
    uint64_t point = 0, numbers[3];
    for (uint64_t i = 0; i < count; i++) {
        if (!numbers_take(from, numbers, 3) || numbers[0] >= sites->point_count || (i && !numbers[0])) return -2;
        point += numbers[0];
        struct leak_change change = {(uint32_t)point, series_unfolded(numbers[1]), series_unfolded(numbers[2]), 0};
        if (point >= sites->point_count) return -2;
        if (site && leak_entries_add(&sites->moved, (uint32_t)(site - sites->list), change) < 0) return -1;
    }
    return 0;
}

static uint32_t series_name_of(struct leak_sites *sites, const struct image *image, struct known_name *known,
                               uint64_t owner) {
    if (owner != known->owner) *known = (struct known_name){owner, leak_sites_name(sites, image, (uint32_t)owner)};
    return known->name;
}

static int take_site(struct stream *from, struct leak_sites *sites, const struct image *image) {
    uint64_t head[4];
    if (!numbers_take(from, head, 4) || head[0] > UINT32_MAX || head[1] > UINT32_MAX) return -2;
    uint32_t model = series_name_of(sites, image, &from->model, head[0]);
    uint32_t node = series_name_of(sites, image, &from->node, head[1]);
    if (model == UINT32_MAX || node == UINT32_MAX) return -1;
    return take_changes(from, sites, leak_sites_look(sites, model, node, head[2]), head[3]);
}

int series_unpack(struct leak_sites *sites, const struct image *image) {
    struct stream from = {.at = image->series, .end = image->series + image->series_size};
    uint64_t count;
    if (!image->series_size) return 0;
    if (!take_points(&from, sites) || !numbers_take(&from, &count, 1)) return -2;
    for (uint64_t i = 0; i < count; i++) {
        int result = take_site(&from, sites, image);
        if (result < 0) return result;
    }
    return leak_entries_sort(&sites->moved, sites->count, sites->point_count);
}

int series_complete(struct leak_sites *sites, const struct image *image) {
    if (!sites->point_count) return series_unpack(sites, image);
    return leak_entries_sort(&sites->moved, sites->count, sites->point_count);
}
