/* known.c — see known.h. */
#include "tools/diff/known.h"
#include "tools/base/complain.h"
#include "tools/base/text.h"

#include <string.h>

enum { WIDTH = 100, BESIDE = 28 /* columns for the number of the line and the reason */ };

int known_load(struct suppressions *suppressions, const char *path) {
    struct scan scan;
    if (!path) return EXIT_FINE;
    int result = scan_open(&scan, path);
    if (result == 0) result = suppressions_read(suppressions, &scan, suppressions_today());
    scan_close(&scan);
    if (result < 0) complain("%s", scan.error);
    return result < 0 ? EXIT_UNREADABLE : EXIT_FINE;
}

const char *known_useless(const struct suppression *suppression) {
    if (suppression->expired) return "has expired";
    return suppression->used ? NULL : "suppressed nothing";
}

void known_words(const struct suppression *suppression, char *to, size_t capacity) {
    const char *const words[] = {"function", "module", "owner"};
    const char *const globs[] = {suppression->function, suppression->module, suppression->owner};
    size_t used = 0;
    to[0] = 0;
    for (size_t i = 0; i < 3 && used < capacity; i++)
        if (globs[i])
            used += (size_t)snprintf(to + used, capacity - used, "%s%s=%s", used ? " " : "", words[i], globs[i]);
    uint32_t day = suppression->until;
    if (day && used < capacity)
        snprintf(to + used, capacity - used, " until=%04u-%02u-%02u", day / 10000, day / 100 % 100, day % 100);
}

void known_text(const struct suppressions *suppressions, const char *path, FILE *to) {
    char text[512];
    bool some = false;
    for (size_t i = 0; i < suppressions->count; i++) {
        const struct suppression *one = &suppressions->list[i];
        if (!known_useless(one)) continue;
        known_words(one, text, sizeof text);
        struct text_line file = text_fit_path(path, 40);
        fprintf(to, "%s%s:%u: %s %s\n", some ? "" : "\n", file.s, one->line,
                text_fit(text, WIDTH - text_columns(file.s) - BESIDE).s, known_useless(one));
        some = true;
    }
}

void known_json(const struct suppressions *suppressions, struct json *json) {
    char text[512];
    json_array(json, "suppressions");
    for (size_t i = 0; i < suppressions->count; i++) {
        const struct suppression *one = &suppressions->list[i];
        known_words(one, text, sizeof text);
        json_object(json, NULL);
        json_number(json, "line", one->line);
        json_string(json, "text", text);
        json_bool(json, "used", one->used);
        json_bool(json, "expired", one->expired);
        json_end_object(json);
    }
    json_end_array(json);
}
