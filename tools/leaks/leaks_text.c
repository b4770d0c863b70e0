/* leaks_text.c — leaks as text; see leaks.h. */
#include "tools/leaks/leaks.h"
#include "tools/symbols/site_lines.h"
#include "tools/base/text.h"

#include <stdio.h>
#include <string.h>

enum { INDENT = 26, FIRST = 11, SECOND = 11, HOLDERS = 4 };

static const struct leak_name *name_of(const struct leaks *self, uint32_t name) {
    return name ? self->sites->names[name] : NULL;
}

/* The name of an owner for people: "NAME (ORIGIN)". NULL: no owner. */
static const char *owner_text(const struct leaks *self, uint32_t name, struct text_line *to) {
    const struct leak_name *owner = name_of(self, name);
    if (!owner) return NULL;
    if (*owner->origin)
        snprintf(to->s, sizeof to->s, "%s (%s)", owner->name, owner->origin);
    else
        snprintf(to->s, sizeof to->s, "%s", owner->name);
    return to->s;
}

static const char *leaks_text_plural(uint64_t count, const char *one, const char *many) {
    return count == 1 ? one : many;
}

/* --- the runs and readings --- */

static uint32_t at_most(uint32_t count, uint32_t most) { return count < most ? count : most; }

static void print_runs(const struct leaks *self) {
    const struct leak_sites *sites = self->sites;
    /* A run of the warm-up may have garbage, too, but counts as warm-up only: each run is counted once. */
    uint32_t runs = sites->run_count, runs_warm_up = at_most(leak_warm_up(runs), runs);
    if (runs)
        printf("%s %s ended, %s judged: %u %s warm-up, %u %s\n", text_count(runs).s,
               leaks_text_plural(runs, "run has", "runs have"), text_count(leak_judged(&self->left_rule)).s,
               runs_warm_up, leaks_text_plural(runs_warm_up, "is", "are"),
               at_most(self->left_rule.young, runs - runs_warm_up),
               self->uncollected == self->left_rule.young ? "may have garbage" : "may be in use");
    if (sites->point_count > 1)
        printf("%s readings, %s judged: %u are warm-up\n", text_count(sites->point_count).s,
               text_count(leak_judged(&self->moved_rule)).s, leak_warm_up(sites->point_count));
    if (self->uncollected == self->left_rule.young)
        puts("Python has not collected the garbage of the last runs: gc.collect() does");
}

static void leaks_text_print_head(const struct leaks *self) {
    const struct image *image = self->image;
    printf("%s[%u]: %s live\n", TEXT_SAFE(image->header.name), image->header.pid,
           text_size(image->host.live_bytes + image->mapped.live_bytes).s);
    print_runs(self);
}

static void print_verdict(const struct leaks *self) {
    size_t count = leaks_total(self);
    struct leaks_doubt doubt = leaks_doubt(self);
    switch (leaks_verdict(self)) {
    case LEAKS_FOUND:
        text_heading("%s%s %s found", text_style(TEXT_RED), text_count(count).s,
                     leaks_text_plural(count, "leak", "leaks"));
        return;
    case LEAKS_CANNOT_TELL:
        text_heading("Cannot tell: %s.", doubt.why);
        printf("What to do: %s.\n", doubt.advice);
        return;
    case LEAKS_NONE:
        text_heading("%sNo leak found", text_style(TEXT_GREEN));
        if (!leaks_ended_in_order(self)) return;
        puts("The program has ended in order, which frees most of what leaks: look at it\n"
             "while it runs, or at a snapshot of that time.");
    }
}

/* --- retired owners --- */

/* Returns how many bytes of the text go into the next line. If the text does not fit, the line ends at the last blank
 * in the second half of the width, or at the width if there is no such blank. */
static size_t line_length(const char *text, int width) {
    size_t length = 0, blank = 0;
    for (int columns = 0; text[length] && columns < width; columns++) {
        if (text[length] == ' ' && columns > width / 2) blank = length;
        do length++;
        while ((text[length] & 0xC0) == 0x80);
    }
    return text[length] && text[length] != ' ' && blank ? blank : length;
}

/* Prints the text on as many lines as it needs. */
static void print_long(struct margin *margin, const char *text) {
    int width = site_width(margin);
    for (int indent = 0; *text; indent = 2) {
        struct text_line line = {""};
        size_t length = line_length(text, width - indent);
        snprintf(line.s, sizeof line.s, "%*s%.*s", indent, "", (int)length, text);
        site_line(margin, line.s);
        text += length;
        text += *text == ' ';
    }
}

/* Prints a holder in words. The package comes first, unless the words begin with it already. */
static void print_holder(struct margin *margin, const char *pack, const char *words) {
    size_t length = strlen(pack);
    char line[640];
    bool is_first = length && strncmp(words, pack, length) == 0;
    snprintf(line, sizeof line, "held by %s%s%s", length && !is_first ? pack : "", length && !is_first ? ": " : "",
             words);
    print_long(margin, text_fit(line, 300).s);
}

static void print_holders(struct margin *margin, const struct leak_holder *holder) {
    struct jsontext value;
    char pack[128] = "", words[400];
    size_t next = 0;
    if (!holder) return;
    if (holder->pack.length) jsontext_string(holder->pack, pack, sizeof pack);
    for (int i = 0; i < HOLDERS && jsontext_next(holder->holders, &next, NULL, &value); i++)
        if (jsontext_string(value, words, sizeof words)) print_holder(margin, i ? "" : pack, words);
    if (holder->path) site_line(margin, "no Python object was found that holds it");
}

static void print_stack(const struct leaks *self, const struct leaks_view *view, struct margin *margin,
                        const struct leak_retired *retired) {
    struct innermost stack = {.count = 0};
    struct leak_stack at = retired->stacks[0];
    if (retired->rest_site != LEAK_NO_SITE) {
        at.stack = self->sites->list[retired->rest_site].stack;
        at.module = self->sites->list[retired->rest_site].module;
    } else if (!retired->stack_count) {
        return;
    }
    if (at.stack && view->symbols) innermost_of(&stack, self->image, view->symbols, at.stack);
    site_lines(margin, &stack, image_module_name(self->image, at.module));
}

static void print_retired_one(const struct leaks *self, const struct leaks_view *view,
                              const struct leak_retired *retired) {
    struct margin margin = {.width = INDENT};
    struct text_line name;
    char line[1200], times[64] = "";
    site_margin_add(&margin, "%*s %*s", FIRST, text_size(retired->rest_bytes).s, SECOND,
                    text_count(retired->rest_blocks).s);
    print_holders(&margin, retired->holder);
    print_holders(&margin, retired->other);
    if (retired->owners > 1) snprintf(times, sizeof times, "%s of ", text_count(retired->owners).s);
    const struct leak_name *owner = name_of(self, retired->name);
    snprintf(line, sizeof line, "%s%s %s", times, owner->kind == SNAP_OWNER_MODEL ? "model" : "custom",
             owner_text(self, retired->name, &name));
    site_line(&margin, text_fit(line, site_width(&margin)).s);
    if (self->sites->run_count) {
        snprintf(line, sizeof line, "retired %s %s ago", text_count(retired->runs_since).s,
                 leaks_text_plural(retired->runs_since, "run", "runs"));
        site_line(&margin, line);
    }
    print_stack(self, view, &margin, retired);
}

/* Prints the retired owners that leak, except those that findings report already. */
static void print_retired(const struct leaks *self, const struct leaks_view *view) {
    size_t count = 0;
    for (size_t i = 0; i < self->retired_leaks; i++) {
        if (self->retired[i].is_told) continue;
        if (!count) {
            text_heading("Retired, and still there");
            printf("%*s %*s  what holds it, owner, and where it was allocated\n", FIRST, "live", SECOND, "blocks");
        }
        if (count++ < view->top) print_retired_one(self, view, &self->retired[i]);
    }
    if (count > view->top) printf("… and %s more (--top=N shows N)\n", text_count(count - view->top).s);
}

/* --- findings: memory that grows --- */

static void print_evidence(const struct leaks *self, struct margin *margin, const struct leak_finding *finding) {
    const struct leak_judgement *judged = &finding->judged;
    const char *what = !finding->by_readings ? "runs" : "readings";
    char line[400];
    int used = snprintf(line, sizeof line, "%s of %s %s; confidence %s",
                        judged->monotone ? "each" : text_count(judged->grew).s, text_count(judged->judged).s, what,
                        leak_confidence_name(judged->confidence));
    if (finding->oldest != UINT32_MAX && used > 0 && (size_t)used < sizeof line)
        snprintf(line + used, sizeof line - (size_t)used, "; since \"%.160s\"",
                 text_fit(leaks_run(self, finding->oldest), 40).s);
    site_line(margin, text_fit(line, site_width(margin)).s);
    if (finding->site != LEAK_NO_SITE && self->sites->list[finding->site].on_cuda)
        site_line(margin, "memory of CUDA devices");
}

/* Prints the owner whose part grows fastest, and the number of other owners. */
static void print_owners(const struct leaks *self, struct margin *margin, const struct leak_finding *finding) {
    struct text_line model, node;
    char line[80];
    size_t others = 0;
    for (size_t i = 1; i < finding->part_count; i++) {
        const struct leak_finding *part = &self->parts[finding->first_part + i], *before = part - 1;
        others += part->model != before->model || part->node != before->node;
    }
    site_owners(margin, owner_text(self, finding->model, &model), owner_text(self, finding->node, &node), NULL);
    if (!others) return;
    snprintf(line, sizeof line, "and %s more %s", text_count(others).s, leaks_text_plural(others, "owner", "owners"));
    site_line(margin, line);
}

static void print_finding(const struct leaks *self, const struct leaks_view *view, const struct leak_finding *finding) {
    struct margin margin = {.width = INDENT};
    struct innermost stack = {.count = 0};
    const struct leak_site *site = finding->example != LEAK_NO_SITE ? &self->sites->list[finding->example] : NULL;
    const char *otherwise = "(many call stacks, none of which grows by itself)";
    if (site && site->stack && view->symbols) innermost_of(&stack, self->image, view->symbols, site->stack);
    if (site)
        otherwise = self->sites->sampled ? "(stacks are sampled: only owners are exact)"
                                         : image_module_name(self->image, site->module);
    site_margin_add(&margin, "%*s %*s", FIRST, text_size_change((int64_t)finding->judged.bytes_per_run).s, SECOND,
                    text_size(finding->live_bytes).s);
    print_holders(&margin, finding->holder);
    print_owners(self, &margin, finding);
    print_evidence(self, &margin, finding);
    if (finding->stacks > 1) {
        char line[80];
        snprintf(line, sizeof line, "at %s call stacks, most at this one:", text_count(finding->stacks).s);
        site_line(&margin, line);
    }
    site_lines(&margin, &stack, otherwise);
}

static void print_growing(const struct leaks *self, const struct leaks_view *view) {
    size_t shown = self->count < view->top ? self->count : view->top;
    if (!self->count) return;
    text_heading("Growing");
    printf("%*s %*s  what holds it, owner, and call stack, innermost first\n", FIRST,
           leaks_by_runs(self) ? "a run" : "a reading", SECOND, "live");
    for (size_t i = 0; i < shown; i++) print_finding(self, view, &self->list[i]);
    if (shown < self->count) printf("… and %s more (--top=N shows N)\n", text_count(self->count - shown).s);
}

/* --- sites that do not leak --- */

static const struct {
    enum leak_verdict verdict;
    const char *words;
} others[] = {
    {LEAK_ONE_OFF, "came once: initialisation"},
    {LEAK_PLATEAU, "stopped growing: caches that are full"},
    {LEAK_FLUCTUATES, "come and go"},
    {LEAK_YOUNG, "came in the last runs: may be in use"},
    {LEAK_KEPT, "grow, in owners whose policy is keep"},
    {LEAK_SMALL, "grow by little"},
    {LEAK_THREADS, "came with threads that were started"},
    {LEAK_UNDECIDED, "too few runs, or too uneven, to tell"},
};

static void print_rest_head(bool *first) {
    if (!*first) return;
    text_heading("Not counted as leaks");
    printf("%*s %*s\n", FIRST, "live", SECOND, "sites");
    *first = false;
}

static void print_rest(const struct leaks *self) {
    bool first = true;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const struct leak_rest *rest = &self->rest[others[i].verdict];
        if (!rest->sites) continue;
        print_rest_head(&first);
        printf("%*s %*s  %s\n", FIRST, text_size(rest->live_bytes).s, SECOND, text_count(rest->sites).s,
               others[i].words);
    }
    for (size_t i = self->retired_leaks; i < self->retired_count; i++) {
        const struct leak_retired *retired = &self->retired[i];
        struct text_line name;
        print_rest_head(&first);
        printf("%*s %*s  left by %s, retired: too little, or too recent\n", FIRST, text_size(retired->live_bytes).s,
               SECOND, "", text_fit(owner_text(self, retired->name, &name), 40).s);
    }
    if (!self->retained) return;
    print_rest_head(&first);
    printf("%*s %*s  freed, and kept by the allocator\n", FIRST, text_size(self->retained).s, SECOND, "");
}

void leaks_text(const struct leaks *self, const struct leaks_view *view) {
    leaks_text_print_head(self);
    print_verdict(self);
    print_retired(self, view);
    print_growing(self, view);
    if (view->can_ask) printf("\nWhat holds this: memstow leaks %u --holders\n", self->image->header.pid);
    print_rest(self);
}
