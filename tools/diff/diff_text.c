/* diff_text.c — a comparison as text; see diff.h. By site it looks like the report: figures in the margin, the call
 * stack beside them. */
#include "tools/diff/diff.h"
#include "tools/views/estimate.h"
#include "tools/diff/known.h"
#include "tools/symbols/site_lines.h"

#include <stdio.h>
#include <string.h>

enum {
    SITE_INDENT = 36,
    GROWTH = 11,
    BLOCKS = 10,
    FIGURES = 40, /* columns of the figures to the right of a row's name */
    ERROR = 12    /* further columns, for the error of rows that are estimates */
};

static const char *diff_text_what(const struct diff *diff) { return diff->peak ? "at peak" : "live"; }

/* The memory that a row has in the second file. It is negative for a thread that freed more than it allocated. */
static struct text held_text(const struct row *row) {
    int64_t held = (int64_t)row->side[1].live_bytes;
    return held < 0 ? text_size_change(held) : text_size((uint64_t)held);
}

static struct text error_text(const struct row *row) {
    return row->variance ? text_size(estimate_error(row->variance)) : (struct text){""};
}

/* ---- the table by site */

static const char *diff_text_owner_name(const struct groups *groups, uint32_t name, struct text_line *copy) {
    return groups_owner_words(groups, name, true, copy->s, sizeof copy->s) ? copy->s : NULL;
}

/* Red for growth, green for a decrease. */
static const char *growth_style(int64_t growth) { return growth ? text_style(growth > 0 ? TEXT_RED : TEXT_GREEN) : ""; }

static const char *style_end(int64_t growth) { return growth ? text_style(TEXT_PLAIN) : ""; }

static void print_site(struct diff *diff, const struct groups *groups, const struct row *row) {
    struct margin margin = {.width = SITE_INDENT, .style = growth_style(groups_row_growth(row))};
    struct innermost stack = {.count = 0};
    struct text_line model, node, run;
    struct text error = error_text(row);
    const struct image *image = diff_stacks(diff, row);
    if (image) innermost_of(&stack, image, diff->symbols[row->stack_side], row->stack_node);
    site_margin_add(&margin, "%*s %*s %*s", GROWTH, text_size_change(groups_row_growth(row)).s, BLOCKS,
                    text_count_change(groups_row_growth_blocks(row)).s, GROWTH, held_text(row).s);
    if (*error.s) site_margin_add(&margin, "%*s± %s", GROWTH - 2 - (int)strlen(error.s), "", error.s);
    site_owners(&margin, diff_text_owner_name(groups, row->model, &model),
                diff_text_owner_name(groups, row->node, &node), diff_text_owner_name(groups, row->run, &run));
    const char *member = groups_member(groups, row);
    site_lines(&margin, &stack, *member ? member : "(call stack unknown)");
}

static void print_sites(struct diff *diff, const struct groups *groups, size_t shown) {
    printf("%*s %*s %*s  call stack, innermost first\n", GROWTH, "grew by", BLOCKS, "blocks", GROWTH,
           diff->peak && groups != &diff->cuda ? "peak in B" : "live in B");
    for (size_t i = 0; i < shown; i++) print_site(diff, groups, groups_row(groups, i));
}

/* ---- tables by other views */

static int name_width(const struct diff *diff) { return text_width() - FIGURES - (diff->groups.estimated ? ERROR : 0); }

static void diff_text_print_row(const struct diff *diff, const struct groups *groups, const struct row *row) {
    char label[2048];
    groups_words(groups, row, label, sizeof label);
    printf("%s %s%12s%s", text_left(label, name_width(diff)).s, growth_style(groups_row_growth(row)),
           text_size_change(groups_row_growth(row)).s, style_end(groups_row_growth(row)));
    if (diff->groups.estimated) printf(" %11s", error_text(row).s);
    printf(" %12s %13s\n", text_count_change(groups_row_growth_blocks(row)).s, held_text(row).s);
}

static void print_rows(const struct diff *diff, const struct groups *groups, size_t shown) {
    printf("%-*s %12s%s %12s %13s\n", name_width(diff), groups_view_name(diff->groups.view), "grew by",
           diff->groups.estimated ? "           ±" : "", "blocks",
           diff->peak && groups != &diff->cuda ? "peak in B" : "live in B");
    for (size_t i = 0; i < shown; i++) diff_text_print_row(diff, groups, groups_row(groups, i));
}

/* ---- the head, the totals and the notes of a comparison */

static void print_total(const struct diff *diff, bool cuda) {
    int64_t growth = cuda ? diff_grown_cuda_bytes(diff) : diff_grown_bytes(diff);
    struct text bytes = text_size_change(growth);
    struct text blocks = text_count_change(cuda ? diff_grown_cuda_blocks(diff) : diff_grown_blocks(diff));
    struct text held = text_size(cuda ? diff->total[1].cuda_bytes : diff->total[1].bytes);
    if (diff->groups.view == BY_SITE)
        printf("%s%*s%s %*s %*s  total\n", growth_style(growth), GROWTH, bytes.s, style_end(growth), BLOCKS, blocks.s,
               GROWTH, held.s);
    else
        printf("%-*s %s%12s%s%*s %12s %13s\n", name_width(diff), "total", growth_style(growth), bytes.s,
               style_end(growth), diff->groups.estimated ? ERROR : 0, "", blocks.s, held.s);
}

static void print_side(const struct diff *diff, int side) {
    const struct side_total *total = &diff->total[side];
    printf("%c  %s (%s, pid %u): %s %s", 'A' + side, text_fit_path(diff->argument[side], text_width() - 40).s,
           text_fit(total->name, 16).s, total->pid, text_size(total->bytes).s, diff_text_what(diff));
    if (total->cuda) printf(", %s on CUDA devices", text_size(total->cuda_bytes).s);
    putchar('\n');
}

static void print_notes(const struct diff *diff) {
    char sentence[320];
    if (diff->groups.estimated)
        puts("\nRows with ± are estimates from samples; ± is the standard error of their growth.\n"
             "The total is exact. The remainder is the total less the estimates.");
    if (diff_suppressed(diff))
        printf("\n%s of the growth are suppressed: limits do not count them.\n", text_size(diff_suppressed(diff)).s);
    known_text(&diff->suppressions, diff->suppressed_in, stdout);
    if (!diff->peak) return;
    puts("\nThe total compares the peaks; the rows compare the ledgers near them.");
    for (int side = 0; side < 2; side++) {
        snprintf(sentence, sizeof sentence, "For %c the rows show %s", 'A' + side, diff->total[side].peak_words);
        text_wrap(stdout, sentence, 0, 0);
    }
}

static void print_groups(struct diff *diff, const struct groups *groups) {
    size_t shown = groups->ordered < diff->top ? groups->ordered : diff->top;
    if (groups->view == BY_SITE)
        print_sites(diff, groups, shown);
    else
        print_rows(diff, groups, shown);
    if (shown < groups->ordered) printf("… and %s more (--top=N shows N)\n", text_count(groups->ordered - shown).s);
    print_total(diff, groups == &diff->cuda);
}

/* Prints the driver's figures for each device, from both files. */
static void print_devices(const struct diff *diff) {
    putchar('\n');
    cuda_line_head("");
    for (uint32_t device = 0; device < SNAP_CUDA_DEVICES; device++)
        for (int side = 0; side < 2; side++)
            for (size_t i = 0; i < diff->total[side].device_count; i++)
                if (diff->total[side].devices[i].device == device)
                    cuda_line_text(side ? "  B" : "  A", &diff->total[side].devices[i]);
}

void diff_text(struct diff *diff) {
    print_side(diff, 0);
    print_side(diff, 1);
    putchar('\n');
    print_groups(diff, &diff->groups);
    if (diff_has_cuda(diff)) {
        text_heading("On CUDA devices");
        print_groups(diff, &diff->cuda);
        print_devices(diff);
    }
    print_notes(diff);
}
