/* check_junit.c — a verdict as JUnit's XML; see check.h. The test cases are all totals, all owners, and the
 * call sites that are over a limit, have a warning or are suppressed. Characters that XML forbids even in escaped
 * form, and bytes that are not UTF-8, become U+FFFD. */
#include "tools/check/check.h"

#include "preload/shared/utf8.h"

#include <string.h>

/* Whether XML 1.0 allows the character. U+FFFE and U+FFFF are valid UTF-8, but XML forbids them. XML also forbids
 * surrogates, which valid UTF-8 never has. */
static bool is_character(const char *text, size_t length) {
    unsigned char c = (unsigned char)text[0];
    if (length == 0) return false;
    if (c < 0x20) return c == '\t' || c == '\n' || c == '\r';
    return !(length == 3 && memcmp(text, "\xef\xbf\xbe", 3) >= 0 && memcmp(text, "\xef\xbf\xbf", 3) <= 0);
}

/* The escaped form of a character; NULL: none is needed. Tabs and line ends are escaped, because readers of XML turn
 * unescaped ones into blanks if they are in an attribute. */
static const char *check_junit_escape(char c) {
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\n':
        return "&#10;";
    case '\t':
        return "&#9;";
    case '\r':
        return "&#13;";
    default:
        return NULL;
    }
}

static void junit_put(FILE *to, const char *text) {
    for (size_t left = strlen(text); left;) {
        size_t length = utf8_size(text, left);
        if (!is_character(text, length))
            fputs("\xef\xbf\xbd", to);
        else if (length == 1 && check_junit_escape(*text))
            fputs(check_junit_escape(*text), to);
        else
            fwrite(text, 1, length, to);
        text += length ? length : 1;
        left -= length ? length : 1;
    }
}

static void put_attribute(FILE *to, const char *name, const char *value) {
    fprintf(to, " %s=\"", name);
    junit_put(to, value);
    fputc('"', to);
}

static bool is_case(const struct finding *finding) {
    return finding->figure->kind != FIGURE_SITE || finding->verdict != VERDICT_FINE || finding->suppression;
}

static void put_case(const struct check *check, const struct finding *finding, FILE *to) {
    static const char *const kinds[] = {"total", "owner", "site"};
    char text[FIGURE_KEY_MOST], sentence[1400], class[32];
    figure_words(finding->figure, text, sizeof text);
    check_sentence(check, finding, sentence, sizeof sentence);
    snprintf(class, sizeof class, "memstow.%s%s", finding->figure->cuda ? "cuda_" : "", kinds[finding->figure->kind]);
    fputs("    <testcase", to);
    put_attribute(to, "classname", class);
    put_attribute(to, "name", text);
    if (finding->figure->file) put_attribute(to, "file", finding->figure->file);
    fputs(">\n", to);
    if (finding->verdict == VERDICT_FAILED) {
        fputs("      <failure", to);
        put_attribute(to, "message", sentence);
        fputs("/>\n", to);
    } else if (finding->suppression) {
        fputs("      <skipped", to);
        put_attribute(to, "message", "suppressed");
        fputs("/>\n", to);
    }
    fputs("      <system-out>", to);
    junit_put(to, finding->verdict == VERDICT_WARNING ? "warning: " : "");
    junit_put(to, sentence);
    fputs("</system-out>\n    </testcase>\n", to);
}

static void put_property(FILE *to, const char *name, const char *value) {
    fputs("      <property", to);
    put_attribute(to, "name", name);
    put_attribute(to, "value", value);
    fputs("/>\n", to);
}

void check_junit(const struct check *check, FILE *to) {
    size_t cases = 0, failures = 0, skipped = 0;
    char command[1024];
    for (size_t i = 0; i < check->gate.count; i++) {
        const struct finding *finding = &check->gate.list[i];
        cases += is_case(finding);
        failures += finding->verdict == VERDICT_FAILED;
        skipped += finding->suppression != NULL;
    }
    check_command(check, command, sizeof command);
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"memstow check\"", to);
    fprintf(to, " tests=\"%zu\" failures=\"%zu\" errors=\"0\" skipped=\"%zu\">\n    <properties>\n", cases, failures,
            skipped);
    put_property(to, "command", command);
    if (check->page) put_property(to, "page", check->page);
    fputs("    </properties>\n", to);
    for (size_t i = 0; i < check->gate.count; i++)
        if (is_case(&check->gate.list[i])) put_case(check, &check->gate.list[i], to);
    fputs("  </testsuite>\n</testsuites>\n", to);
}
