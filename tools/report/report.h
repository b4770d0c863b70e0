/* report.h — a report as text, JSON or an HTML page; cmd_report.c chooses the form.
 * In: an image, the split of its resident memory, options. Out: the report, on standard output or in the page's file.
 */
#ifndef MEMSTOW_REPORT_H
#define MEMSTOW_REPORT_H

#include "tools/views/groups.h"
#include "tools/image/image.h"
#include "tools/base/json.h"
#include "tools/views/resident.h"
#include "tools/subject/subject.h"
#include "tools/symbols/symbols.h"
#include "tools/base/text.h"

/* A JSON document that a command adds to an HTML page, for a view of its own. If in_front is set, the page opens with
 * this view, and `name` is the name of the command that makes the page. */
struct report_tab {
    const char *name;
    char *text;
    size_t length;
    bool in_front;
};

struct report {
    const struct image *image;
    const struct subject *subject;
    const char *argument; /* FILE or PID as the user wrote it */
    struct resident resident;
    enum view view;
    bool view_given;
    enum measure measure;
    size_t top;                   /* how many rows of a list are shown; SIZE_MAX: all */
    bool python;                  /* in a profile: Python frames only */
    bool min_given;               /* in a profile: --min was given */
    uint64_t min;                 /* in a profile: branches of fewer bytes are merged */
    const uint8_t *hidden_owners; /* in JSON: for each owner of the image, whether it is left out. NULL: none is */
    size_t top_sites;        /* in JSON: how many sites are listed. Each may have a call stack of a hundred frames */
    const char *match;       /* NULL: no --match */
    const uint8_t *matched;  /* by node: whether --match keeps the node. NULL: all are kept */
    struct symbols *symbols; /* names of frames */
    const char *page;        /* file of the page; NULL: standard output */
    const struct report_tab *tab;     /* NULL: none */
    struct massif *massif;            /* with --massif: the snapshots so far */
    struct html_snapshots *snapshots; /* with --html: the files so far, if there are several; NULL: only one */
    bool more;                        /* another file of the process follows */
};

/* Reads everything that the report needs, once, and replaces samples by estimates. Returns 0, or -1: no memory. The
 * subject outlives the report. Call report_end() whatever the result is. */
int report_begin(struct report *report, struct subject *subject);
void report_end(struct report *report);

int report_text(const struct report *report); /* returns 0, or -1: no memory */
int report_json(const struct report *report);
int report_json_to(const struct report *report, FILE *to);
int report_html(const struct report *report); /* returns 0, or an exit code after an error message */

/* CUDA memory, and CUPTI's report about it. If there is none, the text functions print nothing. The functions that
 * return an int return 0, or -1: no memory. */
int report_text_cuda(const struct report *report);
void report_text_cupti(const struct report *report);
int report_json_cuda(struct json *json, const struct report *report);
int report_json_cupti(struct json *json, const struct report *report);
/* Misused blocks (misuse_image.h): text is printed only if there are any. The JSON function returns 0, or -1: no
 * memory. */
void report_text_misuse(const struct report *report);
int report_json_misuse(struct json *json, const struct report *report);
/* Memory over time. The text is a curve, or nothing if there are too few points. Both return 0, or -1: no memory. */
int report_text_history(const struct report *report);
int report_json_history(struct json *json, const struct image *image);
/* Blocks of device memory that several owners share. Both return 0, or -1: no memory. */
int report_text_mixed(const struct report *report);
int report_json_mixed(struct json *json, const struct report *report);
/* For device memory that comfy-aimdo manages itself (vbars.h): whether there is any, its text, and its JSON. */
bool report_has_vbars(const struct report *report);
void report_text_vbars(const struct report *report);
void report_json_vbars(struct json *json, const struct report *report);
/* Prints the table of a view. Returns 0, or -1: no memory. */
int report_text_table(const struct report *report, enum view view);
/* Prints the table by model, if there are owners. Returns 0, or -1: no memory. */
int report_text_owners(const struct report *report);
/* Writes model, node and run of a tag, and the origins of model and node. */
void report_json_tag(struct json *json, const struct image *image, uint32_t id);
/* Writes id and name of an owner. For id 0 (no owner) both are null. If no owner has that id, the name is null. */
void report_json_owner(struct json *json, const struct image *image, uint64_t id);

/* report_shows_stacks returns whether the text shows the call stacks. report_shows_table returns whether the text shows
 * a table, and sets *view to the view of this table.
 * - If the user chose the view by site and there are call stacks, the text shows the call stacks and no table.
 * - If the user chose a view in any other case, the text shows the table of that view.
 * - If the user chose no view, the text shows the call stacks, if there are any, and the table by model, if there are
 *   owners. Without call stacks and owners, the text shows the table by module. */
bool report_shows_stacks(const struct report *report);
bool report_shows_table(const struct report *report, enum view *view);

/* The sentences that a report begins with: where most memory is, and which command to type next. "": there is no such
 * sentence. */
struct report_lead {
    struct text_line where, next;
};
/* Finds the sentences. `page`: for an HTML page. Without report->argument there is no "next". Returns 0, or -1: no
 * memory. */
int report_lead(const struct report *report, bool page, struct report_lead *lead);
/* Prints the sentences as lines. Returns 0, or -1: no memory. */
int report_text_lead(const struct report *report);

/* Parts of the text: the sites with the most memory, and the call tree. Both return 0, or -1: no memory. */
int report_text_sites(const struct report *report);
int report_text_tree(const struct report *report);
/* The text for an empty list of figures in the measure: "  nothing is live". */
const char *report_text_nothing(enum measure measure);
/* The report's measure in words: "live", "allocated", "at peak", or "at SIZE" as in report_peak_label. */
struct text report_measure_words(const struct report *report);
/* Prints the heading of a view, such as "By site". With --match, the heading also has the text that must match (except
 * in the view by thread). */
void report_text_view(const struct report *report, enum view view);
/* Says why some functions have no lines. */
void report_text_without_lines(const struct report *report);

/* Whether a total counts. Three kinds do not: memory that a forked child inherited, differences between estimates and
 * exact sums (TOTAL_REMAINDER), and totals that --match leaves out. */
bool report_keeps(const struct report *report, const struct total *total);

/* A site of the image. It has a total of host memory, a total of mapped memory, or both. The first of its totals has
 * the index `first`. */
struct listed_site {
    uint32_t first, count;
    uint64_t bytes; /* in the report's measure */
};
/* The variance of the site's bytes in the measure; see estimate.h. */
double report_site_variance(const struct image *image, const struct listed_site *site, enum measure measure);
/* The sites that --match keeps. The first report->top of them are sorted, those with the most memory first. Sites
 * without memory in the report's measure are left out, except with `empty_too`. NULL: no memory. */
struct listed_site *report_sites(const struct report *report, bool empty_too, size_t *count);
/* The sum of a site's totals. */
struct total report_site(const struct image *image, const struct listed_site *site);

/* The heading for figures of the peak: "at peak", or "at SIZE" if they are far from the highest peak. */
struct text report_peak_label(const struct image *image);
/* Prints the sentence that says which peak the column "at peak" shows. */
void report_text_peak(const struct report *report);
/* Prints the note that call stacks are estimates, if they are; see estimate_words(). */
void report_text_estimates(const struct report *report);
/* As report_text_estimates, on standard error, for a form that has no place for the note. */
void report_tell_estimates(const struct report *report);
/* Explains the rows in the table by thread that are not threads. Looks only at the first `shown` rows. */
void report_text_thread_notes(const struct groups *groups, size_t shown);
/* Prints the split of the RSS. */
void report_text_residency(const struct report *report);
/* Prints the largest blocks and mappings. Returns 0, or -1: no memory. */
int report_text_blocks(const struct report *report);
/* Prints how much memory --match leaves, and its share of all memory. Returns whether any is left. Without --match it
 * prints nothing and returns true. */
bool report_text_match(const struct report *report);
/* Says on standard error if --match leaves nothing, for a form that has no place for such a note. */
void report_tell_match(const struct report *report);

/* A large block of the host, a mapping, or a block on a device. report_listed returns all blocks and mappings of
 * the image that `which` names (enum listed_which) and that --match keeps, the biggest first. NULL: no memory. */
struct listed {
    uint64_t address, size, birth_ns, resident;
    /* site: for memory of the host, the number that image_total() takes; for a block on a device, the number of the
     * CUDA site */
    uint32_t site, thread;
    const struct snap_mapping *mapping;      /* NULL: no mapping */
    const struct snap_cuda_block *on_device; /* NULL: memory of the host */
};
enum listed_which { LISTED_BLOCKS = 1, LISTED_MAPPINGS = 2, LISTED_ON_DEVICES = 4 };
struct listed *report_listed(const struct report *report, unsigned which, size_t *count);

/* The state of the process in words: "exited", "running" … */
struct text_line report_state(const struct image *image);
const char *report_mapping_kind(uint32_t kind);
uint64_t report_age_ns(const struct image *image, uint64_t birth_ns);

#endif
