/* check_markdown.c — a verdict as Markdown, for a summary or a comment on GitHub; see check.h. Names are written as
 * code. In code, Markdown gives a meaning to backticks only; in a table, also to bars and line ends. */
#include "tools/check/check.h"
#include "tools/base/text.h"

#include <string.h>

/* Puts text as code, fenced by more backticks than the text has in a row. cell: the code stands in a table. */
static void put_code(FILE *to, const char *text, bool cell) {
    size_t longest = 0, row = 0;
    for (const char *c = text; *c; c++) {
        row = *c == '`' ? row + 1 : 0;
        if (row > longest) longest = row;
    }
    for (size_t i = 0; i <= longest; i++) fputc('`', to);
    fputc(' ', to);
    for (const char *c = text; *c; c++) {
        if (*c == '|' && cell) fputc('\\', to); /* outside a table the backslash would be shown */
        fputc((unsigned char)*c < 0x20 || *c == 0x7f ? ' ' : *c, to);
    }
    fputc(' ', to);
    for (size_t i = 0; i <= longest; i++) fputc('`', to);
}

static void put_finding(const struct check *check, const struct finding *finding, FILE *to) {
    static const char *const words[] = {"", "warning", "**over**"};
    char name[FIGURE_KEY_MOST];
    figure_words(finding->figure, name, sizeof name);
    fprintf(to, "| %s | ", finding->suppression ? "suppressed" : words[finding->verdict]);
    put_code(to, text_fit(name, 300).s, true);
    fprintf(to, " | %s | %s | %s | %s | %s |\n", finding->is_new ? "new" : text_size(finding->before[0].high).s,
            text_size(finding->now[0].low).s, text_size_change(finding->growth.bytes).s,
            text_count_change(finding->growth.blocks).s,
            finding->limit         ? finding->limit->text
            : finding->below_floor ? check_why(check, finding).s
                                   : "");
}

static void put_suppressions(const struct check *check, FILE *to) {
    char text[512];
    for (size_t i = 0; i < check->suppressions.count; i++) {
        const struct suppression *one = &check->suppressions.list[i];
        if (!known_useless(one)) continue;
        known_words(one, text, sizeof text);
        fprintf(to, "\n- suppression in line %u, ", one->line);
        put_code(to, text, false);
        fprintf(to, ", %s", known_useless(one));
    }
    if (check->suppressions.count) fputc('\n', to);
}

void check_markdown(const struct check *check, FILE *to) {
    char command[512], runs[128];
    size_t left = 0;
    check_command(check, command, sizeof command);
    check_runs(check, runs, sizeof runs);
    fprintf(to, "### memstow check: %s\n\n", check_result(check));
    put_code(to, command, false);
    fprintf(to, ", %s\n\n| | | before | now | grew by | blocks | limit |\n|---|---|--:|--:|--:|--:|--:|\n", runs);
    for (size_t i = 0; i < check->gate.count; i++) {
        if (check_shown(check, i))
            put_finding(check, &check->gate.list[i], to);
        else
            left++;
    }
    if (left) fprintf(to, "\n%s more changed within limits.\n", text_count(left).s);
    put_suppressions(check, to);
    if (!check->page) return;
    fputs("\nDetails: ", to);
    put_code(to, text_fit_path(check->page, 300).s, false);
    fputc('\n', to);
}
