/* gate.c — see gate.h. */
#include "tools/diff/gate.h"

#include <stdlib.h>
#include <string.h>

static int64_t gate_bounded(uint64_t number) { return number < INT64_MAX ? (int64_t)number : INT64_MAX; }

static int64_t gate_distance(struct range before, struct range now) {
    if (now.low > before.high) return gate_bounded(now.low - before.high);
    return now.high < before.low ? -gate_bounded(before.low - now.high) : 0;
}

/* Looks up the figure's ranges in the baseline. The baseline has all owners, but may lack call sites that stayed below
 * its floor (figures.h). So a call site that it lacks may have held any amount below the floor. */
static void ranges_before(const struct gate *gate, const struct figure *figure, struct finding *finding) {
    const struct figure *old = figures_find_like(gate->before, figure);
    struct range unlisted = {0, figure->kind == FIGURE_SITE ? gate->before->floor - 1 : 0};
    finding->before[0] = old ? old->bytes : unlisted;
    finding->before[1] = old ? old->blocks : unlisted;
    finding->is_new = !old;
}

static void ranges_now(const struct gate *gate, const struct figure *figure, struct finding *finding) {
    const struct figure *now = figures_find_like(gate->now, figure);
    finding->now[0] = now ? now->bytes : (struct range){0, 0};
    finding->now[1] = now ? now->blocks : (struct range){0, 0};
}

static void gate_measure(const struct gate *gate, const struct figure *figure, struct finding *finding) {
    *finding = (struct finding){.figure = figure};
    ranges_before(gate, figure, finding);
    ranges_now(gate, figure, finding);
    finding->growth = (struct growth){gate_distance(finding->before[0], finding->now[0]),
                                      gate_distance(finding->before[1], finding->now[1]), finding->before[0].high};
}

static bool has_changed(const struct finding *finding) { return finding->growth.bytes || finding->growth.blocks; }

/* The highest possible growth of a suppressed call site. `what`: 0 for bytes, 1 for blocks. If the baseline lacks the
 * site, all memory of the site counts as growth, unless the site is below the baseline's floor. In that case none of
 * its memory counts. */
static int64_t most_grown(const struct gate *gate, const struct finding *site, int what) {
    uint64_t high = site->now[what].high, low = site->is_new ? 0 : site->before[what].low;
    if (site->is_new && site->now[0].high < gate->before->floor) return 0;
    return high > low ? gate_bounded(high - low) : 0;
}

static int over_add(struct gate *gate, const struct figure *figure, size_t capacity) {
    struct finding *finding = &gate->list[gate->count];
    if (gate->count == capacity) return -1;
    gate_measure(gate, figure, finding);
    bool grew = finding->growth.bytes > 0 || finding->growth.blocks > 0;
    if (gate->suppressions && grew) finding->suppression = suppressions_match(gate->suppressions, figure);
    if (figure->kind != FIGURE_SITE || has_changed(finding)) gate->count++;
    return 0;
}

/* Whether the figure is judged. Figures of the host always are. A figure of devices is judged if both the baseline and
 * the present runs have figures for devices; a baseline of version 1 has none. */
static bool is_judged(const struct gate *gate, const struct figure *figure) {
    return !figure->cuda || (gate->before->with_cuda && gate->now->with_cuda);
}

bool gate_leaves_out_cuda(const struct gate *gate) {
    return !gate->before->with_cuda && figures_find_cuda(gate->now, FIGURE_TOTAL, "");
}

bool gate_leaves_out_origins(const struct gate *gate) { return gate->before->without_origins && !gate->owners_only; }

static int overs_collect(struct gate *gate) {
    size_t capacity = gate->before->count + gate->now->count;
    int result = 0;
    gate->list = calloc(capacity + 1, sizeof *gate->list);
    if (!gate->list) return -1;
    for (const struct figure *f = gate->now->table; f && result == 0; f = f->hh.next)
        if (is_judged(gate, f)) result = over_add(gate, f, capacity);
    for (const struct figure *f = gate->before->table; f && result == 0; f = f->hh.next)
        if (is_judged(gate, f) && !figures_find_like(gate->now, f) && !(f->kind == FIGURE_SITE && gate->owners_only))
            result = over_add(gate, f, capacity);
    return result;
}

static void take_off(int64_t *growth, int64_t most) {
    if (*growth > 0) *growth = *growth > most ? *growth - most : 0;
}

bool gate_is_of(const struct figure *site, const struct figure *owner) {
    char text[SCAN_STRING_MOST], name[SCAN_STRING_MOST], origin[SCAN_STRING_MOST];
    const char *next = figure_name(site), *own = figure_name(owner);
    size_t kind = strcspn(own, " ");
    enum figure_part part = PART_FRAME;
    bool named = false; /* the last owner has this kind and name */
    if (!figure_part(&own, &part, name, sizeof name) || !figure_part(&own, &part, origin, sizeof origin)) return false;
    while (figure_part(&next, &part, text, sizeof text)) {
        if (named && (part != PART_ORIGIN || strcmp(text, origin) == 0)) return true;
        named = part == PART_OWNER && strncmp(text, figure_name(owner), kind) == 0 && text[kind] == ':' &&
                strcmp(text + kind + 1, name) == 0;
    }
    return named;
}

static int64_t sum_capped(int64_t a, int64_t b) { return a > INT64_MAX - b ? INT64_MAX : a + b; }

/* Subtracts the growth of suppressed call sites from the total and from their owners. The total and the owners come
 * first in the list, so the inner loop ends at the first call site. */
static void take_off_suppressed(struct gate *gate) {
    for (size_t i = 0; i < gate->count; i++) {
        const struct finding *site = &gate->list[i];
        if (!site->suppression || site->figure->kind != FIGURE_SITE) continue;
        int64_t bytes = most_grown(gate, site, 0), blocks = most_grown(gate, site, 1);
        for (size_t k = 0; k < gate->count && gate->list[k].figure->kind != FIGURE_SITE; k++) {
            struct finding *whole = &gate->list[k];
            if (whole->figure->cuda != site->figure->cuda) continue;
            if (whole->figure->kind == FIGURE_OWNER && !gate_is_of(site->figure, whole->figure)) continue;
            if (whole->growth.bytes > 0) whole->suppressed_bytes = sum_capped(whole->suppressed_bytes, bytes);
            take_off(&whole->growth.bytes, bytes);
            take_off(&whole->growth.blocks, blocks);
        }
    }
}

static void gate_judge_one(struct gate *gate, struct finding *finding) {
    static const enum limit_scope scopes[] = {LIMIT_TOTAL, LIMIT_OWNER, LIMIT_SITE};
    enum limit_scope scope = scopes[finding->figure->kind];
    finding->verdict = thresholds_judge(gate->thresholds, scope, finding->growth, &finding->limit);
    if (finding->suppression && finding->verdict != VERDICT_FINE) {
        gate->suppressed++;
        finding->verdict = VERDICT_FINE;
        finding->limit = NULL;
    }
    if (finding->verdict == VERDICT_FINE && !finding->suppression)
        finding->below_floor = limits_passed(&gate->thresholds->limits, scope, finding->growth);
    gate->over += finding->verdict == VERDICT_FAILED;
    gate->warnings += finding->verdict == VERDICT_WARNING;
}

static int by_growth(const void *left, const void *right) {
    const struct finding *a = left, *b = right;
    if (a->figure->kind != b->figure->kind) return (int)a->figure->kind - (int)b->figure->kind;
    if (a->figure->kind == FIGURE_TOTAL && a->figure->cuda != b->figure->cuda) return a->figure->cuda ? 1 : -1;
    if (a->verdict != b->verdict) return (int)b->verdict - (int)a->verdict;
    if (a->growth.bytes != b->growth.bytes) return a->growth.bytes > b->growth.bytes ? -1 : 1;
    return strcmp(figure_name(a->figure), figure_name(b->figure));
}

int gate_judge(struct gate *gate) {
    gate_end(gate);
    if (overs_collect(gate) < 0) return -1;
    qsort(gate->list, gate->count, sizeof *gate->list, by_growth);
    take_off_suppressed(gate);
    for (size_t i = 0; i < gate->count; i++) gate_judge_one(gate, &gate->list[i]);
    qsort(gate->list, gate->count, sizeof *gate->list, by_growth);
    return 0;
}

void gate_end(struct gate *gate) {
    free(gate->list);
    gate->list = NULL;
    gate->count = gate->over = gate->warnings = gate->suppressed = 0;
}
