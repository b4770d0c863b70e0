/* report_massif.c — snapshots as valgrind's massif writes them, for ms_print and massif-visualizer; see export.h. Times
 * are milliseconds since the start of the process. If there are several files, they must be of one process.
 * - Snapshots with call stacks: a file of memstow gives at most two, its peak and its live memory.
 * - Snapshots without call stacks: the start of the process, and the points of the curve. These points are the readings
 *   that `memstow leaks --series` has put into the file. If the file has no readings, at most a hundred points are made
 *   from its history. massif itself writes as many, unless it is told otherwise. */
#include "tools/base/complain.h"
#include "tools/export/callers.h"
#include "tools/export/export.h"
#include "tools/export/report_profile.h"
#include "tools/leaks/series.h"
#include "tools/views/history.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* DEEPEST is below 100, because ms_print is written in Perl, and Perl warns of calls that are nested 100 deep. */
enum { DEEPEST = 90, PERCENT = 1, TEXT_COLUMNS = 400, CURVE = 100 };

struct tree {
    const struct report *report;
    struct callers callers;
    uint64_t least; /* functions with fewer bytes than this are merged into one entry */
    bool failed;    /* no memory */
};

/* ---- lines of a tree */

/* ms_print takes '#' for the beginning of a comment. */
static void put_text(const char *text) {
    struct text_line safe = text_fit(text, TEXT_COLUMNS);
    for (char *c = safe.s; *c; c++) putchar(*c == '#' ? '?' : *c);
}

static void put_path(const char *path) { put_text(text_fit_path(path, TEXT_COLUMNS).s); }

/* Writes a line of code: "0x4011F2: order (shop.cc:15)", or "(in /opt/libx.so)" where the line is not known. */
static void put_source_line(const struct tree *tree, struct symbol_line line) {
    char nameless[SYMBOL_NAMELESS];
    const struct named_frame *frame = symbols_frame(tree->callers.symbols, line.frame);
    const struct symbol *symbol = &frame->symbols[line.symbol < frame->count ? line.symbol : 0];
    printf("0x%" PRIX64 ": %s", frame->offset, frame->python ? "py:" : "");
    put_text(symbol->function ? symbol->function : symbol_nameless(frame, nameless));
    if (!symbol->file && !frame->module) return;
    fputs(symbol->file ? " (" : " (in ", stdout);
    put_path(symbol->file ? symbols_short_path(symbol->file) : frame->module);
    if (symbol->file && symbol->line) printf(":%" PRIu32, symbol->line);
    putchar(')');
}

static void put_node(int depth, size_t children, uint64_t bytes) {
    printf("%*sn%zu: %" PRIu64 " ", depth, "", children, bytes);
}

static void put_merged(const struct tree *tree, int depth, size_t places, uint64_t bytes) {
    put_node(depth, 0, bytes);
    printf(places == 1 ? "in 1 place, below massif's threshold (" : "in %zu places, all below massif's threshold (",
           places);
    if (tree->report->min_given)
        printf("%" PRIu64 " bytes)\n", tree->least);
    else
        printf("%d.00%%)\n", PERCENT);
}

/* ---- writing the tree of callers */

/* Whether all stacks end here: the only group is that of stacks without another caller. */
static bool is_end(const struct caller_group *groups, size_t count) { return count == 1 && groups[0].ended; }

static size_t count_large(const struct tree *tree, const struct caller_group *groups, size_t count) {
    size_t large = 0;
    while (large < count && groups[large].bytes >= tree->least) large++;
    return large;
}

static void write_callers(struct tree *tree, struct caller *list, size_t count, int depth);

static void write_group(struct tree *tree, const struct caller_group *group, int depth) {
    if (group->ended) {
        put_node(depth, 0, group->bytes);
        puts("0x0: (outermost frame)");
        return;
    }
    write_callers(tree, group->first, group->count, depth);
}

/* Writes a line of code and, below it, the lines that called it. */
static void write_callers(struct tree *tree, struct caller *list, size_t count, int depth) {
    struct symbol_line line = list[0].line;
    uint64_t bytes = 0, small = 0;
    size_t found = 0;
    for (size_t i = 0; i < count; i++) bytes += list[i].bytes;
    struct caller_group *groups = depth < DEEPEST ? callers_step(&tree->callers, list, count, &found) : NULL;
    tree->failed |= depth < DEEPEST && !groups;
    if (is_end(groups, found)) found = 0;
    size_t large = count_large(tree, groups, found);
    for (size_t i = large; i < found; i++) small += groups[i].bytes;
    put_node(depth, large + (found > large), bytes);
    put_source_line(tree, line);
    putchar('\n');
    for (size_t i = 0; i < large; i++) write_group(tree, &groups[i], depth + 1);
    if (found > large) put_merged(tree, depth + 1, found - large, small);
    free(groups);
}

/* Memory without a call stack. It is shown under a name in place of a line of code. */
struct stackless {
    const char *name;
    uint64_t bytes;
};

static int by_name(const void *left, const void *right) {
    return strcmp(((const struct stackless *)left)->name, ((const struct stackless *)right)->name);
}

/* Adds up entries with the same name. Returns the number of different names. */
static size_t unite_names(struct stackless *list, size_t count) {
    size_t kept = 0;
    qsort(list, count, sizeof *list, by_name);
    for (size_t i = 0; i < count; i++) {
        if (kept && strcmp(list[kept - 1].name, list[i].name) == 0)
            list[kept - 1].bytes += list[i].bytes;
        else
            list[kept++] = list[i];
    }
    return kept;
}

struct sites {
    struct caller *callers;
    struct stackless *stackless;
    size_t caller_count, stackless_count;
    uint64_t bytes;
};

static bool has_frames(const struct tree *tree, uint32_t stack) {
    const struct image *image = tree->report->image;
    return stack && stack < image->node_count;
}

static int find_sites(const struct tree *tree, struct sites *sites) {
    struct report report = *tree->report;
    size_t count;
    report.top = 0; /* unsorted */
    struct listed_site *list = report_sites(&report, false, &count);
    sites->callers = calloc(count + 1, sizeof *sites->callers);
    sites->stackless = calloc(count + 1, sizeof *sites->stackless);
    bool ready = list && sites->callers && sites->stackless;
    for (size_t i = 0; ready && i < count; i++) {
        const struct total *total = &report.image->totals[list[i].first];
        sites->bytes += list[i].bytes;
        if (has_frames(tree, total->stack))
            caller_begin(&sites->callers[sites->caller_count++], total->stack, list[i].bytes);
        else
            sites->stackless[sites->stackless_count++] =
                (struct stackless){report_no_frames(&report, total->module), list[i].bytes};
    }
    if (ready) sites->stackless_count = unite_names(sites->stackless, sites->stackless_count);
    free(list);
    return ready ? 0 : -1;
}

static void write_stackless(const struct stackless *one) {
    put_node(1, 0, one->bytes);
    fputs("0x0: ", stdout);
    put_text(one->name);
    putchar('\n');
}

/* The stacks that --python has left without frames are one group. Moves this group to the memory without a call
 * stack. */
static void move_ended(const struct tree *tree, struct sites *sites, struct caller_group *groups, size_t *count) {
    for (size_t i = 0; i < *count; i++) {
        if (!groups[i].ended) continue;
        sites->stackless[sites->stackless_count++] =
            (struct stackless){report_no_frames(tree->report, 0), groups[i].bytes};
        memmove(&groups[i], &groups[i + 1], (--*count - i) * sizeof *groups);
        sites->stackless_count = unite_names(sites->stackless, sites->stackless_count);
        return;
    }
}

/* Writes the lines of code that allocate, the largest first. Lines that hold too little are written as one entry. */
static void write_places(struct tree *tree, const struct sites *sites, struct caller_group *groups, size_t count) {
    size_t large = count_large(tree, groups, count), shown = large, small_count = count - large;
    uint64_t small = 0;
    for (size_t i = large; i < count; i++) small += groups[i].bytes;
    for (size_t i = 0; i < sites->stackless_count; i++) {
        bool is_large = sites->stackless[i].bytes >= tree->least;
        shown += is_large;
        small_count += !is_large;
        small += is_large ? 0 : sites->stackless[i].bytes;
    }
    put_node(0, shown + (small_count > 0), sites->bytes);
    puts("(heap allocation functions) malloc/new/new[], --alloc-fns, etc.");
    for (size_t i = 0; i < large; i++) write_group(tree, &groups[i], 1);
    for (size_t i = 0; i < sites->stackless_count; i++)
        if (sites->stackless[i].bytes >= tree->least) write_stackless(&sites->stackless[i]);
    if (small_count) put_merged(tree, 1, small_count, small);
}

static bool report_massif_skips(const void *context, uint32_t frame) {
    const struct report *report = context;
    struct profile profile = {.image = report->image, .python = report->python};
    return profile_each_skips(&profile, frame);
}

/* ---- writing snapshots */

static void put_snapshot(struct massif *massif, uint64_t ns, uint64_t bytes, const char *tree) {
    uint64_t since = ns > massif->start_ns ? ns - massif->start_ns : 0;
    if (since < massif->last_ns) since = massif->last_ns;
    massif->last_ns = since;
    printf("#-----------\nsnapshot=%zu\n#-----------\ntime=%" PRIu64 "\nmem_heap_B=%" PRIu64
           "\nmem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=%s\n",
           massif->snapshots++, since / 1000000, bytes, tree);
}

/* Writes a snapshot with call stacks, in the measure of the report. If `is_peak`, the snapshot is marked as a peak,
 * unless an earlier mark is higher. Programs that read the file take the last mark, so they find the highest
 * peak. */
static int put_detailed(struct massif *massif, const struct report *report, uint64_t ns, bool is_peak) {
    struct tree tree = {.report = report, .callers = {report->image, report->symbols, report_massif_skips, report}};
    struct sites sites = {0};
    size_t count = 0;
    int result = find_sites(&tree, &sites);
    bool marked = is_peak && sites.bytes >= massif->peak_bytes;
    tree.least = report->min_given ? report->min : sites.bytes / 100 * PERCENT + 1;
    struct caller_group *groups =
        result == 0 ? callers_step(&tree.callers, sites.callers, sites.caller_count, &count) : NULL;
    if (marked) massif->peak_bytes = sites.bytes;
    if (groups) move_ended(&tree, &sites, groups, &count);
    if (groups) put_snapshot(massif, ns, sites.bytes, marked ? "peak" : "detailed");
    if (groups) write_places(&tree, &sites, groups, count);
    free(sites.callers);
    free(sites.stackless);
    result = groups && !tree.failed ? 0 : -1;
    free(groups);
    return result;
}

/* Makes readings from the history: the highest point of each hundredth of the time. Leaves out points that are not
 * later than the last snapshot that was written for an earlier file. */
static int take_history(const struct massif *massif, const struct image *image, struct leak_sites *readings) {
    struct history history;
    size_t last = CURVE;
    int result = history_make(&history, image);
    for (size_t i = 0; result == 0 && history_has_curve(&history) && i + 1 < history.point_count; i++) {
        const struct snap_point *point = &history.points[i];
        const struct leak_point reading = {.taken_ns = point->time_ns, .live_bytes = history_bytes(point)};
        size_t column = history_column(&history, point->time_ns, CURVE);
        if (history_since(&history, point->time_ns) <= massif->last_ns) continue;
        if (column != last)
            readings->points[readings->point_count++] = reading;
        else if (readings->points[readings->point_count - 1].live_bytes < reading.live_bytes)
            readings->points[readings->point_count - 1] = reading;
        last = column;
    }
    history_clear(&history);
    return result;
}

/* Writes the readings from number *next on that are not later than `until`, and moves *next past them. */
static void put_readings(struct massif *massif, const struct leak_sites *sites, uint32_t *next, uint64_t until) {
    for (; *next < sites->point_count && sites->points[*next].taken_ns <= until; ++*next)
        put_snapshot(massif, sites->points[*next].taken_ns, sites->points[*next].live_bytes, "empty");
}

static void put_head(const struct report *report) {
    fputs("desc: memstow " MEMSTOW_VERSION_TEXT "\ncmd: ", stdout);
    const char *command = image_fact(report->image, SNAP_FACT_COMMAND);
    put_text(*command ? command : report->image->header.name);
    fputs("\ntime_unit: ms\n", stdout);
}

/* Writes the peak of a file. A peak from before the last written snapshot is left out, because the previous file had
 * the same peak. */
static int put_peak(struct massif *massif, const struct report *report) {
    const struct snap_header *header = &report->image->header;
    struct report peak = *report;
    bool is_new = header->picture_ns >= massif->start_ns + massif->last_ns;
    if (!report->image->has_picture || report->image->picture_is_live || !is_new) return 0;
    peak.measure = MEASURE_PEAK;
    return put_detailed(massif, &peak, header->picture_ns, true);
}

static int put_file(struct massif *massif, const struct report *report, const struct leak_sites *readings) {
    const struct snap_header *header = &report->image->header;
    uint32_t next = 0;
    uint64_t now = image_now(report->image);
    put_readings(massif, readings, &next, report->image->has_picture ? header->picture_ns : 0);
    if (put_peak(massif, report) < 0) return -1;
    put_readings(massif, readings, &next, now);
    return put_detailed(massif, report, now, true);
}

static void begin_file(struct massif *massif, const struct report *report) {
    report_tell_estimates(report);
    if (massif->snapshots) return;
    put_head(report);
    massif->start_ns = report->image->header.start_ns;
    put_snapshot(massif, massif->start_ns, 0, "empty");
}

int report_massif(const struct report *report) {
    static struct leak_sites readings;
    leak_sites_begin(&readings);
    int result = series_unpack(&readings, report->image);
    if (result == 0 && !readings.point_count) result = take_history(report->massif, report->image, &readings);
    if (report->match) readings.point_count = 0;
    if (result == -2) complain("damaged: a series that does not add up");
    if (result == 0) {
        begin_file(report->massif, report);
        result = put_file(report->massif, report, &readings);
    }
    leak_sites_end(&readings);
    return result == -2 ? EXIT_UNREADABLE : result;
}
