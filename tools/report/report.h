/* report.h — the two faces of a report; cmd_report.c chooses.
 * In: an image, its split of resident memory, and what was asked for. Out: text or JSON on stdout. */
#ifndef MEMSTOW_REPORT_H
#define MEMSTOW_REPORT_H

#include "tools/views/groups.h"
#include "tools/image/image.h"
#include "tools/base/json.h"
#include "tools/views/resident.h"
#include "tools/subject/subject.h"
#include "tools/symbols/symbols.h"
#include "tools/base/text.h"

/* Of a page: a document of the command that it is of, and whose view is in front. */
struct report_tab {
    const char *command;
    const char *text;
    size_t length;
};

struct report {
    const struct image *image;
    const struct subject *subject;
    struct resident resident;
    enum view view;
    bool view_given;
    enum measure measure;
    size_t top;              /* rows of a list; SIZE_MAX: all */
    bool python;             /* of a profile: Python frames only */
    bool min_given;          /* of a profile: */
    uint64_t min;            /* what holds less bytes is merged */
    size_t top_sites;        /* the same of sites in JSON: each has a call stack, of a hundred frames perhaps */
    const char *match;       /* NULL: no --match */
    const uint8_t *kept;     /* by node: whether --match keeps it. NULL: all are */
    struct symbols *symbols; /* names of frames */
    const char *page;        /* where a page goes; NULL: standard output */
    const struct report_tab *tab;
};

/* Reads what there is to know, once: estimates take the place of samples. 0, or -1: no memory. The subject outlives it,
 * and report_end() comes whatever the result is. */
int report_begin(struct report *report, struct subject *subject);
void report_end(struct report *report);

int report_text(const struct report *report); /* 0, or -1: no memory */
int report_json(const struct report *report);
int report_json_to(const struct report *report, FILE *to);
int report_html(const struct report *report); /* 0, or an exit code after complaining */
int report_folded(const struct report *report);
int report_pprof(const struct report *report);

/* CUDA memory: nothing where the process has none. 0, or -1: no memory. */
int report_text_cuda(const struct report *report);
void report_text_cupti(const struct report *report);
int report_json_cuda(struct json *json, const struct report *report);
int report_json_cupti(struct json *json, const struct report *report);
/* Blocks that were freed twice, or whose header was overwritten. JSON: 0, or -1: no memory. */
void report_text_misuse(const struct report *report);
int report_json_misuse(struct json *json, const struct report *report);
/* Of both: blocks that several owners share. 0, or -1: no memory. */
int report_text_mixed(const struct report *report);
/* What comfy-aimdo manages by itself. */
bool report_has_vbars(const struct report *report);
void report_text_vbars(const struct report *report);
void report_json_vbars(struct json *json, const struct report *report);
int report_json_mixed(struct json *json, const struct report *report);
/* Of the text: a table, and that of the owners where there are any. 0, or -1: no memory. */
int report_text_table(const struct report *report, enum view view);
int report_text_owners(const struct report *report);
void report_json_tag(struct json *json, const struct image *image, uint32_t tag);
/* Its id and its name; null where it is nobody's, or nobody has that id. */
void report_json_owner(struct json *json, const struct image *image, uint64_t id);

/* What the text shows unless a view is asked for: the call stacks where there are any, and who owns where there are
 * owners; else the modules. */
bool report_shows_stacks(const struct report *report);
bool report_shows_table(const struct report *report, enum view *view);

/* Of the text: the sites that hold the most, and the call tree. */
/* "  nothing is live": a list of that measure has no row. */
const char *text_nothing(enum measure measure);
int text_sites(const struct report *report);
int text_tree(const struct report *report);
/* "live", "allocated" or "at peak": of what the stacks are shown. */
struct text report_measure_words(const struct report *report);
/* "By SITE", and what --match leaves of it. */
void text_view(const struct report *report, enum view view);
void text_without_lines(const struct report *report);

/* Whether a total counts: not what a forked child found, what estimates lack, and what --match leaves out. */
bool report_keeps(const struct report *report, const struct total *total);

/* A site: a host total, a mapped one, or one of each, from the first on. */
struct listed_site {
    uint32_t first, count;
    uint64_t bytes; /* of the measure */
};
/* How far its bytes may be off: estimate.h. */
double report_site_variance(const struct image *image, const struct listed_site *site, enum measure measure);
/* The sites, of which the first `top` are in order, those that hold the most first. Those that hold nothing
 * now are left out, unless `empty_too`. NULL: no memory. */
struct listed_site *report_sites(const struct report *report, bool empty_too, size_t *count);
/* All of one site as one total. */
struct total report_site(const struct image *image, const struct listed_site *site);
/* What figures of the peak are called: "at peak", unless they are of a lower one. */
struct text report_peak_label(const struct image *image);
/* The sentence that says what they show. */
void report_text_peak(const struct report *report);
/* That a program which tidied up at its end held more before, and how to see it. */
void report_text_since_freed(const struct report *report);
/* Where the stacks or the table are estimates: that they are, and what they lack. */
void report_text_estimates(const struct report *report);
/* The same on standard error, beside a form that has no place for it. */
void report_tell_estimates(const struct report *report);
/* What those of the rows mean that are no thread. */
void report_text_thread_notes(const struct groups *groups, size_t shown);
void report_text_residency(const struct report *report); /* the part of the text that tells where the RSS is */

int report_text_blocks(const struct report *report); /* and that which lists the largest blocks; 0, or -1: no memory */
/* Of --match: what is left, and its part of all. Whether there is anything; without --match nothing is said. */
bool report_text_match(const struct report *report);
/* The same beside a form that has no place for it: only that there is nothing. */
void report_tell_match(const struct report *report);

/* Rows that both list: large blocks and mappings, the biggest first. */
struct listed {
    uint64_t address, size, birth_ns, resident;
    uint32_t site, thread;
    const struct snap_mapping *mapping; /* NULL for a large block */
};
struct listed *report_listed(const struct report *report, bool large, bool mappings, size_t *count);

/* "exited", "still running" … */
struct text_line report_state(const struct image *image);
const char *mapping_kind_name(uint32_t kind);
uint64_t age_ns(const struct image *image, uint64_t birth_ns);

#endif
