/* report_json.c — a report as one JSON document; see report.h. Sizes are bytes; times are nanoseconds or seconds. */
#include "tools/views/at_peak.h"
#include "tools/reader/cuda_image.h"
#include "tools/views/estimate.h"
#include "tools/symbols/json_stack.h"
#include "tools/reader/last_word.h"
#include "tools/image/lost.h"
#include "tools/report/report.h"
#include "tools/views/roster.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static uint64_t report_json_most(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* The state of a process that did not record its end. Only a command that waited for the process can tell whether a raw
 * exit (by the system call itself) or a signal ended it. */
static const char *report_json_untold(uint32_t ended) {
    switch (ended) {
    case SNAP_ENDED_EXITED:
        return "raw_exit";
    case SNAP_ENDED_KILLED:
        return "killed";
    default:
        return "ended_unseen";
    }
}

static const char *state_key(const struct image *image) {
    switch (image->header.state) {
    case SNAP_RUNNING:
        return last_word_is_untold(image) ? report_json_untold(image->header.ended) : "running";
    case SNAP_EXITED:
        return "exited";
    case SNAP_ABRUPT_EXIT:
        return "abrupt_exit";
    case SNAP_EXECED:
        return "execed";
    default:
        return "unknown";
    }
}

static void json_hex(struct json *json, const char *key, const uint8_t *bytes, size_t count) {
    char text[65];
    for (size_t i = 0; i < count && i < 32; i++) snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    json_string(json, key, text);
}

static const char *stacks_key(uint32_t stacks) {
    static const char *const keys[] = {"none", "module", "full", "sample"};
    return stacks < sizeof keys / sizeof *keys ? keys[stacks] : "unknown";
}

/* How the process ended. The command that waited for the process noted it in the header. */
static void json_ended(struct json *json, const struct snap_header *header) {
    if (header->ended == SNAP_ENDED_EXITED)
        json_number(json, "exit_status", header->ended_with);
    else
        json_null(json, "exit_status");
    json_string(json, "signal",
                header->ended == SNAP_ENDED_KILLED ? last_word_signal((int)header->ended_with).s : NULL);
}

static void json_process(struct json *json, const struct report *report) {
    const struct image *image = report->image;
    const struct snap_header *header = &image->header;
    uint64_t now = image_now(image);
    json_object(json, "process");
    json_number(json, "pid", header->pid);
    json_number(json, "parent_pid", header->parent_pid);
    json_string(json, "name", header->name);
    json_string(json, "exe", image_fact(image, SNAP_FACT_EXE));
    json_string(json, "command", image_fact(image, SNAP_FACT_COMMAND));
    json_string(json, "file", *report->subject->file ? report->subject->file : NULL);
    json_string(json, "kind", header->kind == SNAP_LEDGER ? "ledger" : "snapshot");
    json_string(json, "state", state_key(image));
    json_ended(json, header);
    json_real(json, "start_time", (double)header->start_wall_ns / 1e9);
    json_real(json, "elapsed_seconds", now > header->start_ns ? (double)(now - header->start_ns) / 1e9 : 0);
    json_number(json, "exec_generation", header->exec_generation);
    json_number(json, "fork_depth", header->fork_depth);
    json_hex(json, "run_id", header->run_id, sizeof header->run_id);
    json_string(json, "stacks", stacks_key(header->stacks));
    if (header->sample_bytes)
        json_number(json, "sample_bytes", header->sample_bytes);
    else
        json_null(json, "sample_bytes");
    json_string(json, "allocator", header->allocator == SNAP_ALLOCATOR_MIMALLOC ? "mimalloc" : "keep");
    json_bool(json, "foreign_allocator", header->flags & SNAP_FOREIGN_ALLOCATOR);
    json_string(json, "source", header->flags & SNAP_FROM_CUPTI ? "cupti" : "hooks");
    json_array(json, "notes");
    for (size_t i = 0; i < image->fact_count; i++)
        if (image->facts[i].key == SNAP_FACT_NOTE) json_string(json, NULL, image_string(image, image->facts[i].string));
    json_end_array(json);
    if (header->flags & SNAP_FORK_CHILD) {
        json_object(json, "inherited");
        json_number(json, "bytes_at_fork", header->inherited_bytes);
        json_number(json, "freed_bytes", image->inherited.free_bytes);
        json_number(json, "freed_blocks", image->inherited.free_blocks);
        json_number(json, "live_bytes", image->inherited.live_bytes);
        json_end_object(json);
    } else {
        json_null(json, "inherited");
    }
    json_end_object(json);
}

struct figures {
    uint64_t live_bytes, live_blocks, peak_bytes, allocated_bytes, allocated_blocks;
};

static void json_figures(struct json *json, const struct figures *figures) {
    json_number(json, "live_bytes", figures->live_bytes);
    json_number(json, "live_blocks", figures->live_blocks);
    json_number(json, "peak_bytes", figures->peak_bytes);
    json_number(json, "allocated_bytes", figures->allocated_bytes);
    json_number(json, "allocated_blocks", figures->allocated_blocks);
}

static struct figures class_figures(const struct sum *sum, uint64_t peak) {
    return (struct figures){sum->live_bytes, sum->live_blocks, report_json_most(peak, sum->live_bytes),
                            sum->alloc_bytes, sum->alloc_blocks};
}

static void json_totals(struct json *json, const struct image *image) {
    struct figures host = class_figures(&image->host, image->header.host_peak);
    struct figures mapped = class_figures(&image->mapped, image->header.mapped_peak);
    struct figures all = {host.live_bytes + mapped.live_bytes, host.live_blocks + mapped.live_blocks, image_peak(image),
                          host.allocated_bytes + mapped.allocated_bytes,
                          host.allocated_blocks + mapped.allocated_blocks};
    json_object(json, "totals");
    json_figures(json, &all);
    json_object(json, "host");
    json_figures(json, &host);
    json_end_object(json);
    json_object(json, "mapped");
    json_figures(json, &mapped);
    json_number(json, "file_bytes", image->header.file_mapped_live);
    json_number(json, "reserved_bytes", image->header.reserved_live);
    json_end_object(json);
    struct figures cuda = class_figures(&image->cuda.device, image->cuda.head.peak);
    json_object(json, "cuda");
    json_figures(json, &cuda);
    json_number(json, "pinned_bytes", image->cuda.kinds[SNAP_CUDA_PINNED].live_bytes);
    json_end_object(json);
    json_end_object(json);
}

static void json_peak(struct json *json, const struct image *image) {
    const struct snap_header *header = &image->header;
    if (!image->has_picture) {
        json_null(json, "peak");
        return;
    }
    uint64_t blocks = 0;
    for (size_t i = 0; i < image->total_count; i++) blocks += image->totals[i].peak_blocks;
    json_object(json, "peak");
    json_number(json, "picture_bytes", header->picture_bytes);
    json_number(json, "picture_blocks", blocks);
    json_number(json, "picture_of_bytes", header->picture_peak);
    json_signed(json, "distance_bytes", at_peak_distance(image));
    json_string(json, "from", image->picture_is_live ? "live" : "picture");
    json_real(json, "seconds_after_start",
              header->picture_ns > header->start_ns ? (double)(header->picture_ns - header->start_ns) / 1e9 : 0);
    json_end_object(json);
}

/* The sum of the estimates of all call stacks, its error, and the exact sum minus this sum. */
static void json_estimate(struct json *json, const char *key, const struct image *image, enum measure measure) {
    struct estimate sum = estimate_sum(image, measure);
    json_object(json, key);
    json_number(json, "bytes", sum.bytes);
    json_number(json, "error_bytes", sum.error);
    json_signed(json, "remainder_bytes", sum.remainder);
    json_number(json, "blocks", sum.blocks);
    json_signed(json, "remainder_blocks", sum.remainder_blocks);
    json_end_object(json);
}

static void json_estimates(struct json *json, const struct image *image) {
    if (!image->variances) {
        json_null(json, "estimates");
        return;
    }
    json_object(json, "estimates");
    json_estimate(json, "live", image, MEASURE_LIVE);
    json_estimate(json, "peak", image, MEASURE_PEAK);
    json_estimate(json, "allocated", image, MEASURE_ALLOCATED);
    json_end_object(json);
}

static void json_residency(struct json *json, const struct report *report) {
    const struct resident *resident = &report->resident;
    if (!resident->measured) {
        json_null(json, "residency");
        return;
    }
    json_object(json, "residency");
    json_number(json, "rss_bytes", resident->rss);
    json_number(json, "live_bytes", resident->live);
    json_number(json, "overhead_bytes", resident->overhead);
    json_number(json, "retained_bytes", resident->retained);
    json_bool(json, "retained_is_estimate", true);
    json_number(json, "mapped_anonymous_bytes", resident->anonymous);
    json_number(json, "program_data_bytes", resident->program_data);
    json_number(json, "mapped_file_bytes", resident->file);
    json_array(json, "files");
    for (size_t i = 0; i < resident->file_count && i < report->top; i++) {
        json_object(json, NULL);
        json_string(json, "file", resident->files[i].path);
        json_number(json, "resident_bytes", resident->files[i].bytes);
        json_end_object(json);
    }
    json_end_array(json);
    json_number(json, "stowed_resident_bytes", resident->stowed);
    json_number(json, "device_stowed_bytes", resident->of_devices);
    json_number(json, "device_buffer_bytes", resident->buffers);
    json_number(json, "stack_bytes", resident->stack);
    json_number(json, "memstow_bytes", resident->own);
    json_number(json, "memstow_header_bytes", resident->headers);
    json_number(json, "rest_bytes", resident->rest);
    json_string(json, "advice", *resident->advice ? resident->advice : NULL);
    json_end_object(json);
}

struct owner_sum {
    uint64_t live_bytes, live_blocks, peak_bytes;
};

static void owner_add(const struct image *image, struct owner_sum *sums, uint32_t id, const struct total *total) {
    const struct snap_owner *owner = image_owner(image, id);
    struct owner_sum *sum = &sums[owner ? (size_t)(owner - image->owners) : image->owner_count];
    sum->live_bytes += total_live_bytes(total);
    sum->live_blocks += total_live_blocks(total);
    sum->peak_bytes += total->peak_bytes;
}

static void sum_owners(const struct image *image, struct owner_sum *sums) {
    for (size_t i = 0; i < image->total_count; i++) {
        const struct total *total = &image->totals[i];
        const struct snap_tag *tag = image_tag(image, total->tag);
        if (total->flags & TOTAL_INHERITED) continue;
        if (!tag->model && !tag->node && !tag->run) owner_add(image, sums, 0, total);
        if (tag->model) owner_add(image, sums, tag->model, total);
        if (tag->node) owner_add(image, sums, tag->node, total);
        if (tag->run) owner_add(image, sums, tag->run, total);
    }
}

static void json_owner(struct json *json, const struct image *image, const struct snap_owner *owner,
                       const struct owner_sum *sum, const struct cuda_share *cuda) {
    struct roster_stowed stowed = {0};
    if (owner) stowed = roster_stowed(owner, sum->live_bytes, cuda->device_bytes);
    json_object(json, NULL);
    json_number(json, "id", owner ? owner->id : 0);
    json_string(json, "kind", owner ? roster_kind(owner) : "custom");
    json_string(json, "name", owner ? image_string(image, owner->name) : "untagged");
    json_string(json, "origin", owner ? image_string(image, owner->origin) : NULL);
    json_string(json, "policy", owner ? roster_policy(owner) : NULL);
    json_string(json, "outcome", owner ? roster_outcome(owner) : NULL);
    json_number(json, "live_bytes", sum->live_bytes);
    json_number(json, "live_blocks", sum->live_blocks);
    json_number(json, "peak_bytes", sum->peak_bytes);
    json_null(json, "resident_bytes"); /* not known by owner, because owners share pages */
    json_number(json, "stowed_bytes", stowed.in_files + stowed.of_devices);
    json_number(json, "device_stowed_bytes", stowed.of_devices);
    json_number(json, "cuda_bytes", cuda->device_bytes);
    json_number(json, "cuda_blocks", cuda->device_blocks);
    json_number(json, "cuda_pinned_bytes", cuda->pinned_bytes);
    json_end_object(json);
}

static int json_owners(struct json *json, const struct report *report) {
    const struct image *image = report->image;
    const uint8_t *hidden = report->hidden_owners;
    size_t count = image->owner_count;
    struct owner_sum *sums = calloc(count + 1, sizeof *sums);
    struct cuda_share *cuda = cuda_shares(image);
    if (sums && cuda) {
        sum_owners(image, sums);
        json_array(json, "owners");
        for (size_t i = 0; i < count; i++)
            if (!hidden || !hidden[i]) json_owner(json, image, &image->owners[i], &sums[i], &cuda[i]);
        json_owner(json, image, NULL, &sums[count], &cuda[count]);
        json_end_array(json);
    }
    int result = sums && cuda ? 0 : -1;
    free(sums);
    free(cuda);
    return result;
}

static void json_errors(struct json *json, const struct image *image, const struct listed_site *site) {
    static const char *const keys[] = {"error_bytes", "peak_error_bytes", "allocated_error_bytes"};
    json_bool(json, "estimated", image->totals[site->first].class == SNAP_HOST);
    for (int measure = 0; measure < MEASURES; measure++)
        json_number(json, keys[measure], estimate_error(report_site_variance(image, site, (enum measure)measure)));
}

static void json_site(struct json *json, const struct report *report, struct json_stacks *stacks,
                      const struct listed_site *site) {
    const struct image *image = report->image;
    struct total sum = report_site(image, site);
    json_object(json, NULL);
    report_json_tag(json, image, sum.tag);
    json_number(json, "live_bytes", total_live_bytes(&sum));
    json_number(json, "live_blocks", total_live_blocks(&sum));
    json_number(json, "allocated_bytes", sum.alloc_bytes);
    json_number(json, "allocated_blocks", sum.alloc_blocks);
    json_number(json, "peak_bytes", sum.peak_bytes);
    json_bool(json, "exact", !(sum.flags & TOTAL_INEXACT));
    if (image->variances) json_errors(json, image, site);
    json_stack(json, stacks, sum.stack, sum.module);
    json_end_object(json);
}

/* The sum of the sites that are not listed. The list and this sum add up to the whole. */
static void json_omitted(struct json *json, const struct report *report, const struct listed_site *sites,
                         size_t count) {
    uint64_t bytes = 0, blocks = 0;
    for (size_t i = 0; i < count; i++) {
        struct total sum = report_site(report->image, &sites[i]);
        bytes += total_live_bytes(&sum);
        blocks += total_live_blocks(&sum);
    }
    json_object(json, "sites_omitted");
    json_number(json, "sites", count);
    json_number(json, "live_bytes", bytes);
    json_number(json, "live_blocks", blocks);
    json_end_object(json);
}

static int json_sites(struct json *json, const struct report *report) {
    size_t count;
    struct report listed = *report;
    listed.top = report->top_sites;
    struct listed_site *sites = report_sites(&listed, false, &count);
    struct json_stacks *stacks = json_stacks_begin(report->image, report->symbols);
    int result = sites && stacks ? 0 : -1;
    size_t shown = count < report->top_sites ? count : report->top_sites;
    json_array(json, "sites");
    for (size_t i = 0; result == 0 && i < shown; i++) json_site(json, report, stacks, &sites[i]);
    json_end_array(json);
    if (sites) json_omitted(json, report, sites + shown, count - shown);
    json_stacks_end(stacks);
    free(sites);
    return result;
}

static int json_modules(struct json *json, const struct report *report) {
    struct groups groups;
    groups_begin(&groups, BY_MODULE, 1);
    groups.matched = report->matched;
    int result = groups_add(&groups, report->image, 0);
    if (result == 0) result = groups_sort_by(&groups, report->measure, report->top);
    json_array(json, "modules");
    for (size_t i = 0; result == 0 && i < groups.count && i < report->top; i++) {
        const struct row *row = groups_row(&groups, i);
        json_object(json, NULL);
        json_string(json, "module", groups_member(&groups, row));
        json_number(json, "live_bytes", row->side[0].live_bytes);
        json_number(json, "live_blocks", row->side[0].live_blocks);
        json_number(json, "allocated_bytes", row->alloc_bytes);
        json_number(json, "peak_bytes", row->peak_bytes);
        if (groups.estimated) json_number(json, "error_bytes", estimate_error(row->variance));
        json_end_object(json);
    }
    json_end_array(json);
    groups_end(&groups);
    return result;
}

static void json_thread(struct json *json, const struct snap_thread *thread, size_t slot) {
    static const char *const states[] = {"free", "live", "ended"};
    const struct snap_counter *total = &thread->total, *before = &thread->before;
    json_object(json, NULL);
    json_number(json, "slot", slot);
    json_string(json, "name",
                slot == SNAP_THREAD_SHARED     ? "(threads without a table)"
                : slot == SNAP_THREAD_MAPPINGS ? "(mappings)"
                                               : thread->name);
    json_number(json, "tid", thread->tid);
    json_string(json, "state", thread->state < 3 ? states[thread->state] : "unknown");
    json_number(json, "uses", thread->uses);
    json_number(json, "allocated_bytes", total->alloc_bytes - before->alloc_bytes);
    json_number(json, "allocated_blocks", total->alloc_blocks - before->alloc_blocks);
    json_number(json, "freed_bytes", total->free_bytes - before->free_bytes);
    json_number(json, "freed_blocks", total->free_blocks - before->free_blocks);
    json_number(json, "earlier_allocated_bytes", before->alloc_bytes);
    json_number(json, "earlier_freed_bytes", before->free_bytes);
    json_end_object(json);
}

static void json_threads(struct json *json, const struct image *image) {
    json_array(json, "threads");
    for (size_t i = 0; i < image->thread_count; i++) {
        const struct snap_thread *thread = &image->threads[i];
        if (thread->state != SNAP_THREAD_FREE || thread->total.alloc_blocks || thread->total.free_blocks)
            json_thread(json, thread, i);
    }
    json_end_array(json);
}

static void json_listed(struct json *json, const struct report *report, const struct listed *item) {
    const struct image *image = report->image;
    const struct total *total = image_total(image, item->site);
    json_object(json, NULL);
    json_number(json, "address", item->address);
    json_number(json, "size_bytes", item->size);
    if (report->resident.measured)
        json_number(json, "resident_bytes", item->resident);
    else
        json_null(json, "resident_bytes");
    json_real(json, "age_seconds", (double)report_age_ns(image, item->birth_ns) / 1e9);
    report_json_tag(json, image, total ? total->tag : 0);
    json_string(json, "module", total ? image_module(image, total->module) : NULL);
    if (item->mapping) {
        json_string(json, "kind", report_mapping_kind(item->mapping->kind));
        json_bool(json, "shared", item->mapping->shared);
        json_number(json, "tid", item->thread);
    }
    json_end_object(json);
}

static int json_list(struct json *json, const struct report *report, const char *key, bool mappings) {
    size_t count;
    struct listed *list = report_listed(report, mappings ? LISTED_MAPPINGS : LISTED_BLOCKS, &count);
    if (!list) return -1;
    json_array(json, key);
    for (size_t i = 0; i < count && i < report->top; i++) json_listed(json, report, &list[i]);
    json_end_array(json);
    free(list);
    return 0;
}

static void json_lost(struct json *json, const struct image *image) {
    json_object(json, "lost");
    for (size_t i = 0; i < SNAP_LOST_KINDS; i++)
        if (lost_kind(i)) json_number(json, lost_kind(i)->key, image->header.lost[i]);
    json_number(json, "inexact_sites", image->inexact);
    json_array(json, "reasons");
    for (size_t i = 0; i < SNAP_LOST_KINDS; i++)
        if (image->header.lost[i])
            json_string(json, NULL, lost_kind(i) ? lost_kind(i)->text : "losses of a newer kind");
    json_end_array(json);
    json_end_object(json);
}

int report_json_to(const struct report *report, FILE *to) {
    static struct json json;
    const struct image *image = report->image;
    json_begin(&json, to, "memstow-report");
    json_process(&json, report);
    json_totals(&json, image);
    json_peak(&json, image);
    json_estimates(&json, image);
    if (report_json_history(&json, image) < 0) return -1;
    json_residency(&json, report);
    if (json_owners(&json, report) < 0 || json_sites(&json, report) < 0 || json_modules(&json, report) < 0) return -1;
    json_threads(&json, image);
    if (json_list(&json, report, "large_blocks", false) < 0 || json_list(&json, report, "mappings", true) < 0)
        return -1;
    if (report_json_misuse(&json, report) < 0 || report_json_cuda(&json, report) < 0) return -1;
    json_lost(&json, image);
    json_finish(&json);
    return 0;
}

int report_json(const struct report *report) { return report_json_to(report, stdout); }
