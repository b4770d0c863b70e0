/* baseline.c — see baseline.h. */
#include "tools/check/baseline.h"
#include "tools/base/new_file.h"
#include "tools/base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char magic[] = "memstow-baseline";

/* --- reading a baseline --- */

struct parsed {
    uint64_t version;
    bool measure, runs, floor, total, cuda_total;
    bool cuda; /* the current line is about devices */
};

/* The first version with figures of devices, and the first one with origins of call sites' owners. */
enum { SINCE_CUDA = 2, SINCE_ORIGINS = 3 };

static int read_range(struct scan *scan, struct range *range, const char *expected) {
    scan_more(scan);
    if (scan_number(scan, &range->low, expected) < 0) return -1;
    range->high = range->low;
    if (!scan_character(scan, '.')) return 0;
    if (!scan_character(scan, '.')) return scan_fail(scan, "%s expected: N or N..M", expected);
    if (scan_number(scan, &range->high, "the higher number") < 0) return -1;
    return range->high >= range->low ? 0 : scan_fail(scan, "the range ends below its start");
}

static int baseline_once(struct scan *scan, bool *had, const char *word) {
    if (*had) return scan_fail(scan, "%s is given twice", word);
    *had = true;
    return 0;
}

static int figure_take(struct figures *figures, struct scan *scan, enum figure_kind kind, bool cuda, const char *name,
                       const struct range ranges[2]) {
    scan->token = scan->line;
    if (cuda ? figures_find_cuda(figures, kind, name) : figures_find(figures, kind, name))
        return scan_fail(scan, "this %s is listed twice", kind == FIGURE_OWNER ? "owner" : "site");
    struct figure *figure = cuda ? figures_add_cuda(figures, kind, name, 0, 0) : figures_add(figures, kind, name, 0, 0);
    if (!figure) return scan_fail(scan, "not enough memory");
    figure->bytes = ranges[0];
    figure->blocks = ranges[1];
    return 0;
}

/* Reads `least` to `most` texts in quotes, up to the end of the line or a word without quotes, and appends them to
 * `name`. Returns 0, or -1 with the message. */
static int read_texts(struct scan *scan, char *name, size_t least, size_t most, const char *expected) {
    char text[SCAN_STRING_MOST];
    size_t count = 0;
    while (scan_more(scan) && (count < least || *scan->at == '"')) {
        size_t used = strlen(name);
        if (scan_string(scan, text, sizeof text, false, expected) < 0) return -1;
        if (count++ == most) return scan_fail(scan, "too many texts in quotes");
        snprintf(name + used, FIGURE_KEY_MOST - used, " ");
        if (!scan_quote(name, FIGURE_KEY_MOST - 2, text)) return scan_fail(scan, "the line is too long");
    }
    return count >= least ? 0 : scan_fail(scan, "%s expected, in quotes", expected);
}

static int read_owner(struct figures *figures, struct scan *scan, bool cuda, const struct range ranges[2]) {
    char name[FIGURE_KEY_MOST], kind[16];
    scan_word(scan, kind, sizeof kind);
    if (strcmp(kind, "model") != 0 && strcmp(kind, "node") != 0 && strcmp(kind, "custom") != 0 &&
        strcmp(kind, "state") != 0)
        return scan_fail(scan, "model, node, custom or state expected");
    snprintf(name, sizeof name, "%s", kind);
    if (read_texts(scan, name, 2, 2, "a name and an origin") < 0) return -1;
    return scan_end_of_line(scan) < 0 ? -1 : figure_take(figures, scan, FIGURE_OWNER, cuda, name, ranges);
}

/* Reads the word `expected`, and appends it to `name`, which has space for FIGURE_KEY_MOST bytes. */
static int read_lead(struct scan *scan, char *name, const char *expected) {
    char word[16];
    size_t used = strlen(name);
    scan_word(scan, word, sizeof word);
    if (strcmp(word, expected) != 0) return scan_fail(scan, "%s expected", expected);
    if (used + strlen(word) + 2 > FIGURE_KEY_MOST) return scan_fail(scan, "the line is too long");
    snprintf(name + used, FIGURE_KEY_MOST - used, " %s", word);
    return 0;
}

/* Reads the owners of a call site. Each may have an origin, behind "from". */
static int read_owners(struct scan *scan, char *name, bool origins) {
    if (read_lead(scan, name, "of") < 0 || read_texts(scan, name, 1, 4, "kind:name") < 0) return -1;
    while (origins && scan_more(scan))
        if (read_lead(scan, name, "from") < 0 || read_texts(scan, name, 1, 4, "an origin") < 0) return -1;
    return 0;
}

static int read_site(struct figures *figures, struct scan *scan, const struct parsed *parsed,
                     const struct range ranges[2]) {
    char name[FIGURE_KEY_MOST] = "at", word[16];
    scan_word(scan, word, sizeof word);
    if (strcmp(word, "at") != 0) return scan_fail(scan, "at expected");
    if (read_texts(scan, name, 1, 16, "function@module") < 0) return -1;
    if (scan_more(scan) && read_owners(scan, name, parsed->version >= SINCE_ORIGINS) < 0) return -1;
    return scan_end_of_line(scan) < 0 ? -1 : figure_take(figures, scan, FIGURE_SITE, parsed->cuda, name, ranges);
}

static int read_figure(struct figures *figures, struct scan *scan, const char *word, struct parsed *parsed) {
    struct range ranges[2];
    if (read_range(scan, &ranges[0], "bytes") < 0 || read_range(scan, &ranges[1], "a number of blocks") < 0) return -1;
    scan_more(scan);
    figures->with_cuda |= parsed->cuda;
    if (strcmp(word, "owner") == 0) return read_owner(figures, scan, parsed->cuda, ranges);
    if (strcmp(word, "site") == 0) return read_site(figures, scan, parsed, ranges);
    if (scan_end_of_line(scan) < 0) return -1;
    scan->token = scan->line;
    if (baseline_once(scan, parsed->cuda ? &parsed->cuda_total : &parsed->total, "the total") < 0) return -1;
    return figure_take(figures, scan, FIGURE_TOTAL, parsed->cuda, "", ranges);
}

static int read_setting(struct scan *scan, bool *had, const char *word, uint64_t least, uint64_t *number) {
    if (baseline_once(scan, had, word) < 0) return -1;
    scan_more(scan);
    if (scan_number(scan, number, "a number") < 0) return -1;
    if (*number < least || *number > UINT64_C(1) << 62) return scan_fail(scan, "%s must be from 1 to 2^62", word);
    return scan_end_of_line(scan);
}

static int read_measure(struct figures *figures, struct scan *scan, struct parsed *parsed) {
    char word[16];
    if (baseline_once(scan, &parsed->measure, "the measure") < 0) return -1;
    scan_more(scan);
    scan_word(scan, word, sizeof word);
    figures->peak = strcmp(word, "peak") == 0;
    if (!figures->peak && strcmp(word, "live") != 0) return scan_fail(scan, "live or peak expected");
    return scan_end_of_line(scan);
}

static int baseline_read_line(struct figures *figures, struct scan *scan, struct parsed *parsed) {
    char word[16];
    uint64_t runs = 1;
    scan_word(scan, word, sizeof word);
    if (strcmp(word, "measure") == 0) return read_measure(figures, scan, parsed);
    if (strcmp(word, "floor") == 0) return read_setting(scan, &parsed->floor, word, 1, &figures->floor);
    if (strcmp(word, "runs") == 0) {
        int result = read_setting(scan, &parsed->runs, word, 1, &runs);
        figures->runs = runs < UINT32_MAX ? (uint32_t)runs : UINT32_MAX;
        return result;
    }
    static const char cuda[] = "cuda-"; /* begins the words for devices */
    parsed->cuda = parsed->version >= SINCE_CUDA && strncmp(word, cuda, sizeof cuda - 1) == 0;
    const char *of = parsed->cuda ? word + sizeof cuda - 1 : word;
    if (strcmp(of, "total") != 0 && strcmp(of, "owner") != 0 && strcmp(of, "site") != 0)
        return scan_fail(scan, "measure, runs, floor, total, owner or site expected");
    return read_figure(figures, scan, of, parsed);
}

static int read_head(struct figures *figures, struct scan *scan, uint64_t *version) {
    char word[32];
    if (!scan_line(scan)) return scan_fail(scan, "not a baseline: the file is empty");
    scan_word(scan, word, sizeof word);
    if (strcmp(word, magic) != 0) return scan_fail(scan, "not a baseline: the file does not begin with %s", magic);
    scan_more(scan);
    if (scan_number(scan, version, "a version") < 0) return -1;
    if (!*version || *version > SINCE_ORIGINS)
        return scan_fail(scan, "a later memstow wrote it: version %" PRIu64, *version);
    figures->with_cuda = *version == SINCE_CUDA;
    return scan_end_of_line(scan);
}

static bool names_origins(const struct figures *figures) {
    for (const struct figure *figure = figures->table; figure; figure = figure->hh.next)
        if (figure_has_origin(figure)) return true;
    return false;
}

int baseline_read(struct figures *figures, struct scan *scan) {
    struct parsed parsed = {.total = false};
    if (read_head(figures, scan, &parsed.version) < 0) return -1;
    while (scan_line(scan))
        if (baseline_read_line(figures, scan, &parsed) < 0) return -1;
    if (!figures->runs) figures->runs = 1;
    figures->without_origins = parsed.version < SINCE_ORIGINS && names_origins(figures);
    return parsed.total ? 0 : scan_fail(scan, "the file has no total");
}

/* --- writing a baseline --- */

static void write_range(FILE *to, struct range range) {
    fprintf(to, " %" PRIu64, range.low);
    if (range.high != range.low) fprintf(to, "..%" PRIu64, range.high);
}

/* The lowest version that has all that these figures need, so that files of programs without devices or models stay as
 * they are. */
static int version_of(const struct figures *figures) {
    if (!figures->without_origins && names_origins(figures)) return SINCE_ORIGINS;
    for (const struct figure *figure = figures->table; figure; figure = figure->hh.next)
        if (figure->cuda) return SINCE_CUDA;
    return 1;
}

void baseline_write(struct figures *figures, FILE *to) {
    static const char *const words[] = {"total", "owner", "site"};
    figures_sort(figures);
    fprintf(to, "%s %d\n", magic, version_of(figures));
    fputs("# Bytes and blocks, the lowest and the highest of several runs: 'memstow check --update-baseline' writes "
          "it.\n",
          to);
    fprintf(to, "measure %s\nruns %" PRIu32 "\nfloor %" PRIu64 "\n", figures->peak ? "peak" : "live", figures->runs,
            figures->floor);
    for (const struct figure *figure = figures->table; figure; figure = figure->hh.next) {
        fprintf(to, "%s%s", figure->cuda ? "cuda-" : "", words[figure->kind]);
        write_range(to, figure->bytes);
        write_range(to, figure->blocks);
        fprintf(to, "%s%s\n", *figure_name(figure) ? " " : "", figure_name(figure));
    }
}

static int baseline_refuse(char *error, size_t size, const char *path, const char *why) {
    snprintf(error, size, "%s: %s", TEXT_SAFE(path), why);
    return -1;
}

bool baseline_may_replace(const char *path, char *error, size_t size) {
    char first[sizeof magic] = "";
    struct stat st;
    if (lstat(path, &st) < 0) return errno == ENOENT || baseline_refuse(error, size, path, strerror(errno)) == 0;
    if (!S_ISREG(st.st_mode)) return baseline_refuse(error, size, path, "is not a regular file: not replaced") == 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return baseline_refuse(error, size, path, strerror(errno)) == 0;
    ssize_t got = read(fd, first, sizeof first - 1);
    close(fd);
    if (got == 0 || strcmp(first, magic) == 0) return true;
    return baseline_refuse(error, size, path, "exists and is not a baseline: not replaced") == 0;
}

int baseline_save(struct figures *figures, const char *path, char *error, size_t error_size) {
    struct new_file file;
    if (!baseline_may_replace(path, error, error_size)) return -1;
    int code = new_file_begin(&file, path, true);
    if (!code) {
        baseline_write(figures, file.stream);
        code = new_file_end(&file, true);
    }
    return code ? baseline_refuse(error, error_size, path, new_file_why(code)) : 0;
}
