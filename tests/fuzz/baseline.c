/* baseline.c — fuzz target: a baseline is either read, or refused with line and column. If it is read, it can be
 * compared with figures. It can also be written, read again and written again, and both texts are the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/check/baseline.h"
#include "tools/diff/gate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *text_of(struct figures *figures, size_t *size) {
    char *text = NULL;
    FILE *to = open_memstream(&text, size);
    if (!to) return NULL;
    baseline_write(figures, to);
    fclose(to);
    return text;
}

static void write_twice(struct figures *figures) {
    struct figures again;
    struct scan scan;
    size_t size, size_again = 0;
    char *text = text_of(figures, &size), *text_again = NULL;
    figures_begin(&again);
    scan_begin(&scan, "again", text, size);
    if (baseline_read(&again, &scan) == 0) text_again = text_of(&again, &size_again);
    if (!text_again || size != size_again || memcmp(text, text_again, size) != 0) abort();
    free(text);
    free(text_again);
    figures_end(&again);
}

static void compare(const struct figures *figures) {
    struct figures now;
    struct thresholds thresholds = {.pass_under = 1000};
    char words[FIGURE_KEY_MOST];
    figures_begin(&now);
    figures_add(&now, FIGURE_TOTAL, "", 1 << 20, 10);
    figures_end_run(&now);
    limits_parse(&thresholds.limits, "5%,owner:1K,site:1K");
    struct gate gate = {.before = figures, .now = &now, .thresholds = &thresholds};
    if (gate_judge(&gate) == 0)
        for (size_t i = 0; i < gate.count; i++) figure_words(gate.list[i].figure, words, sizeof words);
    gate_end(&gate);
    figures_end(&now);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct figures figures;
    struct scan scan;
    figures_begin(&figures);
    scan_begin(&scan, "input", (const char *)data, size);
    if (baseline_read(&figures, &scan) == 0) {
        write_twice(&figures);
        compare(&figures);
    } else if (!strstr(scan.error, "input:")) {
        abort();
    }
    figures_end(&figures);
    return 0;
}
