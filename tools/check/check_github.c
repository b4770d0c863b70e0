/* check_github.c — a verdict as workflow commands of GitHub Actions, which are shown beside the source; see check.h. A
 * command is one line. Its values are escaped, because they must not end the line or begin another command. */
#include "tools/check/check.h"
#include "tools/base/text.h"

#include <string.h>
#include <unistd.h>

static void github_put(FILE *to, const char *text, bool property) {
    for (const char *c = text; *c; c++) {
        unsigned char byte = (unsigned char)*c;
        if (byte == '%' || byte == '\r' || byte == '\n' || (property && (byte == ':' || byte == ',')))
            fprintf(to, "%%%02X", byte);
        else
            fputc(byte < 0x20 || byte == 0x7f ? '?' : *c, to);
    }
}

/* The path of a file relative to the current folder; NULL if the file is elsewhere. GitHub shows annotations only for
 * files of the repository. */
static const char *check_github_inside(const char *file) {
    char here[4096];
    if (!file) return NULL;
    if (*file != '/') return file;
    size_t length = getcwd(here, sizeof here) ? strlen(here) : 0;
    return length && strncmp(file, here, length) == 0 && file[length] == '/' ? file + length + 1 : NULL;
}

/* Writes a finding as an annotation of the source line where the memory grew most. */
static void put_finding(const struct check *check, const struct finding *finding, FILE *to) {
    char sentence[1400];
    const struct finding *culprit = check_culprit(check, finding);
    const struct figure *at = culprit ? culprit->figure : finding->figure;
    const char *file = check_github_inside(at->file);
    check_sentence(check, finding, sentence, sizeof sentence);
    fputs(finding->verdict == VERDICT_FAILED ? "::error " : "::warning ", to);
    if (file) {
        fputs("file=", to);
        github_put(to, file, true);
        if (at->line) fprintf(to, ",line=%u", at->line);
        fputc(',', to);
    }
    fputs("title=memstow check::", to);
    github_put(to, sentence, false);
    fputc('\n', to);
}

static void put_suppression(const struct check *check, const struct suppression *one, FILE *to) {
    char text[512];
    const char *file = check_github_inside(check->suppressed_in);
    known_words(one, text, sizeof text);
    fputs("::notice ", to);
    if (file) {
        fputs("file=", to);
        github_put(to, file, true);
        fprintf(to, ",line=%u,", one->line);
    }
    fputs("title=memstow check::", to);
    github_put(to, text, false);
    fprintf(to, " %s\n", known_useless(one));
}

void check_github(const struct check *check, FILE *to) {
    for (size_t i = 0; i < check->gate.count; i++)
        if (check->gate.list[i].verdict != VERDICT_FINE) put_finding(check, &check->gate.list[i], to);
    for (size_t i = 0; i < check->suppressions.count; i++)
        if (known_useless(&check->suppressions.list[i])) put_suppression(check, &check->suppressions.list[i], to);
}
