/* leaks.c — see leaks.h. */
#include "tools/leaks/leaks.h"
#include "tools/base/list.h"
#include "tools/base/text.h"
#include "tools/leaks/leak_lines.h"
#include "tools/views/resident.h"
#include "tools/reader/trace_lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In these comments, the rest of an owner is all its sites that are no findings by themselves. */
enum {
    MUCH = 4,        /* growth by this many times the floor makes a rest a leak, and an undecided site doubtful */
    REMAINDER = 20,  /* an owner's rest is a leak if it grows by at least 1/20 of the growth of the owner's leaks */
    DOUBT_LEAST = 3, /* growth at fewer points than this may be chance, as in leak_judge.c */
};

/* --- the entries of one site --- */

/* Goes through sorted entries, and collects the changes of one site after the other. */
struct cursor {
    const struct leak_entries *entries;
    size_t at;
    struct leak_change *changes; /* changes of the site that was asked for last */
    size_t count, capacity;
};

static int cursor_move(struct cursor *cursor, uint32_t site) {
    const struct leak_entries *entries = cursor->entries;
    cursor->count = 0;
    while (cursor->at < entries->count && entries->list[cursor->at].site < site) cursor->at++;
    for (; cursor->at < entries->count && entries->list[cursor->at].site == site; cursor->at++) {
        if (!LIST_GROW(cursor->changes, cursor->count, cursor->capacity)) return -1;
        cursor->changes[cursor->count++] = entries->list[cursor->at].change;
    }
    return 0;
}

/* --- judging one site --- */

struct search {
    struct leaks *leaks;
    struct leak_rule left_rule, moved_rule;
    struct cursor left, moved, forgotten;
};

static void begin_search(struct search *search, struct leaks *leaks, const struct leak_entries *left,
                         const struct leak_entries *moved, uint64_t floor) {
    *search = (struct search){.leaks = leaks,
                              .left_rule = leaks->left_rule,
                              .moved_rule = leaks->moved_rule,
                              .left = {.entries = left},
                              .moved = {.entries = moved},
                              .forgotten = {.entries = &leaks->sites->left}};
    search->left_rule.floor = search->moved_rule.floor = floor;
}

static void end_search(struct search *search) {
    free(search->left.changes);
    free(search->moved.changes);
    free(search->forgotten.changes);
}

/* Finds the allocations of the finding's owner at call stacks that were forgotten. They are counted at a site without a
 * stack (preload/count/fold.c). Returns 0, or -1: no memory. */
static int find_forgotten(struct search *search, const struct leak_finding *finding) {
    const struct leaks *leaks = search->leaks;
    uint64_t path = leak_path_of(image_module_name(leaks->image, 0));
    if (finding->site != LEAK_NO_SITE && leaks->sites->list[finding->site].on_cuda) path = leak_path_on_cuda(path);
    const struct leak_site *site = leak_sites_look(leaks->sites, finding->model, finding->node, path);
    search->forgotten.count = 0;
    search->left_rule.forgotten_count = 0;
    if (!leaks->image->header.lost[SNAP_LOST_FOLDED] || !site || finding->site == LEAK_NO_SITE) return 0;
    search->forgotten.at = leak_entries_first(search->forgotten.entries, (uint32_t)(site - leaks->sites->list));
    if (cursor_move(&search->forgotten, (uint32_t)(site - leaks->sites->list)) < 0) return -1;
    search->left_rule.forgotten = search->forgotten.changes;
    search->left_rule.forgotten_count = search->forgotten.count;
    return 0;
}

/* Judges a site by readings, or by the memory that is left of runs. *by_readings tells which. The judgement is by the
 * runs in three cases:
 * - There are no readings.
 * - By the runs, the site leaks, and the readings do not show that its growth has stopped. (Where they show it, the
 *   judgement is by the readings: old memory was freed while new memory came.)
 * - The readings allow no verdict, and fewer readings than runs are judged. */
static struct leak_judgement leaks_judge(const struct search *search, bool *by_readings) {
    struct leak_judgement left = leak_judge(search->left.changes, search->left.count, &search->left_rule);
    *by_readings = false;
    if (!search->moved_rule.points) return left;
    struct leak_judgement moved = leak_judge(search->moved.changes, search->moved.count, &search->moved_rule);
    if (left.verdict == LEAK_FOUND && moved.verdict != LEAK_PLATEAU && moved.verdict != LEAK_ONE_OFF) return left;
    if (leak_judged(&search->moved_rule) < leak_judged(&search->left_rule) && moved.verdict == LEAK_UNDECIDED)
        return left;
    *by_readings = true;
    return moved;
}

static void find_ends(const struct cursor *left, struct leak_finding *finding) {
    finding->oldest = finding->newest = UINT32_MAX;
    for (size_t i = 0; i < left->count; i++) {
        if (left->changes[i].bytes <= 0) continue;
        if (finding->oldest == UINT32_MAX) finding->oldest = left->changes[i].point;
        finding->newest = left->changes[i].point;
    }
}

static int finding_keep(struct leak_finding **list, size_t *count, size_t *capacity,
                        const struct leak_finding *finding) {
    if (!list_grow(list, sizeof **list, *count, 1, capacity)) return -1;
    (*list)[(*count)++] = *finding;
    return 0;
}

/* Whether the rest of an owner grows little beside the owner's leaks. If it does, the rest is taken for headers, keys
 * and the like, which belong to the leaks. */
static bool is_remainder(const struct leaks *self, const struct leak_finding *rest) {
    double leaks = 0;
    for (size_t i = 0; i < self->count; i++)
        if (self->list[i].model == rest->model && self->list[i].node == rest->node)
            leaks += self->list[i].judged.bytes_per_run;
    return rest->judged.bytes_per_run * REMAINDER < leaks;
}

/* Judges a finding. A leak goes to leaks->list. A site that would leak, but whose owner has the policy `keep`, goes to
 * leaks->kept. Returns 0, or -1: no memory. */
static int finding_take(struct search *search, struct leak_finding *finding) {
    struct leaks *leaks = search->leaks;
    const struct leak_sites *sites = leaks->sites;
    if (find_forgotten(search, finding) < 0) return -1;
    finding->judged = leaks_judge(search, &finding->by_readings);
    if (finding->judged.verdict == LEAK_FOUND && finding->model && sites->names[finding->model]->kept)
        finding->judged.verdict = LEAK_KEPT;
    if (finding->judged.verdict == LEAK_FOUND && finding->site == LEAK_NO_SITE && is_remainder(leaks, finding))
        finding->judged.verdict = LEAK_SMALL;
    find_ends(&search->left, finding);
    if (finding->judged.verdict == LEAK_FOUND)
        return finding_keep(&leaks->list, &leaks->count, &leaks->capacity, finding);
    if (finding->judged.verdict != LEAK_KEPT || finding->site == LEAK_NO_SITE) return 0;
    return finding_keep(&leaks->kept, &leaks->kept_count, &leaks->kept_capacity, finding);
}

/* Adds the site's memory to self->doubtful if the site perhaps leaks. */
static void note_doubt(struct leaks *self, const struct leak_finding *finding) {
    const struct leak_judgement *judged = &finding->judged;
    bool kept = finding->model && self->sites->names[finding->model]->kept;
    if (judged->verdict != LEAK_UNDECIDED || kept || judged->grew < DOUBT_LEAST) return;
    if (judged->bytes_per_run >= MUCH * (double)self->floor) self->doubtful += finding->live_bytes;
}

static int search_sites(struct leaks *self) {
    struct search search;
    int result = 0;
    begin_search(&search, self, &self->sites->left, &self->sites->moved, self->floor);
    for (size_t i = 0; result == 0 && i < self->sites->count; i++) {
        struct leak_site *site = &self->sites->list[i];
        struct leak_finding finding = {.site = (uint32_t)i,
                                       .stacks = 1,
                                       .example = (uint32_t)i,
                                       .model = site->model,
                                       .node = site->node,
                                       .live_bytes = site->live_bytes,
                                       .live_blocks = site->live_blocks};
        result = cursor_move(&search.left, (uint32_t)i) < 0 || cursor_move(&search.moved, (uint32_t)i) < 0 ? -1 : 0;
        if (result == 0 && site->live_bytes) result = finding_take(&search, &finding);
        site->verdict = finding.judged.verdict;
        site->in_rest = false;
        note_doubt(self, &finding);
    }
    end_search(&search);
    return result;
}

/* --- owners that grow at many sites --- */

/* Whether the site is a finding by itself: it leaks, or it would leak if its owner did not have the policy `keep`. */
static bool has_finding(const struct leak_site *site) {
    return site->verdict == LEAK_FOUND || site->verdict == LEAK_KEPT;
}

bool leaks_is_in_rest(const struct leak_site *site, const struct leak_finding *rest) {
    return site->in_rest && site->model == rest->model && site->node == rest->node;
}

/* The rest of each owner: its sites that are no findings by themselves, and their memory. */
struct owners {
    uint32_t *of; /* by site: 1 + index of its owner in `list`; 0: it has no owner, or is a finding by itself */
    struct leak_finding *list;
    uint32_t count;
    struct leak_entries left, moved;
};

static int by_owner(const void *left, const void *right, void *context) {
    const struct leak_site *sites = context, *a = &sites[*(const uint32_t *)left],
                           *b = &sites[*(const uint32_t *)right];
    if (a->model != b->model) return a->model < b->model ? -1 : 1;
    return a->node < b->node ? -1 : a->node > b->node;
}

static int name_owners(struct owners *owners, const struct leaks *self) {
    const struct leak_sites *sites = self->sites;
    uint32_t *order = malloc((sites->count + 1) * sizeof *order);
    if (!order) return -1;
    for (uint32_t i = 0; i < sites->count; i++) order[i] = i;
    qsort_r(order, sites->count, sizeof *order, by_owner, sites->list);
    for (size_t i = 0; i < sites->count; i++) {
        const struct leak_site *site = &sites->list[order[i]];
        if ((!site->model && !site->node) || has_finding(site)) continue;
        struct leak_finding *last = owners->count ? &owners->list[owners->count - 1] : NULL;
        if (!last || last->model != site->model || last->node != site->node)
            owners->list[owners->count++] = (struct leak_finding){
                .site = LEAK_NO_SITE, .example = LEAK_NO_SITE, .model = site->model, .node = site->node};
        owners->of[order[i]] = owners->count;
        owners->list[owners->count - 1].live_bytes += site->live_bytes;
        owners->list[owners->count - 1].live_blocks += site->live_blocks;
    }
    free(order);
    return 0;
}

/* Turns entries by site into entries by owner. */
static int leaks_gather(const struct owners *owners, const struct leak_entries *from, struct leak_entries *to,
                        uint32_t points) {
    for (size_t i = 0; i < from->count; i++) {
        uint32_t owner = owners->of[from->list[i].site];
        if (owner && leak_entries_add(to, owner - 1, from->list[i].change) < 0) return -1;
    }
    return leak_entries_sort(to, owners->count, points);
}

/* For each owner, finds the site where runs after the warm-up left most memory, and counts the sites where they left
 * any. Returns 0, or -1: no memory. */
static int choose_examples(const struct leaks *self, struct owners *owners) {
    const struct leak_entries *left = &self->sites->left;
    uint32_t warm_up = leak_warm_up(self->sites->run_count);
    int64_t *most = calloc(owners->count + 1, sizeof *most);
    if (!most) return -1;
    for (size_t i = 0; i < left->count;) {
        uint32_t site = left->list[i].site, owner = owners->of[site];
        int64_t sum = 0;
        for (; i < left->count && left->list[i].site == site; i++)
            if (left->list[i].change.point >= warm_up) sum = leak_sum(sum, left->list[i].change.bytes);
        if (!owner || sum <= 0) continue;
        owners->list[owner - 1].stacks++;
        if (sum <= most[owner - 1]) continue;
        most[owner - 1] = sum;
        owners->list[owner - 1].example = site;
    }
    free(most);
    return 0;
}

static int judge_owners(struct leaks *self, struct owners *owners) {
    struct search search;
    int result = 0;
    begin_search(&search, self, &owners->left, &owners->moved, MUCH * self->floor);
    for (uint32_t i = 0; result == 0 && i < owners->count; i++) {
        result = cursor_move(&search.left, i) < 0 || cursor_move(&search.moved, i) < 0 ? -1 : 0;
        if (result == 0 && owners->list[i].live_bytes) result = finding_take(&search, &owners->list[i]);
    }
    end_search(&search);
    return result;
}

static void mark_rest(struct leaks *self, const struct owners *owners) {
    for (size_t i = 0; i < self->sites->count; i++)
        self->sites->list[i].in_rest = owners->of[i] && owners->list[owners->of[i] - 1].judged.verdict == LEAK_FOUND;
}

static int search_owners(struct leaks *self) {
    const struct leak_sites *sites = self->sites;
    struct owners owners = {.of = calloc(sites->count + 1, sizeof *owners.of),
                            .list = calloc(sites->count + 1, sizeof *owners.list)};
    int result = owners.of && owners.list ? name_owners(&owners, self) : -1;
    if (result == 0) result = leaks_gather(&owners, &sites->left, &owners.left, sites->run_count);
    if (result == 0) result = leaks_gather(&owners, &sites->moved, &owners.moved, sites->point_count);
    if (result == 0) result = choose_examples(self, &owners);
    if (result == 0) result = judge_owners(self, &owners);
    if (result == 0) mark_rest(self, &owners);
    free(owners.of);
    free(owners.list);
    free(owners.left.list);
    free(owners.moved.list);
    return result;
}

/* Adds each site that has live memory and is in no leak to the sums of its verdict. */
static void count_others(struct leaks *self) {
    for (size_t i = 0; i < self->sites->count; i++) {
        const struct leak_site *site = &self->sites->list[i];
        if (!site->live_bytes || site->verdict == LEAK_FOUND || site->in_rest) continue;
        self->rest[site->verdict].sites++;
        self->rest[site->verdict].live_bytes += site->live_bytes;
    }
}

static int search_all(struct leaks *self) {
    if (leak_lines_join(self->sites) < 0 || search_sites(self) < 0 || search_owners(self) < 0) return -1;
    count_others(self);
    return 0;
}

/* --- which points count --- */

enum { IN_USE = 2 /* so many of the last runs are not judged: they may still use the memory that they left */ };

/* The time of Python's last full garbage collection, by the trace; 0: not known. What later runs left may be garbage,
 * which is no leak. */
static uint64_t last_collection(const struct image *image) {
    struct trace_line line;
    struct jsontext value;
    char kind[12];
    uint64_t when = 0, time;
    for (size_t at = 0; trace_lines_next(image, &at, &line);)
        if (jsontext_member(line.object, "kind", &value) && jsontext_string(value, kind, sizeof kind) &&
            strcmp(kind, "COLLECTED") == 0 && jsontext_member(line.object, "t", &value) &&
            jsontext_number(value, &time))
            when = time;
    return when;
}

static int by_time(const void *left, const void *right) {
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

static int find_run_ends(struct leaks *self) {
    const struct leak_sites *sites = self->sites;
    self->run_ends = calloc(sites->run_count + 1, sizeof *self->run_ends);
    if (!self->run_ends) return -1;
    for (uint32_t i = 0; i < sites->run_count; i++) {
        const struct snap_owner *run = image_owner(self->image, sites->runs[i]);
        self->run_ends[i] = run ? run->end_ns : 0;
    }
    qsort(self->run_ends, sites->run_count, sizeof *self->run_ends, by_time);
    return 0;
}

uint32_t leaks_runs_since(const struct leaks *self, uint64_t when) {
    uint32_t low = 0, high = self->sites->run_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (self->run_ends[middle] <= when)
            low = middle + 1;
        else
            high = middle;
    }
    return self->sites->run_count - low;
}

/* How many of the last points may contain garbage. Python collected all garbage at `when`, so the first reading after
 * `when` has none, but all later readings may have some. */
static uint32_t points_after(const struct leaks *self, uint64_t when) {
    uint32_t count = 0;
    while (count < self->sites->point_count &&
           self->sites->points[self->sites->point_count - 1 - count].taken_ns > when)
        count++;
    return count ? count - 1 : 0;
}

static void make_rules(struct leaks *self) {
    const struct leak_sites *sites = self->sites;
    uint64_t collected = last_collection(self->image);
    uint32_t any = 0;
    for (uint32_t i = 0; i < sites->point_count; i++) any |= self->runs_of[i] = sites->points[i].runs;
    if (collected) self->uncollected = leaks_runs_since(self, collected);
    self->left_rule = (struct leak_rule){
        .points = sites->run_count, .left = true, .young = self->uncollected > IN_USE ? self->uncollected : IN_USE};
    self->moved_rule = (struct leak_rule){.points = sites->point_count,
                                          .young = collected ? points_after(self, collected) : 0,
                                          .runs = any ? self->runs_of : NULL};
}

/* --- finding the leaks of a process --- */

int leaks_by_growth(const void *left, const void *right) {
    const struct leak_finding *a = left, *b = right;
    if (a->judged.bytes_per_run != b->judged.bytes_per_run)
        return a->judged.bytes_per_run > b->judged.bytes_per_run ? -1 : 1;
    if (a->live_bytes != b->live_bytes) return a->live_bytes > b->live_bytes ? -1 : 1;
    return a->site < b->site ? -1 : a->site > b->site;
}

static int leaks_measure(struct leaks *self) {
    struct resident resident;
    if (resident_split(&resident, self->image) < 0) return -1;
    self->measured = resident.measured;
    self->retained = resident.measured ? resident.retained : 0;
    resident_clear(&resident);
    return 0;
}

int leaks_find(struct leaks *self, struct leak_sites *sites, const struct image *image, uint64_t floor) {
    *self = (struct leaks){.image = image, .sites = sites, .floor = floor};
    if (find_run_ends(self) < 0) return -1;
    make_rules(self);
    if (search_all(self) < 0 || leaks_find_holders(self) < 0 || leaks_find_retired(self) < 0 || leaks_measure(self) < 0)
        return -1;
    if (self->count) qsort(self->list, self->count, sizeof *self->list, leaks_by_growth);
    if (self->kept_count) qsort(self->kept, self->kept_count, sizeof *self->kept, leaks_by_growth);
    return 0;
}

void leaks_clear(struct leaks *self) {
    free(self->list);
    free(self->parts);
    free(self->kept);
    free(self->retired);
    free(self->holders);
    free(self->run_ends);
    *self = (struct leaks){0};
}

size_t leaks_total(const struct leaks *self) {
    size_t count = self->count;
    for (size_t i = 0; i < self->retired_leaks; i++) count += !self->retired[i].is_told && !self->retired[i].is_same;
    return count;
}

/* --- whether a verdict is possible --- */

enum { LEAST = 5 /* least number of points, as in leak_judge.c */ };

static bool is_enough(const struct leaks *self) {
    return leak_judged(&self->left_rule) >= LEAST || leak_judged(&self->moved_rule) >= LEAST;
}

enum leaks_verdict leaks_verdict(const struct leaks *self) {
    if (leaks_total(self)) return LEAKS_FOUND;
    return is_enough(self) && !self->doubtful ? LEAKS_NONE : LEAKS_CANNOT_TELL;
}

bool leaks_has_garbage(const struct leaks *self) { return self->uncollected > IN_USE; }

/* How many points are needed for a verdict when no point can contain garbage. `young`: how many points at the end are
 * not judged. */
static uint32_t points_needed(uint32_t young) {
    uint32_t points = LEAST;
    while (points < leak_warm_up(points) + young + LEAST) points++;
    return points;
}

static void doubt_runs(struct leaks_doubt *doubt, uint32_t runs) {
    uint32_t needed = points_needed(IN_USE);
    if (runs >= needed) return;
    snprintf(doubt->why, sizeof doubt->why, "%u %s ended, but a verdict needs %u", runs,
             runs == 1 ? "run has" : "runs have", needed);
    snprintf(doubt->advice, sizeof doubt->advice, "let %u more end, and look again", needed - runs);
}

static void doubt_readings(struct leaks_doubt *doubt, uint32_t readings) {
    uint32_t needed = points_needed(0);
    if (readings >= needed) return;
    snprintf(doubt->why, sizeof doubt->why, "%u %s taken, but a verdict needs %u", readings,
             readings == 1 ? "reading was" : "readings were", needed);
    snprintf(doubt->advice, sizeof doubt->advice, "take %u more readings", needed - readings);
}

static void doubt_garbage(struct leaks_doubt *doubt, uint32_t uncollected, uint32_t runs) {
    snprintf(doubt->why, sizeof doubt->why, "%u of %u runs may have left garbage", uncollected, runs);
    snprintf(doubt->advice, sizeof doubt->advice, "have the program call gc.collect(), and look again");
}

static void doubt_growth(struct leaks_doubt *doubt, const struct leaks *self) {
    bool runs = leaks_by_runs(self);
    snprintf(doubt->why, sizeof doubt->why, "%s may leak: it grew %s, or too unevenly", text_size(self->doubtful).s,
             runs ? "in too few runs" : "at too few readings");
    snprintf(doubt->advice, sizeof doubt->advice, "%s",
             runs ? "let more runs end, and look again" : "take more readings");
}

/* Whether the image is the ledger of a process that has ended. Such a process cannot be asked, and will end no more
 * runs. */
static bool leaks_is_gone(const struct image *image) { return image->header.kind == SNAP_LEDGER && !image->running; }

struct leaks_doubt leaks_doubt(const struct leaks *self) {
    struct leaks_doubt doubt = {"", ""};
    uint32_t runs = self->sites->run_count, readings = self->sites->point_count;
    if (leaks_verdict(self) != LEAKS_CANNOT_TELL) return doubt;
    if (!runs && readings < 2) {
        snprintf(doubt.why, sizeof doubt.why, "no run has ended in this process");
        snprintf(doubt.advice, sizeof doubt.advice, "give several snapshots of it, or record a series (--series)");
        return doubt;
    }
    if (leaks_by_runs(self))
        doubt_runs(&doubt, runs);
    else
        doubt_readings(&doubt, readings);
    if (!*doubt.why && is_enough(self))
        doubt_growth(&doubt, self);
    else if (!*doubt.why)
        doubt_garbage(&doubt, self->uncollected, runs);
    if (runs && leaks_is_gone(self->image))
        snprintf(doubt.advice, sizeof doubt.advice, "start it again, and ask while it runs");
    return doubt;
}

uint32_t leaks_last_judged(const struct leaks *self) {
    uint32_t young = self->left_rule.young, runs = self->sites->run_count;
    for (size_t i = 0; i < self->count; i++)
        if (self->list[i].by_readings) return 0;
    return leak_judged(&self->left_rule) ? self->sites->runs[runs - young - 1] : 0;
}

bool leaks_ended_in_order(const struct leaks *self) { return self->image->header.state == SNAP_EXITED; }

bool leaks_by_runs(const struct leaks *self) {
    if (!self->sites->point_count) return true;
    for (uint32_t i = 0; i < self->sites->point_count; i++)
        if (self->sites->points[i].runs) return true;
    return false;
}

const char *leaks_run(const struct leaks *self, uint32_t index) {
    const struct snap_owner *owner =
        index < self->sites->run_count ? image_owner(self->image, self->sites->runs[index]) : NULL;
    return owner ? image_string(self->image, owner->name) : "";
}
