/* report_profile.c — see report_profile.h. */
#include "tools/base/complain.h"
#include "tools/export/report_profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The limits of a flame graph. SHARE: a branch with less than 1/2000 of everything is merged, because in a picture of
 * 1,000 pixels it would be less than half a pixel wide. DEEPEST: the most frames on top of each other. */
enum { SHARE = 2000, DEEPEST = 1000 };

const char *report_no_frames(const struct report *report, uint32_t module) {
    const char *path = image_module(report->image, module);
    if (report->python) return "(no Python)";
    if (path) return text_base_name(path);
    return report->image->header.stacks == SNAP_STACKS_NONE ? "(no call sites)" : "(call stack unknown)";
}

/* ---- making the parts of a profile */

static uint64_t amount_of(const struct report *report, const struct listed_site *site, bool blocks) {
    if (!blocks) return site->bytes;
    struct total sum = report_site(report->image, site);
    return total_measure_blocks(&sum, report->measure);
}

/* Whether each stack is written by itself, not in a tree. */
static bool is_each(const struct report *report) {
    return (report->min_given && !report->min) || report->top != SIZE_MAX;
}

/* Makes the parts of the profile from the sites of a report. If each stack is written by itself, the parts are sorted
 * by bytes. False: no memory. */
static bool make_parts(struct profile *profile, const struct report *report, const struct roots *roots, bool blocks) {
    struct report listed = *report;
    if (!is_each(report)) listed.top = 0;
    struct listed_site *sites = report_sites(&listed, false, &profile->part_count);
    profile->parts = calloc(profile->part_count + 1, sizeof *profile->parts);
    for (size_t i = 0; sites && profile->parts && i < profile->part_count; i++) {
        const struct total *total = &report->image->totals[sites[i].first];
        profile->parts[i] = (struct profile_part){.root = roots_of(roots, total->tag),
                                                  .stack = total->stack,
                                                  .nowhere = report_no_frames(report, total->module),
                                                  .amounts = {amount_of(report, &sites[i], blocks), 0}};
    }
    bool ready = sites && profile->parts;
    free(sites);
    return ready;
}

static uint64_t sum_of(const struct profile *profile) {
    uint64_t sum = 0;
    for (size_t i = 0; i < profile->part_count; i++) sum += profile->parts[i].amounts[0] + profile->parts[i].amounts[1];
    return sum;
}

/* ---- limits, and the note of merged stacks */

struct profile_limits profile_limits_of(uint64_t all) {
    return (struct profile_limits){all / SHARE + 1, DEEPEST};
}

static struct text amount_text(uint64_t amount, bool blocks) {
    return blocks ? text_block_count(amount) : text_size(amount);
}

void profile_tell(struct profile_limits limits, struct profile_merged merged, bool blocks, const char *what,
                  bool is_share, const char *all_of_it) {
    char share[32] = "";
    const char *colon = *what ? ": " : "";
    if (is_share) snprintf(share, sizeof share, ", 1/%d of all,", SHARE);
    if (merged.smaller)
        complain("%s%sframes with less than %s%s are merged into \"(n smaller)\": %s%s", what, colon,
                 amount_text(limits.least, blocks).s, share, amount_text(merged.smaller, blocks).s, all_of_it);
    if (merged.deeper)
        complain("%s%sframes deeper than %s are merged into \"(deeper)\": %s%s", what, colon,
                 text_count(limits.deepest).s, amount_text(merged.deeper, blocks).s, all_of_it);
    if (merged.more)
        complain("%s%s%s call stacks are not shown by themselves: \"(%zu more)\" has %s", what, colon,
                 text_count(merged.more_count).s, merged.more_count, amount_text(merged.more, blocks).s);
}

/* ---- writing a profile */

static int write_profile(const struct report *report, struct profile *profile, struct profile_sink *sink, bool blocks,
                         const char *what) {
    bool given = report->min_given && !(blocks && report->min);
    struct profile_limits limits =
        given ? (struct profile_limits){report->min, SIZE_MAX} : profile_limits_of(sum_of(profile));
    struct profile_merged merged;
    int result = is_each(report) ? profile_each(profile, sink, report->top, &merged)
                                 : profile_tree(profile, sink, limits, &merged);
    if (result == 0) profile_tell(limits, merged, blocks, what, !given, given ? "" : " (--min=0 merges nothing)");
    return result;
}

static int report_profile_of(const struct report *report, const struct roots *roots, struct profile_sink *sink,
                             const char *what, bool blocks) {
    struct profile profile = {.image = report->image,
                              .symbols = report->symbols,
                              .python = report->python,
                              .roots = roots->names,
                              .root_count = roots->count,
                              .without_frames = report_no_frames(report, 0)};
    bool ready = make_parts(&profile, report, roots, blocks);
    int result = ready ? write_profile(report, &profile, sink, blocks, what) : -1;
    free(profile.parts);
    return result;
}

int report_profile(const struct report *report, const struct roots *roots, struct profile_sink *sink,
                   const char *what) {
    return report_profile_of(report, roots, sink, what, false);
}

int report_profile_blocks(const struct report *report, const struct roots *roots, struct profile_sink *sink,
                          const char *what) {
    return report_profile_of(report, roots, sink, what, true);
}
