/* report_folded.c — stacks as flame graph programs read them: "outermost;…;innermost BYTES", one line a stack.
 * A Python frame is "py:FUNCTION (FILE:LINE)". Stacks that hold nothing are left out; see report.h. */
#include "report.h"
#include "stacks.h"
#include "text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct folded {
    const struct report *report;
    char **frames; /* as they are written, innermost of inlined functions last; NULL: not yet */
    uint32_t ids[STACK_FRAMES_MAX];
};

/* ';' parts frames and a line end parts stacks. */
static void put_safe(FILE *to, const char *text) {
    for (; *text; text++) putc(*text == ';' ? ':' : (unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text, to);
}

static void put_symbol(FILE *to, const struct named_frame *frame, const struct symbol *symbol) {
    if (frame->python) fputs("py:", to);
    if (symbol->function) {
        put_safe(to, symbol->function);
    } else if (frame->module || !frame->python) {
        put_safe(to, frame->module ? text_base_name(frame->module) : "(no module)");
        fprintf(to, "+0x%" PRIx64, frame->offset);
    }
    if (!frame->python || !symbol->file) return;
    fputs(" (", to);
    put_safe(to, text_base_name(symbol->file));
    if (symbol->line) fprintf(to, ":%" PRIu32, symbol->line);
    putc(')', to);
}

static char *write_frame(const struct named_frame *frame) {
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    if (!to) return NULL;
    for (uint32_t i = frame->count; i--;) {
        put_symbol(to, frame, &frame->symbols[i]);
        if (i) putc(';', to);
    }
    fclose(to);
    return text;
}

static void put_frame(struct folded *folded, uint32_t id) {
    bool known = id < folded->report->image->frame_count;
    if (known && !folded->frames[id]) folded->frames[id] = write_frame(symbols_frame(folded->report->symbols, id));
    fputs_unlocked(known && folded->frames[id] ? folded->frames[id] : "(unknown)", stdout);
}

static void put_stack(struct folded *folded, const struct total *total, uint64_t bytes) {
    const struct image *image = folded->report->image;
    size_t count = stack_frames(image, total->stack, folded->ids, STACK_FRAMES_MAX);
    const char *module = image_module(image, total->module);
    if (!count) put_safe(stdout, module ? text_base_name(module) : "(call stack unknown)");
    for (size_t i = count; i--;) {
        put_frame(folded, folded->ids[i]);
        if (i) putc_unlocked(';', stdout);
    }
    printf(" %" PRIu64 "\n", bytes);
}

int report_folded(const struct report *report) {
    size_t count, frames = report->image->frame_count;
    struct listed_site *sites = report_sites(report, false, &count);
    struct folded *folded = calloc(1, sizeof *folded);
    if (folded) {
        folded->report = report;
        folded->frames = calloc(frames + 1, sizeof *folded->frames);
    }
    int result = sites && folded && folded->frames ? 0 : -1;
    if (result == 0) report_tell_estimates(report);
    for (size_t i = 0; result == 0 && i < count && i < report->top && sites[i].bytes; i++)
        put_stack(folded, &report->image->totals[sites[i].first], sites[i].bytes);
    for (size_t i = 0; folded && folded->frames && i < frames; i++) free(folded->frames[i]);
    if (folded) free(folded->frames);
    free(folded);
    free(sites);
    return result;
}
