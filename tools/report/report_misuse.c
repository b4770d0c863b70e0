/* report_misuse.c — misused blocks in text and JSON: freed twice, with an overwritten header, or perhaps used by a CUDA
 * kernel when they were no longer on their device; see report.h. */
#include "tools/symbols/innermost.h"
#include "tools/symbols/json_stack.h"
#include "tools/reader/misuse_image.h"
#include "tools/report/report.h"

#include <inttypes.h>

static double seconds_after_start(const struct image *image, const struct snap_misuse *misuse) {
    uint64_t start = image->header.start_ns;
    return misuse->time_ns > start ? (double)(misuse->time_ns - start) / 1e9 : 0;
}

/* --- misused blocks as text --- */

static void text_site(const struct report *report, const char *what, const struct snap_misuse_site *site) {
    struct innermost stack;
    innermost_of(&stack, report->image, report->symbols, site->stack);
    const char *module = stack.count ? NULL : image_module(report->image, site->module);
    printf("    %s%s%s\n", what, stack.count ? "" : module ? ", in " : ": not known", module ? TEXT_SAFE(module) : "");
    innermost_print(&stack, stdout, 6);
}

/* Prints a block that was freed, or moved off its device, before CUDA reported an illegal address. Perhaps a kernel
 * used the block, and so caused this error. */
static void text_fault(const struct report *report, const struct snap_misuse *misuse) {
    const struct snap_misuse_site *made = &misuse->sites[SNAP_MISUSE_ALLOCATED];
    struct text_line words;
    const char *name =
        image_owner_words(report->image, image_tag(report->image, made->tag)->model, words.s, sizeof words.s);
    bool freed = misuse->kind == SNAP_MISUSE_FREED_FAULT;
    printf("  %s at %#" PRIx64 " on a device, %s: %s\n", text_byte_count(misuse->size).s, misuse->address,
           name ? TEXT_SAFE(name) : "untagged", misuse_words(misuse));
    printf("    %s %.3f s after the start\n", freed ? "freed" : "off its device since",
           seconds_after_start(report->image, misuse));
    text_site(report, "allocated", made);
    if (freed) text_site(report, "freed", &misuse->sites[SNAP_MISUSE_FREED_FIRST]);
    text_site(report, "error 700 came from", &misuse->sites[SNAP_MISUSE_NOW]);
}

static void text_misuse(const struct report *report, const struct snap_misuse *misuse) {
    if (misuse_is_fault(misuse)) {
        text_fault(report, misuse);
        return;
    }
    bool twice = misuse->kind == SNAP_MISUSE_FREED, resized = misuse->call == SNAP_MISUSE_REALLOC;
    if (misuse->size == UINT64_MAX)
        printf("  a block at %#" PRIx64 ": %s\n", misuse->address, misuse_words(misuse));
    else
        printf("  %s at %#" PRIx64 ": %s\n", text_byte_count(misuse->size).s, misuse->address, misuse_words(misuse));
    if (misuse->flags & SNAP_MISUSE_HARMLESS && misuse->call != SNAP_MISUSE_END)
        puts("    without memstow these bytes belong to the block before it: the program went on");
    bool unsure = misuse->flags & SNAP_MISUSE_UNSURE;
    text_site(report, unsure ? "allocated, perhaps (another stack may have its number by now)" : "allocated",
              &misuse->sites[SNAP_MISUSE_ALLOCATED]);
    if (twice) text_site(report, "freed first", &misuse->sites[SNAP_MISUSE_FREED_FIRST]);
    if (misuse->call != SNAP_MISUSE_END)
        text_site(report, resized ? "resized" : twice ? "freed again" : "freed", &misuse->sites[SNAP_MISUSE_NOW]);
}

void report_text_misuse(const struct report *report) {
    const struct image *image = report->image;
    if (image->misuse_count) text_heading("%sMisused blocks", text_style(TEXT_RED));
    for (size_t i = 0; i < image->misuse_count && i < report->top; i++) text_misuse(report, &image->misuses[i]);
    if (image->misuse_count > report->top)
        printf("  … and %zu more (--top=N shows N)\n", image->misuse_count - report->top);
}

/* --- misused blocks as JSON --- */

static void json_site(struct json *json, struct json_stacks *stacks, const char *key,
                      const struct snap_misuse_site *site) {
    if (!site->stack && !site->module) {
        json_null(json, key);
        return;
    }
    json_object(json, key);
    json_stack(json, stacks, site->stack, site->module);
    json_end_object(json);
}

static void json_misuse(struct json *json, const struct image *image, struct json_stacks *stacks,
                        const struct snap_misuse *misuse) {
    static const char *const calls[] = {
        [SNAP_MISUSE_FREE] = "free", [SNAP_MISUSE_REALLOC] = "realloc", [SNAP_MISUSE_END] = "none"};
    json_object(json, NULL);
    json_string(json, "kind", misuse_kind_name(misuse));
    json_string(json, "call", misuse->call && misuse->call <= SNAP_MISUSE_END ? calls[misuse->call] : "unknown");
    json_number(json, "address", misuse->address);
    if (misuse->size == UINT64_MAX)
        json_null(json, "size_bytes");
    else
        json_number(json, "size_bytes", misuse->size);
    json_real(json, "seconds_after_start", seconds_after_start(image, misuse));
    json_number(json, "slot", misuse->thread);
    json_bool(json, "harmless", misuse->flags & SNAP_MISUSE_HARMLESS);
    json_bool(json, "allocated_unsure", misuse->flags & SNAP_MISUSE_UNSURE);
    report_json_tag(json, image, misuse->sites[SNAP_MISUSE_ALLOCATED].tag);
    json_site(json, stacks, "allocated", &misuse->sites[SNAP_MISUSE_ALLOCATED]);
    json_site(json, stacks, "freed_first", &misuse->sites[SNAP_MISUSE_FREED_FIRST]);
    json_site(json, stacks, "now", &misuse->sites[SNAP_MISUSE_NOW]);
    json_end_object(json);
}

int report_json_misuse(struct json *json, const struct report *report) {
    const struct image *image = report->image;
    struct json_stacks *stacks = json_stacks_begin(image, report->symbols);
    if (!stacks) return -1;
    json_array(json, "misuses");
    for (size_t i = 0; i < image->misuse_count; i++) json_misuse(json, image, stacks, &image->misuses[i]);
    json_end_array(json);
    json_stacks_end(stacks);
    return 0;
}
