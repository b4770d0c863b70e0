/* report_stacks.c — the call stacks of a report in text: the sites that hold the most, and the call tree; see report.h.
 * Frames carry "py" where they are Python's. Only what is printed is looked up in symbol files. */
#include "calltree.h"
#include "estimate.h"
#include "innermost.h"
#include "report.h"
#include "stacks.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 80 };

/* ---- sites */

enum { SITE_INDENT = 26, SITE_BYTES = 12 };

/* What stands to the left of a line: the figures, on the next line how far off they may be, then nothing. */
struct margin {
    bool figures; /* they are there */
    uint64_t error;
};

static void print_margin(struct margin *margin) {
    int used = 0;
    if (!margin->figures && margin->error) {
        struct text error = text_size(margin->error);
        used = printf("%*s± %s", SITE_BYTES - 2 - (int)strlen(error.s), "", error.s) - (int)strlen("±") + 1;
        margin->error = 0;
    }
    if (!margin->figures) printf("%*s", SITE_INDENT - used, "");
    margin->figures = false;
}

static void print_stack(const struct innermost *stack, struct margin *margin) {
    for (size_t i = 0; i < stack->count; i++) {
        const struct innermost_line *line = &stack->lines[i];
        if (line->skipped) {
            print_margin(margin);
            printf("   … %zu frames\n", line->skipped);
        }
        print_margin(margin);
        puts(innermost_text(line, WIDTH - SITE_INDENT).s);
    }
    if (!stack->more) return;
    print_margin(margin);
    printf("   … %zu more\n", stack->more);
}

static size_t append_owner(const struct image *image, const char *kind, uint32_t id, char *text, size_t used,
                           size_t size) {
    const struct snap_owner *owner = image_owner(image, id);
    if (!owner || used >= size) return used;
    return used + (size_t)snprintf(text + used, size - used, "%s%s %s", used ? ", " : "", kind,
                                   image_string(image, owner->name));
}

/* Whether there was anything to say. */
static bool site_owners(const struct image *image, uint32_t id) {
    char text[1024];
    const struct snap_tag *tag = image_tag(image, id);
    size_t used = append_owner(image, "model", tag->model, text, 0, sizeof text);
    used = append_owner(image, "node", tag->node, text, used, sizeof text);
    used = append_owner(image, "run", tag->run, text, used, sizeof text);
    if (used) printf("%s\n", text_fit(text, WIDTH - SITE_INDENT).s);
    return used;
}

static uint64_t site_error(const struct report *report, const struct listed_site *site) {
    return estimate_error(report_site_variance(report->image, site, report->measure));
}

static void print_site(const struct report *report, const struct listed_site *site) {
    struct innermost stack;
    struct total sum = report_site(report->image, site);
    innermost_of(&stack, report->image, report->symbols, sum.stack);
    printf("  %10s %11s  ", text_size(site->bytes).s, text_count(total_measure_blocks(&sum, report->measure)).s);
    struct margin margin = {!site_owners(report->image, sum.tag), site_error(report, site)};
    if (stack.count) {
        print_stack(&stack, &margin);
    } else {
        const char *module = image_module(report->image, sum.module);
        print_margin(&margin);
        printf("   %s\n", text_fit(module ? module : "(call stack unknown)", WIDTH - SITE_INDENT - 3).s);
    }
    if (!margin.error) return;
    print_margin(&margin);
    putchar('\n');
}

static struct text measure_words(const struct report *report) {
    if (report->measure == MEASURE_PEAK) return report_peak_label(report->image);
    if (report->measure == MEASURE_ALLOCATED) return (struct text){"allocated"};
    return (struct text){"live"};
}

int text_sites(const struct report *report) {
    size_t count;
    struct listed_site *sites = report_sites(report, false, &count);
    if (!sites) return -1;
    size_t shown = count < report->top ? count : report->top;
    text_view(report, BY_SITE);
    int wide = printf("  %10s", measure_words(report).s);
    printf(" %*s  call stack, innermost first\n", SITE_INDENT - 3 - wide, "blocks");
    for (size_t i = 0; i < shown; i++) print_site(report, &sites[i]);
    if (shown < count) printf("  … and %s more (--top=N shows N)\n", text_count(count - shown).s);
    free(sites);
    return 0;
}

/* ---- the tree */

enum {
    TREE_INDENT = 22,
    TREE_ERROR = 8,   /* more of it where bytes are estimates */
    DEPTH_SHOWN = 16, /* divisions */
    /* Of a chain of calls that all hold the same: frames at its outer end, at its inner one, and Python ones between.
     */
    CHAIN_HEAD = 1,
    CHAIN_TAIL = 3,
    CHAIN_PYTHON = 4,
    BRANCHES_SHOWN = 4, /* of what one function calls */
    PERCENT_SHOWN = 2,  /* what holds less of the whole is left out */
    LINES_PER_ROW = 6,  /* of --top */
    LINES_LEAST = 4,    /* a branch is not divided further where its parts would get less */
};

struct tree_print {
    const struct report *report;
    struct calltree tree;
    uint64_t total;
    size_t lines;
    int indent;
};

static double percent(uint64_t part, uint64_t whole) { return whole ? 100.0 * (double)part / (double)whole : 0.0; }

/* Of a part of the tree. The error is in percent of the figure. */
struct figures {
    uint64_t bytes;
    double variance;
};

static void tree_figures(const struct tree_print *print, const struct figures *figures, int depth) {
    printf("  %10s ", text_size(figures->bytes).s);
    if (print->tree.variances) printf("±%4.0f %% ", percent(estimate_error(figures->variance), figures->bytes));
    printf("%5.1f %%  %*s", percent(figures->bytes, print->total), 2 * depth, "");
}

/* The outermost of inlined functions first. Figures only where they change; NULL: not here. */
static void tree_frame(struct tree_print *print, uint32_t id, const struct figures *figures, int depth) {
    const struct named_frame *frame = symbols_frame(print->report->symbols, id);
    for (uint32_t i = frame->count; i--; figures = NULL) {
        struct innermost_line line = {frame, &frame->symbols[i], 0};
        if (figures)
            tree_figures(print, figures, depth);
        else
            printf("%*s", print->indent + 2 * depth, "");
        puts(innermost_text(&line, WIDTH - print->indent - 2 * depth).s);
        print->lines++;
    }
}

/* Frames that call each other and all hold the same. */
struct chain {
    uint32_t *frames;
    size_t count, capacity;
    struct figures figures;
};

/* Where the innermost few Python frames between the ends of the chain begin. */
static size_t python_from(const struct image *image, const struct chain *chain) {
    size_t first = chain->count - CHAIN_TAIL, found = 0;
    while (first > CHAIN_HEAD && found < CHAIN_PYTHON)
        if (innermost_is_python(image, chain->frames[--first])) found++;
    return first;
}

static bool chain_shows(const struct image *image, const struct chain *chain, size_t python, size_t i) {
    if (i < CHAIN_HEAD || i + CHAIN_TAIL >= chain->count) return true;
    return i >= python && innermost_is_python(image, chain->frames[i]);
}

static void chain_print(struct tree_print *print, struct chain *chain, int depth) {
    const struct image *image = print->report->image;
    bool whole = chain->count <= CHAIN_HEAD + CHAIN_TAIL + 1;
    size_t python = whole ? 0 : python_from(image, chain), hidden = 0;
    for (size_t i = 0; i < chain->count; i++) {
        if (!whole && !chain_shows(image, chain, python, i)) {
            hidden++;
            continue;
        }
        if (hidden) {
            printf("%*s   … %zu frames\n", print->indent + 2 * depth, "", hidden);
            print->lines++;
        }
        hidden = 0;
        tree_frame(print, chain->frames[i], i ? NULL : &chain->figures, depth);
    }
    chain->count = 0;
}

/* What differs by less than is printed is the same. */
static bool chain_goes_on(const struct tree_print *print, const struct chain *chain, uint64_t bytes) {
    return chain->figures.bytes - bytes <= print->total / 2000;
}

static int chain_add(struct tree_print *print, struct chain *chain, const struct branch *branch, int depth) {
    if (chain->count && !chain_goes_on(print, chain, branch->bytes)) chain_print(print, chain, depth);
    if (chain->count == chain->capacity) {
        size_t capacity = chain->capacity ? 2 * chain->capacity : 64;
        uint32_t *grown = realloc(chain->frames, capacity * sizeof *grown);
        if (!grown) return -1;
        chain->frames = grown;
        chain->capacity = capacity;
    }
    if (!chain->count) chain->figures = (struct figures){branch->bytes, branch->variance};
    chain->frames[chain->count++] = branch->frame;
    return 0;
}

static size_t worth_showing(const struct tree_print *print, const struct branches *branches) {
    size_t count = 0;
    while (count < branches->count && count < BRANCHES_SHOWN &&
           branches->list[count].bytes > print->total / 100 * PERCENT_SHOWN)
        count++;
    return count;
}

/* lines: how many the branches may take, more or less. */
static int print_branches(struct tree_print *print, const struct branches *branches, size_t shown, int depth,
                          size_t lines);

/* A branch: down its chain of calls for as long as one of them alone is worth showing, then what it divides into. */
static int print_branch(struct tree_print *print, const struct branch *branch, int depth, size_t lines) {
    struct chain chain = {0};
    struct branches below = {0}, next;
    size_t shown = 1, before = print->lines;
    int result = chain_add(print, &chain, branch, depth);
    for (size_t frames = 0; result == 0 && shown == 1 && frames < STACK_FRAMES_MAX; frames++) {
        result = calltree_expand(&print->tree, branch, &next);
        if (result < 0) break;
        branches_clear(&below);
        below = next;
        shown = worth_showing(print, &below);
        if (shown != 1) break;
        branch = &below.list[0];
        result = chain_add(print, &chain, branch, depth);
    }
    if (result == 0) chain_print(print, &chain, depth);
    free(chain.frames);
    size_t used = print->lines - before, left = lines > used ? lines - used : 0;
    if (result == 0 && shown > 1) result = print_branches(print, &below, shown, depth + 1, left);
    branches_clear(&below);
    return result;
}

static void print_rest(struct tree_print *print, const struct branches *branches, size_t from, int depth) {
    struct figures rest = {0};
    for (size_t i = from; i < branches->count; i++) {
        rest.bytes += branches->list[i].bytes;
        rest.variance += branches->list[i].variance;
    }
    if (!rest.bytes) return;
    tree_figures(print, &rest, depth);
    printf("   … %s more\n", text_count(branches->count - from).s);
    print->lines++;
}

/* Each gets its share of the lines by what it holds. */
static int print_branches(struct tree_print *print, const struct branches *branches, size_t shown, int depth,
                          size_t lines) {
    uint64_t bytes = 1;
    if (depth >= DEPTH_SHOWN || lines < LINES_LEAST * shown) shown = 0;
    for (size_t i = 0; i < shown; i++) bytes += branches->list[i].bytes;
    for (size_t i = 0; i < shown; i++) {
        size_t share = (size_t)((double)lines * ((double)branches->list[i].bytes / (double)bytes));
        if (print_branch(print, &branches->list[i], depth, share) < 0) return -1;
    }
    print_rest(print, branches, shown, depth);
    return 0;
}

/* What each stack holds by itself, and together. NULL: no memory. */
static uint64_t *node_bytes(const struct report *report, uint64_t *total) {
    const struct image *image = report->image;
    uint64_t *bytes = calloc(image->node_count + 1, sizeof *bytes);
    *total = 0;
    for (size_t i = 0; bytes && i < image->total_count; i++) {
        const struct total *one = &image->totals[i];
        if (!one->stack || one->stack >= image->node_count || !report_keeps(report, one)) continue;
        bytes[one->stack] += total_measure(one, report->measure);
        *total += total_measure(one, report->measure);
    }
    return bytes;
}

static double *node_variances(const struct report *report) {
    const struct image *image = report->image;
    double *variances = calloc(image->node_count + 1, sizeof *variances);
    for (size_t i = 0; variances && i < image->total_count; i++) {
        const struct total *one = &image->totals[i];
        if (!one->stack || one->stack >= image->node_count || !report_keeps(report, one)) continue;
        variances[one->stack] += image_variance(image, one, report->measure);
    }
    return variances;
}

int text_tree(const struct report *report) {
    bool estimated = report->image->variances;
    struct tree_print print = {.report = report, .indent = TREE_INDENT + (estimated ? TREE_ERROR : 0)};
    size_t lines = report->top < SIZE_MAX / LINES_PER_ROW ? LINES_PER_ROW * report->top : SIZE_MAX;
    struct branches roots;
    uint64_t *bytes = node_bytes(report, &print.total);
    double *variances = estimated ? node_variances(report) : NULL;
    int result = calltree_begin(&print.tree, report->image, bytes, variances);
    if (estimated && !variances) result = -1;
    if (result == 0 && print.total) {
        printf("\nCall tree (%s%s, with all that is below)\n", estimated ? "estimates of what is " : "",
               measure_words(report).s);
        result = calltree_expand(&print.tree, NULL, &roots);
        if (result == 0) result = print_branches(&print, &roots, worth_showing(&print, &roots), 0, lines);
        if (result == 0) branches_clear(&roots);
    }
    calltree_end(&print.tree);
    return result;
}

/* Why some functions have no lines. */
void text_without_lines(const struct report *report) {
    const char *names[3];
    size_t most = sizeof names / sizeof *names, count = symbols_without_lines(report->symbols, names, most);
    if (!count) return;
    puts("\nNo debug information, so no lines and nothing inlined:");
    for (size_t i = 0; i < count && i < most; i++) printf("  %s\n", text_fit(names[i], WIDTH - 2).s);
    if (count > most) printf("  … and %zu more files\n", count - most);
}
