/* leak_judge.c — see leak_judge.h. */
#include "tools/leaks/leak_judge.h"

enum {
    WARM_UP_LEAST = 2,
    WARM_UP_SHARE = 10, /* one point in this many is warm-up */
    WARM_UP_MOST = 20,
    LEAST = 5,   /* fewer points allow no verdict */
    ENOUGH = 9,  /* from this many points on, a leak need not grow at each of them */
    PLENTY = 24, /* from this many points on, a leak may even shrink at some */
    TIMES = 3,   /* growth at fewer points than this may be chance */
    SELDOM = 10, /* growth at fewer than one point in this many may be chance as well */
    MANY = 30,   /* from this many points on, growth at half of them gives high confidence */
    SLOWING = 2, /* a leak's growth at the end is at least half of its growth at the beginning */
};

static const char *const verdicts[LEAK_VERDICTS] = {"nothing", "leak",  "one_off", "plateau",   "fluctuates",
                                                    "young",   "small", "kept",    "undecided", "threads"};

const char *leak_verdict_name(enum leak_verdict verdict) { return verdicts[verdict]; }

const char *leak_confidence_name(enum leak_confidence confidence) {
    static const char *const names[] = {"low", "medium", "high"};
    return names[confidence];
}

uint32_t leak_warm_up(uint32_t points) {
    uint32_t share = points / WARM_UP_SHARE;
    return share < WARM_UP_LEAST ? WARM_UP_LEAST : share > WARM_UP_MOST ? WARM_UP_MOST : share;
}

uint32_t leak_judged(const struct leak_rule *rule) {
    uint32_t out = leak_warm_up(rule->points) + rule->young;
    return rule->points > out ? rule->points - out : 0;
}

/* Figures of a site over some of the points: sums, and numbers of points where it grew and shrank. */
struct part {
    int64_t grown, blocks;
    uint64_t allocated;
    uint32_t grew, shrank;
    int64_t low, high; /* the site's lowest and highest bytes at those points */
};

struct sequence {
    const struct leak_change *changes;
    size_t count;
};

static void note_level(struct part *part, int64_t level) {
    if (level < part->low) part->low = level;
    if (level > part->high) part->high = level;
}

static struct part part_of(struct sequence all, uint32_t from, uint32_t to) {
    struct part part = {.low = INT64_MAX, .high = INT64_MIN};
    int64_t level = 0;
    size_t i = 0;
    for (; i < all.count && all.changes[i].point < from; i++) level = leak_sum(level, all.changes[i].bytes);
    if (from < to && !(i < all.count && all.changes[i].point == from)) note_level(&part, level);
    for (; i < all.count && all.changes[i].point < to; i++) {
        const struct leak_change *change = &all.changes[i];
        part.grown = leak_sum(part.grown, change->bytes);
        part.blocks = leak_sum(part.blocks, change->blocks);
        part.allocated += change->allocated;
        part.grew += change->bytes > 0;
        part.shrank += change->bytes < 0;
        note_level(&part, level = leak_sum(level, change->bytes));
    }
    return part;
}

/* The first point from `from` on that has growth. Only points before `to` count. If none has growth, returns `to`. */
static uint32_t first_growth(struct sequence all, uint32_t from, uint32_t to) {
    for (size_t i = 0; i < all.count && all.changes[i].point < to; i++)
        if (all.changes[i].point >= from && all.changes[i].bytes > 0) return all.changes[i].point;
    return to;
}

/* Whether new memory replaces old memory: judged runs before `start` allocated memory, too, but all of it has been
 * freed. Allocations count if they were made at the site, or at a call stack of the site's owner that memstow has
 * forgotten (leak_rule.forgotten). `from`: the first judged run. `start`: the first judged run that left memory. */
static bool leak_judge_replaces(struct sequence all, const struct leak_rule *rule, uint32_t from, uint32_t start) {
    if (!rule->left || start == from) return false;
    struct sequence forgotten = {rule->forgotten, rule->forgotten_count};
    return part_of(all, from, start).allocated > 0 || part_of(forgotten, from, start).allocated > 0;
}

static bool is_slowing(const struct part *first, const struct part *last) {
    return last->grown < first->grown / SLOWING;
}

/* Whether old memory is freed while new memory comes. `old`: the share that is left of the allocations at the first
 * points. `young`: the share that is left of those at the last points. Old memory is taken to be freed if `old` is less
 * than half of `young`. */
static bool loses_the_old(const struct part *first, const struct part *last) {
    if (!first->allocated || !last->allocated) return false;
    double old = (double)first->grown / (double)first->allocated, young = (double)last->grown / (double)last->allocated;
    return old * SLOWING < young;
}

/* Whether the site is a cache that has become full. A full cache has dropped memory of the warm-up.
 * - A run of the warm-up counts if it allocated at least `each`: the bytes that a later run leaves on average.
 * - Such a run has lost its memory if less than half of `each` is left.
 * - With few points, one such run is enough: a cache may have dropped only its oldest entries.
 * - With many points, all runs that count must have lost their memory: the first run may differ from the others. */
static bool lost_the_first(struct sequence all, const struct leak_rule *rule, uint32_t start, uint32_t to) {
    uint32_t points = to - start, took = 0, lost = 0;
    int64_t each = part_of(all, start, to).grown / points;
    for (uint32_t point = 0; rule->left && each > 0 && point < leak_warm_up(rule->points); point++) {
        struct part run = part_of(all, point, point + 1);
        if (run.allocated < (uint64_t)each) continue;
        took++;
        lost += run.grown < each / SLOWING;
    }
    return lost && (points < ENOUGH || lost == took);
}

/* Returns the verdict if there are few points. A site leaks only if it grew at each of them. */
static enum leak_verdict judge_few(struct sequence all, uint32_t start, uint32_t to) {
    uint32_t judged = to - start, half = judged / 2;
    struct part whole = part_of(all, start, to), first = part_of(all, start, start + half),
                last = part_of(all, to - half, to);
    if (!last.grew) return whole.shrank ? LEAK_FLUCTUATES : LEAK_PLATEAU;
    if (whole.shrank) return LEAK_FLUCTUATES;
    if (whole.grew < judged) return LEAK_UNDECIDED;
    return is_slowing(&first, &last) || loses_the_old(&first, &last) ? LEAK_PLATEAU : LEAK_FOUND;
}

/* Returns the verdict if there are many points. A site leaks only if it grew in each third of them, and if its lowest
 * bytes in the last third exceed its highest bytes in the first third. */
static enum leak_verdict judge_many(struct sequence all, uint32_t start, uint32_t to) {
    uint32_t judged = to - start, third = judged / 3;
    struct part whole = part_of(all, start, to), first = part_of(all, start, start + third);
    struct part middle = part_of(all, start + third, to - third), last = part_of(all, to - third, to);
    if (!last.grew) return whole.shrank ? LEAK_FLUCTUATES : LEAK_PLATEAU;
    if (whole.grew < TIMES || whole.grew * SELDOM < judged) return LEAK_ONE_OFF;
    if (first.high >= last.low || (whole.shrank && judged < PLENTY)) return LEAK_FLUCTUATES;
    if (!middle.grew) return LEAK_UNDECIDED;
    return is_slowing(&first, &last) || loses_the_old(&first, &last) ? LEAK_PLATEAU : LEAK_FOUND;
}

static uint32_t runs_in(const struct leak_rule *rule, uint32_t from, uint32_t to) {
    uint32_t runs = 0;
    if (!rule->runs) return to - from;
    for (uint32_t point = from; point < to; point++) runs += rule->runs[point];
    return runs ? runs : to - from;
}

static enum leak_confidence leak_judge_confidence(const struct leak_judgement *judged) {
    if (judged->judged < ENOUGH) return LEAK_LOW;
    if (judged->monotone || (judged->judged >= MANY && judged->grew * 2 >= judged->judged)) return LEAK_HIGH;
    return LEAK_MEDIUM;
}

static void add_figures(struct leak_judgement *judged, struct sequence all, const struct leak_rule *rule, uint32_t to) {
    struct part whole = part_of(all, judged->first, to);
    double runs = runs_in(rule, judged->first, to);
    judged->judged = to - judged->first;
    judged->grew = whole.grew;
    judged->monotone = whole.grew == judged->judged && !whole.shrank;
    judged->bytes_per_run = runs ? (double)whole.grown / runs : 0;
    judged->blocks_per_run = runs ? (double)whole.blocks / runs : 0;
    judged->confidence = leak_judge_confidence(judged);
}

/* The verdict if there was no growth at the judged points. */
static enum leak_verdict judge_rest(struct sequence all, const struct leak_rule *rule, uint32_t from, uint32_t to) {
    if (part_of(all, from, to).shrank) return LEAK_FLUCTUATES;
    if (part_of(all, 0, from).grew) return LEAK_ONE_OFF;
    return part_of(all, to, rule->points).grew ? LEAK_YOUNG : LEAK_NOTHING;
}

static enum leak_verdict judge_growth(struct sequence all, const struct leak_rule *rule, uint32_t from, uint32_t to,
                                      uint32_t start) {
    if (to - from < LEAST) return LEAK_UNDECIDED;
    if (leak_judge_replaces(all, rule, from, start)) return LEAK_PLATEAU;
    if (to - start < ENOUGH && start > from)
        return part_of(all, start, to).grew < TIMES ? LEAK_ONE_OFF : LEAK_UNDECIDED;
    enum leak_verdict verdict = to - start < ENOUGH ? judge_few(all, start, to) : judge_many(all, start, to);
    return verdict == LEAK_FOUND && lost_the_first(all, rule, start, to) ? LEAK_PLATEAU : verdict;
}

struct leak_judgement leak_judge(const struct leak_change *changes, size_t count, const struct leak_rule *rule) {
    struct sequence all = {changes, count};
    uint32_t judged = leak_judged(rule), to = rule->points - (judged ? rule->young : 0), from = to - judged;
    struct leak_judgement out = {.first = first_growth(all, from, to)};
    if (!judged) { /* too few points to leave any out */
        out.first = 0;
        out.verdict = part_of(all, rule->left ? 0 : 1, to).grew ? LEAK_UNDECIDED : LEAK_NOTHING;
    } else if (out.first == to) {
        out.first = from;
        out.verdict = judge_rest(all, rule, from, to);
    } else {
        out.verdict = judge_growth(all, rule, from, to, out.first);
    }
    add_figures(&out, all, rule, to);
    if (out.verdict == LEAK_FOUND && out.bytes_per_run < (double)rule->floor) out.verdict = LEAK_SMALL;
    return out;
}
