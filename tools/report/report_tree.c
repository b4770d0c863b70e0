/* report_tree.c — the call tree of a report in text; see report.h.
 * The tree is made of limbs: a limb is a chain of calls with nearly the same bytes. In: the bytes of each stack. Out:
 * the largest branches that fit into the lines that --top allows. Each of them has more than 2 % of the whole. All
 * branches are built in memory before the first line is printed, so that the largest can be chosen. */
#include "tools/views/calltree.h"
#include "tools/base/list.h"
#include "tools/views/estimate.h"
#include "tools/symbols/innermost.h"
#include "tools/report/report.h"
#include "tools/views/stacks.h"
#include "tools/base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TREE_INDENT = 22,
    TREE_ERROR = 8, /* additional columns if the bytes are estimates */
    DEPTH_INDENTED = 16,
    /* A chain is calls with nearly the same bytes. CHAIN_HEAD: how many frames are shown at its outer end. CHAIN_TAIL:
     * how many are shown at its inner end. CHAIN_PYTHON: how many Python frames are shown between the two ends. */
    CHAIN_HEAD = 1,
    CHAIN_TAIL = 1,
    LEAF_TAIL = 3, /* in place of CHAIN_TAIL, for a chain without callees that are worth showing */
    CHAIN_PYTHON = 4,
    PERCENT_SHOWN = 2, /* branches with a smaller part of the whole are left out */
    PERCENT_SAME = 1,  /* a chain goes on while it loses no more than this part of the whole */
    NAMED_FROM = 1000, /* frames with less than 1/1000 of the whole are not looked up */
    LINES_PER_ROW = 8, /* lines of the tree for each row that --top allows */
    FRAMES_MOST = 4 * STACK_FRAMES_MAX,
    /* A file that is not damaged has fewer limbs: at most 50 limbs without callees have more than 2 % each, and at most
     * 100 limbs can be ended by a loss of more than 1 %. */
    LIMBS_MOST = 512,
};

/* Figures of a part of the tree. */
struct figures {
    uint64_t bytes;
    double variance;
};

/* A chain of calls with nearly the same bytes. It ends where the calls divide, go on with fewer bytes, or end. */
struct limb {
    struct branch branch; /* the outermost call */
    struct calltree_line *lines;
    size_t count, capacity;
    struct branches below; /* the callees of the innermost call */
    /* first: the index in `limbs` of the first child. parts: the number of children. parent: the index of the parent;
     * limb 0 is the root */
    size_t first, parts, parent;
    size_t cost; /* number of its lines; the root has none */
    bool shown;
};

struct tree_print {
    const struct report *report;
    struct calltree tree;
    uint64_t total;
    struct limb *limbs;
    size_t count;
    size_t frames_left; /* how many more frames may be added, so that a hostile file cannot make a huge tree */
    size_t lines;       /* number of lines that were printed or, if `counting`, would have been printed */
    bool counting;      /* lines are counted, and not printed */
    int indent;
};

static double report_tree_percent(uint64_t part, uint64_t whole) {
    return whole ? 100.0 * (double)part / (double)whole : 0.0;
}

/* ---- growing limbs from the call tree */

static bool worth_showing(const struct tree_print *print, uint64_t bytes) {
    return bytes > print->total / 100 * PERCENT_SHOWN;
}

static size_t count_worthy(const struct tree_print *print, const struct branches *branches) {
    size_t count = 0;
    while (count < branches->count && worth_showing(print, branches->list[count].bytes)) count++;
    return count;
}

static int add_line(struct limb *limb, const struct branch *branch) {
    if (!LIST_GROW(limb->lines, limb->count, limb->capacity)) return -1;
    limb->lines[limb->count++] = branch->line;
    return 0;
}

/* Whether the branch belongs to the chain. It may have a little fewer bytes than the chain's beginning, because each
 * import on the way to a leak also has a little memory elsewhere. If the branch had to have the same bytes, a new chain
 * would begin at each import. */
static bool report_tree_goes_on(const struct tree_print *print, const struct limb *limb, const struct branch *branch) {
    return limb->branch.bytes - branch->bytes <= print->total / 100 * PERCENT_SAME;
}

/* Follows the calls while exactly one callee is worth showing and belongs to the chain. Returns the number of callees
 * worth showing at the end of the chain, or -1: no memory. */
static int limb_follow(struct tree_print *print, struct limb *limb) {
    struct branch branch = limb->branch;
    struct branches next;
    for (; print->frames_left; print->frames_left--) {
        if (add_line(limb, &branch) < 0 || calltree_expand(&print->tree, &branch, &next) < 0) return -1;
        calltree_clear(&limb->below);
        limb->below = next;
        size_t worthy = count_worthy(print, &limb->below);
        if (worthy != 1 || !report_tree_goes_on(print, limb, &limb->below.list[0])) return (int)worthy;
        branch = limb->below.list[0];
    }
    return 0;
}

/* The index in frame->symbols of the function at a level. Levels count from the outermost function, but symbols begin
 * with the innermost. */
static uint32_t symbol_of(const struct named_frame *frame, uint32_t level) {
    return level < frame->count ? frame->count - 1 - level : 0;
}

static bool report_tree_allocates(const struct tree_print *print, struct calltree_line line) {
    const struct named_frame *frame = symbols_frame(print->report->symbols, line.frame);
    return !frame->python && innermost_is_allocator(frame->symbols[symbol_of(frame, line.level)].function);
}

/* Whether all callees into which a chain divides are functions of the allocator; they are then not shown. False with
 * --all-frames. Functions of C++'s library do not count as allocator here, because they also call the program. */
static bool divides_in_allocator(const struct tree_print *print, const struct limb *limb, size_t parts) {
    for (size_t i = 0; i < parts; i++) {
        const struct calltree_line *line = &limb->below.list[i].line;
        const char *function = symbols_frame(print->report->symbols, line->frame)->symbols[0].function;
        if (!report_tree_allocates(print, *line) || strncmp(function, "std::", 5) == 0) return false;
    }
    return !innermost_shows_all();
}

static void limb_divide(struct tree_print *print, size_t index, size_t parts) {
    struct limb *limb = &print->limbs[index];
    if (divides_in_allocator(print, limb, parts)) {
        calltree_clear(&limb->below);
        return;
    }
    if (print->count + parts > LIMBS_MOST) return;
    limb->first = print->count;
    limb->parts = parts;
    for (size_t i = 0; i < parts; i++)
        print->limbs[print->count++] = (struct limb){.branch = limb->below.list[i], .parent = index};
}

static int limbs_grow(struct tree_print *print) {
    struct limb *root = &print->limbs[0];
    print->count = 1;
    print->frames_left = FRAMES_MOST;
    root->shown = true;
    if (calltree_expand(&print->tree, NULL, &root->below) < 0) return -1;
    limb_divide(print, 0, count_worthy(print, &root->below));
    for (size_t i = 1; i < print->count; i++) {
        int parts = limb_follow(print, &print->limbs[i]);
        if (parts < 0) return -1;
        limb_divide(print, i, (size_t)parts);
    }
    return 0;
}

static struct calltree_line name_line(void *context, struct calltree_line line, bool *more) {
    struct symbols *symbols = context;
    const struct named_frame *frame = symbols_frame(symbols, line.frame);
    struct symbol_line same = symbols_alike(symbols, (struct symbol_line){line.frame, symbol_of(frame, line.level)});
    *more = line.level + 1 < frame->count;
    return (struct calltree_line){same.frame, symbols_frame(symbols, same.frame)->count - 1 - same.symbol};
}

/* ---- printing limbs; if `counting` is set, their lines are counted and not printed */

static void tree_figures(const struct tree_print *print, const struct figures *figures, int depth) {
    printf("  %10s ", text_size(figures->bytes).s);
    if (print->tree.variances)
        printf("±%4.0f %% ", report_tree_percent(estimate_error(figures->variance), figures->bytes));
    printf("%5.1f %%  %*s", report_tree_percent(figures->bytes, print->total), 2 * depth, "");
}

/* Prints a line. figures NULL: the figures are those of the line above, and are not printed again. */
static void tree_line(struct tree_print *print, struct calltree_line line, const struct figures *figures, int depth) {
    print->lines++;
    if (print->counting) return;
    const struct named_frame *frame = symbols_frame(print->report->symbols, line.frame);
    struct innermost_line shown = {frame, &frame->symbols[symbol_of(frame, line.level)]};
    if (figures)
        tree_figures(print, figures, depth);
    else
        printf("%*s", print->indent + 2 * depth, "");
    puts(innermost_text(&shown, text_width() - print->indent - 2 * depth).s);
}

/* The position in the chain where the shown Python frames begin. From there to `end` there are at most CHAIN_PYTHON
 * Python frames. */
static size_t python_from(const struct image *image, const struct calltree_line *chain, size_t end) {
    size_t first = end, found = 0;
    while (first > CHAIN_HEAD && found < CHAIN_PYTHON)
        if (innermost_is_python(image, chain[--first].frame)) found++;
    return first;
}

/* Prints how many frames are hidden. A single hidden frame is printed itself, because the note takes a line, too. */
static void print_hidden(struct tree_print *print, const struct calltree_line *chain, size_t end, size_t hidden,
                         int depth) {
    if (hidden == 1) tree_line(print, chain[end - 1], NULL, depth);
    if (hidden < 2) return;
    print->lines++;
    if (!print->counting) printf("%*s   … %zu frames\n", print->indent + 2 * depth, "", hidden);
}

/* Whether all parts into which the chain divides begin with Python frames. The interpreter's own frames at the end of
 * the chain are then of no interest. */
static bool divides_in_python(const struct tree_print *print, const struct limb *limb) {
    for (size_t i = 0; i < limb->parts; i++)
        if (!innermost_is_python(print->report->image, limb->below.list[i].line.frame)) return false;
    return limb->parts;
}

/* How many frames at the inner end of a chain are shown. */
static size_t tail_of(const struct tree_print *print, const struct limb *limb, size_t count) {
    bool leaf = !limb->parts, python = count && innermost_is_python(print->report->image, limb->lines[count - 1].frame);
    if (innermost_shows_all()) return count;
    if (leaf) return python ? CHAIN_TAIL : LEAF_TAIL;
    return divides_in_python(print, limb) ? 0 : CHAIN_TAIL;
}

/* How many lines at the inner end of a chain are left out: all native lines inside of the innermost Python function. If
 * there is no Python function, they are the lines of the allocator. */
static size_t inside_of(const struct tree_print *print, const struct limb *limb) {
    size_t end = limb->count;
    if (limb->parts || innermost_shows_all()) return 0;
    while (end && !innermost_is_python(print->report->image, limb->lines[end - 1].frame)) end--;
    if (end) return limb->count - end;
    for (end = limb->count; end > 1 && report_tree_allocates(print, limb->lines[end - 1]); end--) {
    }
    return limb->count - end;
}

static void print_inside(struct tree_print *print, size_t count, int depth) {
    if (!count) return;
    print->lines++;
    if (print->counting) return;
    printf("%*s   … %zu inner frame%s\n", print->indent + 2 * depth, "", count, count == 1 ? "" : "s");
}

static void print_chain(struct tree_print *print, const struct limb *limb, int depth) {
    const struct image *image = print->report->image;
    const struct calltree_line *chain = limb->lines;
    size_t inside = inside_of(print, limb), count = limb->count - inside;
    size_t tail = tail_of(print, limb, count), hidden = 0;
    bool whole = count <= CHAIN_HEAD + tail + 1;
    size_t end = whole ? 0 : count - tail, python = python_from(image, chain, end);
    for (size_t i = 0; i < count; i++) {
        if (i >= CHAIN_HEAD && i < end && (i < python || !innermost_is_python(image, chain[i].frame))) {
            hidden++;
            continue;
        }
        print_hidden(print, chain, i, hidden, depth);
        hidden = 0;
        struct figures figures = {limb->branch.bytes, limb->branch.variance};
        tree_line(print, chain[i], i ? NULL : &figures, depth);
    }
    print_hidden(print, chain, count, hidden, depth);
    print_inside(print, inside, depth);
}

/* The bytes of the limb's largest child that --top leaves out, or 0. `shown`: how many children are shown. */
static uint64_t largest_left_out(const struct limb *limb, size_t shown) {
    return shown < limb->parts ? limb->below.list[shown].bytes : 0;
}

/* Prints one line for the callees of a limb that are not shown: those from the index `from` on. Prints nothing if
 * - these callees have no bytes,
 * - no callee is shown (`from` is 0), and all callees together are not worth showing, or
 * - a callee is shown, and only this one is worth showing. */
static void print_rest(struct tree_print *print, const struct limb *limb, size_t from, int depth) {
    struct figures rest = {0};
    for (size_t i = from; i < limb->below.count; i++) {
        rest.bytes += limb->below.list[i].bytes;
        rest.variance += limb->below.list[i].variance;
    }
    if (!rest.bytes || (!from && !worth_showing(print, rest.bytes)) || (from && limb->parts == 1)) return;
    uint64_t largest = largest_left_out(limb, from);
    print->lines++;
    if (print->counting) return;
    tree_figures(print, &rest, depth);
    printf("   … %s more", text_count(limb->below.count - from).s);
    if (largest) printf(", one %.1f %% (--top=N shows more)", report_tree_percent(largest, print->total));
    putchar('\n');
}

static void print_limb(struct tree_print *print, const struct limb *limb, int depth) {
    size_t shown = 0;
    int column = depth < DEPTH_INDENTED ? depth : DEPTH_INDENTED;
    print_chain(print, limb, column);
    if (limb != print->limbs && limb->parts != 1 && column < DEPTH_INDENTED) column++; /* the chain divides here */
    for (; shown < limb->parts && print->limbs[limb->first + shown].shown; shown++)
        print_limb(print, &print->limbs[limb->first + shown], column);
    print_rest(print, limb, shown, column);
}

/* ---- choosing the limbs that are printed */

static void count_lines(struct tree_print *print) {
    print->counting = true;
    for (size_t i = 1; i < print->count; i++) {
        print->lines = 0;
        print_chain(print, &print->limbs[i], 0);
        print->limbs[i].cost = print->lines;
    }
    print->counting = false;
}

/* The index of the largest limb that is not shown and whose parent is shown; 0: there is none. */
static size_t largest_next(const struct tree_print *print) {
    size_t largest = 0;
    for (size_t i = 1; i < print->count; i++) {
        const struct limb *limb = &print->limbs[i];
        if (limb->shown || !print->limbs[limb->parent].shown) continue;
        if (!largest || limb->branch.bytes > print->limbs[largest].branch.bytes) largest = i;
    }
    return largest;
}

/* Chooses limbs, the largest first, until they have `budget` lines. So no limb is left out while a smaller one is
 * shown. */
static void limbs_choose(struct tree_print *print, size_t budget) {
    size_t used = 0, index;
    while (used < budget && (index = largest_next(print))) {
        print->limbs[index].shown = true;
        used += print->limbs[index].cost;
    }
}

/* ---- the bytes of stacks, and the whole tree */

/* For each node: the bytes of the stack that ends there, without nodes below it. *total: their sum. NULL: no memory. */
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

static int print_tree(struct tree_print *print) {
    const struct report *report = print->report;
    print->tree.line = name_line;
    print->tree.line_context = report->symbols;
    print->tree.line_from = print->total / NAMED_FROM;
    print->limbs = calloc(LIMBS_MOST, sizeof *print->limbs);
    if (!print->limbs || limbs_grow(print) < 0) return -1;
    count_lines(print);
    limbs_choose(print, report->top < SIZE_MAX / LINES_PER_ROW ? LINES_PER_ROW * report->top : SIZE_MAX);
    text_heading("Call tree (%s%s, with all that is below)", print->tree.variances ? "estimates of what is " : "",
                 report_measure_words(report).s);
    print_limb(print, &print->limbs[0], 0);
    return 0;
}

static void tree_print_clear(struct tree_print *print) {
    for (size_t i = 0; i < print->count; i++) {
        free(print->limbs[i].lines);
        calltree_clear(&print->limbs[i].below);
    }
    free(print->limbs);
    calltree_end(&print->tree);
}

int report_text_tree(const struct report *report) {
    bool estimated = report->image->variances;
    struct tree_print print = {.report = report, .indent = TREE_INDENT + (estimated ? TREE_ERROR : 0)};
    uint64_t *bytes = node_bytes(report, &print.total);
    double *variances = estimated ? node_variances(report) : NULL;
    int result = calltree_begin(&print.tree, report->image, bytes, variances);
    if (estimated && !variances) result = -1;
    if (result == 0 && print.total) result = print_tree(&print);
    tree_print_clear(&print);
    return result;
}
