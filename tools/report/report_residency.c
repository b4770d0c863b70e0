/* report_residency.c — the split of resident memory as text; see report.h. */
#include "tools/reader/last_word.h"
#include "tools/report/report.h"
#include "tools/base/text.h"

#include <stdio.h>

enum { FILES_SHOWN = 5, HEADERS_SHOWN_FROM = 32 }; /* headers are shown if they take more than 1/32 of the RSS */

/* The width of the column of names. `columns`: its width on a terminal of 80 columns; a wider terminal widens it. */
static int report_residency_wider(int columns) { return columns + text_width() - 80; }

static void report_residency_part(const char *name, uint64_t bytes, uint64_t rss) {
    if (bytes)
        printf("  %-*s %12s %5.1f %%\n", report_residency_wider(44), name, text_size(bytes).s,
               rss ? 100.0 * (double)bytes / (double)rss : 0.0);
}

static void part_of_part(const char *name, uint64_t bytes) {
    printf("    %s %12s\n", text_left(name, report_residency_wider(42)).s, text_size(bytes).s);
}

static struct text_line why_not_measured(const struct image *image) {
    struct text_line line;
    const char *why = "could not look at its own pages";
    if (image->header.state == SNAP_EXECED) why = "went on as another program (exec)";
    struct text_line untold = last_word_of_untold(&image->header);
    if (last_word_is_untold(image)) why = untold.s;
    snprintf(line.s, sizeof line.s, "the process %.900s", why);
    if (image->header.state == SNAP_RUNNING && image->running)
        snprintf(line.s, sizeof line.s, "you may not look at the pages of this process");
    return line;
}

void report_text_residency(const struct report *report) {
    const struct resident *resident = &report->resident;
    if (!resident->measured) {
        char sentence[1100];
        snprintf(sentence, sizeof sentence, "Resident memory was not measured: %s.", why_not_measured(report->image).s);
        putchar('\n');
        text_wrap(stdout, sentence, 0, 0);
        return;
    }
    text_heading("Resident memory (RSS): %s", text_size(resident->rss).s);
    report_residency_part("live blocks", resident->live, resident->rss);
    report_residency_part("allocator overhead of live blocks (estimate)", resident->overhead, resident->rss);
    report_residency_part("freed, kept by the allocator (estimate)", resident->retained, resident->rss);
    report_residency_part("anonymous mappings", resident->anonymous, resident->rss);
    report_residency_part("program data (.data, .bss)", resident->program_data, resident->rss);
    report_residency_part("files", resident->file, resident->rss);
    for (size_t i = 0; i < resident->file_count && i < FILES_SHOWN && i < report->top; i++)
        part_of_part(resident->files[i].path, resident->files[i].bytes);
    report_residency_part("stowed, and used again: files back it", resident->stowed, resident->rss);
    report_residency_part("moved out of devices", resident->of_devices, resident->rss);
    report_residency_part("pinned buffers for devices (memstow's)", resident->buffers, resident->rss);
    report_residency_part("stacks", resident->stack, resident->rss);
    report_residency_part("memstow", resident->own, resident->rss);
    if (resident->headers > resident->rss / HEADERS_SHOWN_FROM)
        part_of_part("headers of live blocks", resident->headers);
    report_residency_part("rest", resident->rest, resident->rss);
    if (*resident->advice) {
        fputs("  ", stdout);
        text_wrap(stdout, resident->advice, 2, 2);
    }
}
