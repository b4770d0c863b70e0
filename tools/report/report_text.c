/* report_text.c — a report as text, in 80 columns or the width of a wider terminal; see report.h. */
#include "tools/reader/cuda_image.h"
#include "tools/views/estimate.h"
#include "tools/reader/last_word.h"
#include "tools/image/lost.h"
#include "tools/report/report.h"
#include "tools/views/roster.h"
#include "tools/base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void text_notes(const struct image *image) {
    for (size_t i = 0; i < image->fact_count; i++)
        if (image->facts[i].key == SNAP_FACT_NOTE) {
            fputs("  note       ", stdout);
            text_wrap(stdout, image_string(image, image->facts[i].string), 13, 13);
        }
}

static void text_head(const struct report *report) {
    const struct image *image = report->image;
    const struct snap_header *header = &image->header;
    uint64_t now = image_now(image);
    printf("%s (pid %u), %s\n", TEXT_SAFE(header->name), header->pid, report_state(image).s);
    if (*image_fact(image, SNAP_FACT_COMMAND))
        printf("  command    %s\n", text_fit(image_fact(image, SNAP_FACT_COMMAND), text_width() - 14).s);
    printf("  started    %s", text_when(header->start_wall_ns).s);
    if (!last_word_is_untold(image) && now > header->start_ns)
        printf(", tracked for %s", text_duration(now - header->start_ns).s);
    putchar('\n');
    if (header->exec_generation)
        printf("  exec       program number %u of this process\n", header->exec_generation + 1);
    if (header->flags & SNAP_FORK_CHILD)
        printf("  forked     from process %u, with %s live; of that %s freed since\n", header->parent_pid,
               text_size(header->inherited_bytes).s, text_size(image->inherited.free_bytes).s);
    if (header->flags & SNAP_FOREIGN_ALLOCATOR)
        puts("  allocator  the program's own");
    else if (header->allocator == SNAP_ALLOCATOR_MIMALLOC)
        puts("  allocator  mimalloc");
    if (header->sample_bytes)
        printf("  stacks     samples, one in %s allocated (--stacks=sample)\n", text_size(header->sample_bytes).s);
    if (header->stacks == SNAP_STACKS_NONE) puts("  stacks     recorded without call sites (--stacks=none)");
    text_notes(image);
}

static void total_row(const char *name, uint64_t live, uint64_t blocks, uint64_t peak, uint64_t allocated) {
    printf("  %-12s %12s %14s %12s %12s\n", name, text_size(live).s, text_count(blocks).s, text_peak(peak, allocated).s,
           text_size(allocated).s);
}

static uint64_t report_text_most(uint64_t a, uint64_t b) { return a > b ? a : b; }

static void text_totals(const struct report *report) {
    const struct image *image = report->image;
    const struct sum *host = &image->host, *mapped = &image->mapped;
    printf("\n  %-12s %12s %14s %12s %12s\n", "", "live", "blocks", "peak", "allocated");
    total_row("host heap", host->live_bytes, host->live_blocks,
              report_text_most(image->header.host_peak, host->live_bytes), host->alloc_bytes);
    total_row("mapped", mapped->live_bytes, mapped->live_blocks,
              report_text_most(image->header.mapped_peak, mapped->live_bytes), mapped->alloc_bytes);
    total_row("total", host->live_bytes + mapped->live_bytes, host->live_blocks + mapped->live_blocks,
              image_peak(image), host->alloc_bytes + mapped->alloc_bytes);
    const struct sum *device = &image->cuda.device;
    if (image->cuda.used)
        total_row("CUDA devices", device->live_bytes, device->live_blocks, cuda_peak(image), device->alloc_bytes);
    if (image->header.file_mapped_live || image->header.reserved_live)
        printf("  besides: %s of files mapped, %s of addresses reserved\n", text_size(image->header.file_mapped_live).s,
               text_size(image->header.reserved_live).s);
}

/* Prints how many live bytes of each owner are stowed in files, and how many were moved out of devices. */
static int text_stowed(const struct image *image) {
    struct roster roster;
    struct text_line words;
    if (roster_make(&roster, image) < 0) return -1;
    for (size_t i = 0; i < roster.count; i++) {
        const struct roster_row *row = &roster.rows[i];
        const struct roster_stowed stowed = roster_stowed(row->owner, row->live_bytes, row->cuda_bytes);
        const char *name = image_owner_words(image, row->owner->id, words.s, sizeof words.s);
        if (stowed.in_files)
            printf("  %s of %s: stowed, in files\n", text_size(stowed.in_files).s, text_fit(name, 50).s);
        if (stowed.of_devices)
            printf("  %s of %s: out of the device, in the process's memory\n", text_size(stowed.of_devices).s,
                   text_fit(name, 30).s);
    }
    roster_clear(&roster);
    return 0;
}

static int text_views(const struct report *report) {
    enum view view;
    if (report_shows_stacks(report)) {
        if (report_text_sites(report) < 0 || report_text_tree(report) < 0) return -1;
        report_text_without_lines(report);
    }
    if (!report_shows_table(report, &view)) return 0;
    return report_text_table(report, view) < 0 || (view == BY_MODEL && text_stowed(report->image) < 0) ? -1 : 0;
}

static void text_lost(const struct image *image) {
    if (!lost_any(image)) return;
    text_heading("Lost");
    for (size_t i = 0; i < SNAP_LOST_KINDS; i++) {
        const struct lost_kind *kind = lost_kind(i);
        if (image->header.lost[i])
            printf("  %s: %s\n", kind ? kind->text : "losses of a newer kind", text_count(image->header.lost[i]).s);
    }
    if (image->inexact)
        printf("  sites that changed while they were read (close, not exact): %s\n", text_count(image->inexact).s);
}

int report_text(const struct report *report) {
    text_head(report);
    if (report_text_lead(report) < 0) return -1;
    report_text_misuse(report);
    text_totals(report);
    report_text_peak(report);
    if (report_text_history(report) < 0) return -1;
    report_text_estimates(report);
    if (report_text_match(report) && (text_views(report) < 0 || report_text_blocks(report) < 0)) return -1;
    if (report_text_cuda(report) < 0) return -1;
    report_text_residency(report);
    text_lost(report->image);
    return 0;
}
