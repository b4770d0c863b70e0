/* check_text.c — a verdict for people; see check.h. */
#include "check.h"
#include "text.h"

#include <string.h>

static void print_head(const struct check *check, FILE *to) {
    static const char *const words[] = {"fine", "a warning", "FAILED"};
    char command[512], runs[128];
    int worst = check->gate.over ? 2 : check->gate.warnings ? 1 : 0;
    check_command(check, command, sizeof command);
    check_runs(check, runs, sizeof runs);
    fprintf(to, "%s: %s\n", check->comfy ? text_fit_path(check->comfy, 60).s : text_fit(command, 60).s, words[worst]);
    fprintf(to, "  %s; before: %s, of %u run%s\n\n", runs,
            check->baseline ? text_fit_path(check->baseline, 40).s : "the first runs after the warm-up",
            check->before.runs, check->before.runs == 1 ? "" : "s");
}

static void print_finding(const struct finding *finding, FILE *to) {
    static const char *const words[] = {"", "warning", "over"};
    char name[FIGURE_KEY_MOST], line[64];
    figure_words(finding->figure, name, sizeof name);
    fprintf(to, "%-8s%11s %11s %12s %9s  %s%s\n", finding->suppression ? "known" : words[finding->verdict],
            finding->is_new ? "-" : text_size(finding->before[0].high).s, text_size(finding->now[0].low).s,
            text_size_change(finding->growth.bytes).s, text_count_change(finding->growth.blocks).s,
            text_fit(name, 400).s, finding->is_new ? " (new)" : "");
    if (finding->limit) fprintf(to, "%55s over the limit of %s\n", "", finding->limit->text);
    snprintf(line, sizeof line, "suppressed by line %u", finding->suppression ? finding->suppression->line : 0);
    if (finding->suppression) fprintf(to, "%55s %s\n", "", line);
    if (finding->suppressed_bytes && !finding->suppression)
        fprintf(to, "%55s without %s that is suppressed\n", "", text_size((uint64_t)finding->suppressed_bytes).s);
}

void check_text(const struct check *check, FILE *to) {
    size_t left = 0;
    print_head(check, to);
    fprintf(to, "%-8s%11s %11s %12s %9s\n", "", check->now.peak ? "peak before" : "before",
            check->now.peak ? "peak now" : "now", "grew by", "blocks");
    for (size_t i = 0; i < check->gate.count; i++) {
        if (check_shown(check, i))
            print_finding(&check->gate.list[i], to);
        else
            left++;
    }
    if (left) fprintf(to, "… and %s more that changed within limits (--top=N shows N)\n", text_count(left).s);
    if (gate_leaves_out_cuda(&check->gate))
        fputs("Memory of CUDA devices is not judged: the baseline says nothing of it (--update-baseline).\n", to);
    known_text(&check->suppressions, check->suppressed_in, to);
}
