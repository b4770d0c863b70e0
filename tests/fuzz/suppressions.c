/* suppressions.c — fuzz target: any file of suppressions is read, or refused with line and column, and its patterns are
 * matched. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/diff/suppressions.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct figures figures;
    static struct figure *figure;
    struct suppressions suppressions;
    struct scan scan;
    char name[FIGURE_KEY_MOST] = "at";
    if (!figure) {
        figures_begin(&figures);
        figure_name_frame(name, sizeof name, "operator new[](unsigned long)", "libstdc++.so.6");
        figure_name_frame(name, sizeof name, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "x@y");
        figure_name_of(name, sizeof name, "model", "UN\xc3\x89T", "wan");
        figure = figures_add(&figures, FIGURE_SITE, name, 1, 1);
    }
    scan_begin(&scan, "input", (const char *)data, size);
    if (suppressions_read(&suppressions, &scan, 20261122) < 0 && !strchr(scan.error, ':')) abort();
    suppressions_match(&suppressions, figure);
    suppressions_end(&suppressions);
    return 0;
}
