/* check_text.c — a verdict as text; see check.h. */
#include "tools/check/check.h"
#include "tools/base/text.h"

#include <string.h>

enum { WIDTH = 100, NAME = 56 /* NAME: column where names begin */ };

static void check_text_print_head(const struct check *check, FILE *to) {
    static const char *const words[] = {"fine", "a warning", "FAILED"};
    char command[512], runs[128];
    uint32_t before = check->before.runs;
    int worst = check->gate.over ? 2 : check->gate.warnings ? 1 : 0;
    check_command(check, command, sizeof command);
    check_runs(check, runs, sizeof runs);
    fprintf(to, "%s: %s\n", check->comfy ? text_fit_path(check->comfy, 60).s : text_fit(command, 60).s, words[worst]);
    if (check->baseline)
        fprintf(to, "  %s; compared with %s, of %u run%s\n\n", runs, text_fit_path(check->baseline, 40).s, before,
                before == 1 ? "" : "s");
    else
        fprintf(to, "  %s; the last %u compared with the first %u\n\n", runs, before, before);
}

/* A name, which is written on as many lines as it needs, to the right of the table's figures. column: where the text
 * written so far ends. */
struct lines {
    FILE *to;
    int column;
};

/* Prints a part of a name, on a new line if it does not fit. `tail` is written behind the previous part, on its line;
 * `lead` in front of this part. */
static void put_part(struct lines *lines, const char *tail, const char *lead, const char *part) {
    char text[SCAN_STRING_MOST + 8];
    snprintf(text, sizeof text, "%s%s", lead, part);
    struct text_line safe = text_fit(text, WIDTH - NAME - 1);
    int width = text_columns(safe.s), end = lines->column + text_columns(tail);
    bool first = lines->column == NAME, full = !first && end + 1 + width > WIDTH - 1; /* leaves a column for a tail */
    fputs(tail, lines->to);
    if (full) fprintf(lines->to, "\n%*s", NAME, "");
    fprintf(lines->to, "%s%s", first || full ? "" : " ", safe.s);
    lines->column = (full ? NAME : end + !first) + width;
}

static void put_site(struct lines *lines, const struct figure *figure) {
    char text[SCAN_STRING_MOST], origin[SCAN_STRING_MOST + 2];
    const char *next = figure_name(figure);
    enum figure_part part = PART_FRAME;
    while (figure_part(&next, &part, text, sizeof text)) {
        snprintf(origin, sizeof origin, "(%s)", text);
        if (part == PART_FRAME)
            put_part(lines, "", lines->column == NAME ? "" : "< ", text);
        else
            put_part(lines, part == PART_OWNER ? "," : "", "", part == PART_OWNER ? text : origin);
    }
    if (figure->cuda) put_part(lines, "", "", "on CUDA devices");
}

/* Prints "leak@libx.so < main@(program), model:UNET (new)" in as many lines as it needs. */
static void put_name(const struct finding *finding, FILE *to) {
    struct lines lines = {to, NAME};
    char text[FIGURE_KEY_MOST];
    figure_words(finding->figure, text, sizeof text);
    if (finding->figure->kind == FIGURE_SITE)
        put_site(&lines, finding->figure);
    else
        put_part(&lines, "", "", text_fit(text, WIDTH - NAME).s);
    if (finding->is_new) put_part(&lines, "", "", "(new)");
    fputc('\n', to);
}

/* Prints a note below a finding. */
static void put_below(const char *text, FILE *to) { fprintf(to, "%*s%s\n", NAME, "", text_fit(text, WIDTH - NAME).s); }

static void print_notes(const struct check *check, const struct finding *finding, FILE *to) {
    char line[128];
    snprintf(line, sizeof line, "over the limit of %s", finding->limit ? finding->limit->text : "");
    if (finding->limit) put_below(line, to);
    if (finding->below_floor || finding->verdict == VERDICT_WARNING) put_below(check_why(check, finding).s, to);
    snprintf(line, sizeof line, "suppressed by line %u", finding->suppression ? finding->suppression->line : 0);
    if (finding->suppression) put_below(line, to);
    snprintf(line, sizeof line, "without %s that is suppressed", text_size((uint64_t)finding->suppressed_bytes).s);
    if (finding->suppressed_bytes && !finding->suppression) put_below(line, to);
}

static void print_finding(const struct check *check, const struct finding *finding, FILE *to) {
    static const char *const words[] = {"", "warning", "over"};
    fprintf(to, "%-8s%11s %11s %12s %9s  ", finding->suppression ? "known" : words[finding->verdict],
            finding->is_new ? "-" : text_size(finding->before[0].high).s, text_size(finding->now[0].low).s,
            text_size_change(finding->growth.bytes).s, text_count_change(finding->growth.blocks).s);
    put_name(finding, to);
    print_notes(check, finding, to);
}

void check_text(const struct check *check, FILE *to) {
    size_t left = 0;
    check_text_print_head(check, to);
    fprintf(to, "%-8s%11s %11s %12s %9s\n", "", check->now.peak ? "peak before" : "before",
            check->now.peak ? "peak now" : "now", "grew by", "blocks");
    for (size_t i = 0; i < check->gate.count; i++) {
        if (check_shown(check, i))
            print_finding(check, &check->gate.list[i], to);
        else
            left++;
    }
    if (left) fprintf(to, "… and %s more that changed within limits (--top=N shows N)\n", text_count(left).s);
    if (gate_leaves_out_cuda(&check->gate))
        fputs("Memory of CUDA devices is not judged: the baseline has no figures of it (--update-baseline).\n", to);
    if (gate_leaves_out_origins(&check->gate))
        fputs("Call sites of models of one name count as one: the baseline lacks the files (--update-baseline).\n", to);
    known_text(&check->suppressions, check->suppressed_in, to);
}
