/* leak_lines.c — see leak_lines.h. Site B follows site A if both of these are true:
 * - B was first used in the last run that used A, or in the run after that.
 * - A run took similar amounts of memory at A and at B, on average.
 * A single run may replace several sites of one line: then B follows the site whose amounts are nearest to its own. */
#include "tools/leaks/leak_lines.h"

#include <stdlib.h>

enum {
    IN_USE = 2,  /* a site that was used in one of the last two runs has no successor: its use goes on */
    SIMILAR = 4, /* two amounts are similar if neither is more than this many times the other */
    NEAR = 8,    /* at most this many candidates with less memory, and as many with more, are compared */
};

/* A site, and the runs that used it, from `first` to `last`. `each`: bytes that a run allocated there, on average.
 * `left`: bytes of a run that are left there, on average. */
struct stretch {
    uint32_t site, first, last;
    double each, left;
};

static int leak_lines_by_line(const struct leak_site *a, const struct leak_site *b) {
    if (a->line != b->line) return a->line < b->line ? -1 : 1;
    if (a->model != b->model) return a->model < b->model ? -1 : 1;
    return a->node < b->node ? -1 : a->node > b->node;
}

static int by_end(const void *left, const void *right, void *context) {
    const struct stretch *a = left, *b = right;
    const struct leak_site *sites = context;
    int order = leak_lines_by_line(&sites[a->site], &sites[b->site]);
    if (order) return order;
    if (a->last != b->last) return a->last < b->last ? -1 : 1;
    return a->each < b->each ? -1 : a->each > b->each;
}

/* Writes the stretches of all sites whose stacks have Python frames. Returns their number. */
static size_t find_stretches(const struct leak_sites *sites, struct stretch *list) {
    const struct leak_entries *left = &sites->left;
    size_t count = 0;
    for (size_t begin = 0, end; begin < left->count; begin = end) {
        uint32_t site = left->list[begin].site;
        struct stretch one = {.site = site, .first = left->list[begin].change.point};
        for (end = begin; end < left->count && left->list[end].site == site; end++) {
            one.each += (double)left->list[end].change.allocated;
            one.left += (double)left->list[end].change.bytes;
        }
        one.last = left->list[end - 1].change.point;
        one.each /= (double)(end - begin);
        one.left /= (double)(end - begin);
        if (sites->list[site].line) list[count++] = one;
    }
    return count;
}

static bool may_follow(const struct leak_site *sites, const struct stretch *next, const struct stretch *before) {
    return leak_lines_by_line(&sites[next->site], &sites[before->site]) == 0 && before->first < next->first &&
           next->each <= SIMILAR * before->each && before->each <= SIMILAR * next->each;
}

static double difference(const struct stretch *a, const struct stretch *b) {
    double each = a->each - b->each, left = a->left - b->left;
    return (each < 0 ? -each : each) + (left < 0 ? -left : left);
}

/* Looks at the stretches whose last run is `run`. Among those that `next` may follow, returns the stretch that differs
 * least from `next`. NULL: there is none. */
static const struct stretch *ended_in(const struct leak_sites *sites, const struct stretch *list, size_t count,
                                      const struct stretch *next, uint32_t run) {
    struct stretch wanted = *next;
    wanted.last = run;
    size_t low = 0, high = count;
    if (run + IN_USE >= sites->run_count) return NULL;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (by_end(&list[middle], &wanted, sites->list) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    const struct stretch *best = NULL;
    for (size_t i = low > NEAR ? low - NEAR : 0; i < count && i < low + NEAR; i++) {
        if (list[i].last != run || !may_follow(sites->list, next, &list[i])) continue;
        if (!best || difference(next, &list[i]) < difference(next, best)) best = &list[i];
    }
    return best;
}

/* In a chain, each site follows the one before it. For each site that follows another site, sets first_of to the first
 * site of its chain. */
static void find_chains(const struct leak_sites *sites, const struct stretch *list, size_t count, uint32_t *first_of) {
    for (size_t i = 0; i < count; i++) {
        const struct stretch *next = &list[i];
        if (!next->first) continue;
        const struct stretch *before = ended_in(sites, list, count, next, next->first);
        if (!before) before = ended_in(sites, list, count, next, next->first - 1);
        if (before) first_of[next->site] = before->site;
    }
    /* No chain is a circle, because each site of a chain was first used in a later run than the site before it. */
    for (size_t i = 0; i < count; i++) {
        uint32_t first = list[i].site;
        while (first_of[first] != first) first = first_of[first];
        for (uint32_t site = list[i].site, next; site != first; site = next) {
            next = first_of[site];
            first_of[site] = first;
        }
    }
}

/* In each chain, chooses the site with most live memory, because a program can be asked for the holders of live blocks
 * only. Sets `joined` of the chain's other sites, so that the chosen site takes over their memory. Returns whether
 * there is a chain. */
static bool choose(struct leak_sites *sites, const uint32_t *first_of, uint32_t *chosen) {
    bool any = false;
    for (uint32_t i = 0; i < sites->count; i++) {
        uint32_t *best = &chosen[first_of[i]];
        any |= first_of[i] != i;
        if (sites->list[i].live_bytes > sites->list[*best].live_bytes) *best = i;
    }
    for (uint32_t i = 0; any && i < sites->count; i++)
        if (chosen[first_of[i]] != i) sites->list[i].joined = 1 + chosen[first_of[i]];
    return any;
}

static void move_memory(struct leak_site *from, struct leak_site *to) {
    to->live_bytes += from->live_bytes;
    to->live_blocks += from->live_blocks;
    to->gone_bytes += from->gone_bytes;
    to->gone_blocks += from->gone_blocks;
    from->live_bytes = from->live_blocks = from->gone_bytes = from->gone_blocks = 0;
}

static int move_entries(const struct leak_sites *sites, struct leak_entries *entries, uint32_t points) {
    for (size_t i = 0; i < entries->count; i++) {
        uint32_t joined = sites->list[entries->list[i].site].joined;
        if (joined) entries->list[i].site = joined - 1;
    }
    return leak_entries_sort(entries, sites->count, points);
}

static int join_all(struct leak_sites *sites, struct stretch *list, uint32_t *first_of, uint32_t *chosen) {
    size_t count = find_stretches(sites, list);
    qsort_r(list, count, sizeof *list, by_end, sites->list);
    for (uint32_t i = 0; i < sites->count; i++) first_of[i] = chosen[i] = i;
    find_chains(sites, list, count, first_of);
    if (!choose(sites, first_of, chosen)) return 0;
    for (uint32_t i = 0; i < sites->count; i++)
        if (sites->list[i].joined) move_memory(&sites->list[i], &sites->list[sites->list[i].joined - 1]);
    return move_entries(sites, &sites->left, sites->run_count) < 0
               ? -1
               : move_entries(sites, &sites->moved, sites->point_count);
}

static size_t count_used(const struct leak_entries *left) {
    size_t count = 0;
    for (size_t i = 0; i < left->count; i++) count += !i || left->list[i].site != left->list[i - 1].site;
    return count;
}

int leak_lines_join(struct leak_sites *sites) {
    size_t used = count_used(&sites->left);
    if (!used) return 0;
    struct stretch *list = malloc(used * sizeof *list);
    uint32_t *first_of = malloc(sites->count * sizeof *first_of), *chosen = malloc(sites->count * sizeof *chosen);
    int result = list && first_of && chosen ? join_all(sites, list, first_of, chosen) : -1;
    free(list);
    free(first_of);
    free(chosen);
    return result;
}
