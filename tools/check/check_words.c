/* check_words.c — text that the forms of a verdict have in common; see check.h. */
#include "tools/check/check.h"
#include "tools/base/text.h"

#include <stdarg.h>
#include <string.h>

const char *check_result(const struct check *check) {
    return check->gate.over ? "fail" : check->gate.warnings ? "warning" : "pass";
}

const struct finding *check_culprit(const struct check *check, const struct finding *finding) {
    for (size_t i = 0; i < check->gate.count && finding->figure->kind != FIGURE_SITE; i++) {
        const struct finding *site = &check->gate.list[i];
        if (site->figure->kind != FIGURE_SITE || site->growth.bytes <= 0 || site->suppression) continue;
        if (site->figure->cuda != finding->figure->cuda) continue;
        if (finding->figure->kind == FIGURE_TOTAL || gate_is_of(site->figure, finding->figure)) return site;
    }
    return NULL;
}

/* Appends as much text as fits. */
static void words_append(char *to, size_t capacity, const char *format, ...) {
    size_t used = strlen(to);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(to + used, capacity - used, format, arguments);
    va_end(arguments);
}

static void append_growth(char *to, size_t capacity, const struct growth *growth) {
    if (!growth->bytes && !growth->blocks)
        words_append(to, capacity, " did not grow");
    else if (growth->bytes >= 0 && growth->blocks >= 0)
        words_append(to, capacity, " grew by %s and %s", text_size((uint64_t)growth->bytes).s,
                     text_block_count((uint64_t)growth->blocks).s);
    else
        words_append(to, capacity, " changed by %s and %s", text_size_change(growth->bytes).s,
                     text_block_change(growth->blocks).s);
}

/* Prints "1 MiB" instead of "1.0 MiB", because a person chose the size. */
static struct text round_size(uint64_t bytes) {
    struct text text = text_size(bytes);
    char *point = strstr(text.s, ".0 ");
    if (point) memmove(point, point + 2, strlen(point + 2) + 1);
    return text;
}

struct text_line check_why(const struct check *check, const struct finding *finding) {
    struct text_line line;
    struct text floor = round_size(check->thresholds.pass_under);
    if (finding->below_floor)
        snprintf(line.s, sizeof line.s, "over %s, but below the floor of %s", finding->below_floor->text, floor.s);
    else
        snprintf(line.s, sizeof line.s, "above the floor of %s, within limits", floor.s);
    return line;
}

void check_sentence(const struct check *check, const struct finding *finding, char *to, size_t capacity) {
    char name[FIGURE_KEY_MOST];
    const struct finding *culprit = finding->verdict == VERDICT_FINE ? NULL : check_culprit(check, finding);
    figure_words(finding->figure, name, sizeof name);
    snprintf(to, capacity, "%.500s", name);
    append_growth(to, capacity, &finding->growth);
    if (finding->limit) words_append(to, capacity, ": over the limit of %s", finding->limit->text);
    if (finding->below_floor) words_append(to, capacity, ": %s", check_why(check, finding).s);
    if (!culprit) return;
    figure_words(culprit->figure, name, sizeof name);
    words_append(to, capacity, "; most of it (%s) at %.500s", text_size_change(culprit->growth.bytes).s, name);
}

void check_command(const struct check *check, char *to, size_t capacity) {
    size_t used = 0;
    to[0] = 0;
    for (char **word = check->argv; word && *word && used < capacity; word++)
        used += (size_t)snprintf(to + used, capacity - used, "%s%s", used ? " " : "", *word);
}

void check_runs(const struct check *check, char *to, size_t capacity) {
    int used = snprintf(to, capacity, "%u of %u run%s", check->runs_done, check->runs, check->runs == 1 ? "" : "s");
    if (check->warm_up && used > 0 && (size_t)used < capacity)
        snprintf(to + used, capacity - (size_t)used, ", after %u to warm up", check->warm_up);
}

bool check_shown(const struct check *check, size_t index) {
    const struct finding *finding = &check->gate.list[index];
    size_t sites = 0;
    if (finding->verdict != VERDICT_FINE || finding->figure->kind == FIGURE_TOTAL) return true;
    for (size_t i = 0; i < index && sites < check->top; i++)
        sites += check->gate.list[i].figure->kind == finding->figure->kind;
    return sites < check->top;
}
