/* misuse_image.c — see misuse_image.h. */
#include "tools/reader/misuse_image.h"

#include <stdlib.h>

bool misuse_is_fault(const struct snap_misuse *misuse) {
    return misuse->kind == SNAP_MISUSE_STOWED_FAULT || misuse->kind == SNAP_MISUSE_FREED_FAULT;
}

const char *misuse_kind_name(const struct snap_misuse *misuse) {
    return misuse->kind == SNAP_MISUSE_FREED          ? "double_free"
           : misuse->kind == SNAP_MISUSE_DAMAGED      ? "damaged_header"
           : misuse->kind == SNAP_MISUSE_STOWED_FAULT ? "device_fault_stowed"
           : misuse->kind == SNAP_MISUSE_FREED_FAULT  ? "device_fault_freed"
                                                      : "unknown";
}

const char *misuse_words(const struct snap_misuse *misuse) {
    bool resized = misuse->call == SNAP_MISUSE_REALLOC;
    if (misuse->kind == SNAP_MISUSE_FREED) return resized ? "resized after it was freed" : "freed twice";
    if (misuse->kind == SNAP_MISUSE_STOWED_FAULT) return "perhaps used by a kernel while it was off its device";
    if (misuse->kind == SNAP_MISUSE_FREED_FAULT) return "perhaps used by a kernel after it was freed";
    if (misuse->kind != SNAP_MISUSE_DAMAGED) return "misused, in a way that this memstow does not know";
    return misuse->call == SNAP_MISUSE_END ? "its header was overwritten; found at the end of the process"
           : resized                       ? "its header was overwritten; found when it was resized"
                                           : "its header was overwritten; found when it was freed";
}

/* The total of a site that a record of misuse names. A ledger's record has the number of the site; a snapshot's record
 * has the contents of the site, and `sites` is NULL. */
static struct total total_of(const struct snap_misuse_site *named, const struct snap_site *sites, size_t count) {
    if (!sites) return (struct total){.tag = named->tag, .stack = named->stack, .module = named->module};
    struct snap_site site = {named->site < count ? sites[named->site].word : 0};
    if (!named->site || site.word == SNAP_SITE_FREE) return (struct total){0};
    return (struct total){.tag = snap_site_tag(site), .stack = snap_site_stack(site), .module = snap_site_module(site)};
}

static void keep_those_in_use(struct image *image) {
    size_t kept = 0;
    for (size_t i = 0; i < image->misuse_count && kept < SNAP_MISUSES; i++)
        if (image->misuses[i].kind) image->misuses[kept++] = image->misuses[i];
    image->misuse_count = kept;
}

static int sites_lend(struct reader *reader, const struct snap_site *sites, size_t count) {
    const struct image *image = reader->image;
    for (size_t i = 0; i < image->misuse_count; i++)
        for (size_t k = 0; k < SNAP_MISUSE_SITES; k++) {
            struct total total = total_of(&image->misuses[i].sites[k], sites, count);
            if (reader_add_total(reader, &total) < 0) return -1;
        }
    return 0;
}

int misuse_image_lend(struct reader *reader) {
    struct image *image = reader->image;
    struct snap_site *sites = NULL;
    size_t count = 0;
    if (reader_table(reader, SNAP_MISUSE, sizeof *image->misuses, (void **)&image->misuses, &image->misuse_count) < 0)
        return -1;
    keep_those_in_use(image);
    if (!image->misuse_count) return 0;
    bool ledger = image->header.kind == SNAP_LEDGER;
    int result = ledger ? reader_table(reader, SNAP_SITE, sizeof *sites, (void **)&sites, &count) : 0;
    if (result == 0) result = sites_lend(reader, sites, count);
    free(sites);
    return result;
}

/* Takes the totals of misuse_image_lend out of the image, and copies their tags, stacks and modules into the records of
 * misuse. */
void misuse_image_take_back(struct reader *reader) {
    struct image *image = reader->image;
    if (!image->misuse_count) return;
    image->total_count -= image->misuse_count * SNAP_MISUSE_SITES;
    const struct total *total = image->totals + image->total_count;
    for (size_t i = 0; i < image->misuse_count; i++)
        for (size_t k = 0; k < SNAP_MISUSE_SITES; k++, total++)
            image->misuses[i].sites[k] =
                (struct snap_misuse_site){.tag = total->tag, .stack = total->stack, .module = total->module};
}
