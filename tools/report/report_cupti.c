/* report_cupti.c — the differences between CUPTI's view of CUDA memory and the ledger, in text and JSON; see
 * report.h. */
#include "tools/reader/cuda_image.h"
#include "tools/reader/cupti_image.h"
#include "tools/report/report.h"

#include <stdlib.h>

static const char *const states[] = {
    [SNAP_CUPTI_LISTENING] = "listening", [SNAP_CUPTI_COMPARED] = "compared", [SNAP_CUPTI_NOT_FOUND] = "not found",
    [SNAP_CUPTI_TOO_OLD] = "too old",     [SNAP_CUPTI_REFUSED] = "refused",   [SNAP_CUPTI_SOURCE] = "source",
    [SNAP_CUPTI_ENDED] = "source ended"};
static const char *const differences[] = {[SNAP_CUPTI_ONLY_CUPTI] = "only_cupti",
                                          [SNAP_CUPTI_ONLY_LEDGER] = "only_ledger",
                                          [SNAP_CUPTI_SIZES] = "other_size"};

static const char *state_name(uint32_t state) {
    return state < sizeof states / sizeof *states && states[state] ? states[state] : "unknown";
}

/* --- the differences as text --- */

/* Whether CUPTI gives no source (the library that asked for the memory) for memory of this kind:
 * - Pools: CUPTI's records of pools have no source.
 * - Physical memory, its mappings, and reserved addresses: CUPTI has no records of them; it only reports the calls. */
static bool is_told(uint32_t kind) {
    return kind == SNAP_CUDA_PHYSICAL || kind == SNAP_CUDA_MAPPING || kind == SNAP_CUDA_RESERVED ||
           kind == SNAP_CUDA_POOL;
}

static void text_difference(const struct snap_cupti_block *block) {
    printf("    %-12s %-8s device %u at %#llx", text_size(block->bytes ? block->bytes : block->ledger_bytes).s,
           cuda_kind_name(block->kind), block->device, (unsigned long long)block->address);
    if (block->state == SNAP_CUPTI_ONLY_CUPTI && is_told(block->kind))
        fputs(", only in CUPTI", stdout);
    else if (block->state == SNAP_CUPTI_ONLY_CUPTI)
        printf(", only in CUPTI, from %s", *block->source ? TEXT_SAFE(block->source) : "an unknown place");
    else if (block->state == SNAP_CUPTI_ONLY_LEDGER)
        fputs(", only in the ledger", stdout);
    else
        printf(", %s in the ledger", text_size(block->ledger_bytes).s);
    putchar('\n');
}

void report_text_cupti(const struct report *report) {
    const struct cupti_image *cupti = &report->image->cupti;
    char text[CUPTI_SENTENCE];
    if (!cupti->asked) return;
    fputs("\n  CUPTI ", stdout);
    text_wrap(stdout, cupti_sentence(report->image, text), 8, 8);
    for (size_t i = 0; i < cupti->block_count && i < report->top; i++) text_difference(&cupti->blocks[i]);
    if (cupti->block_count > report->top) printf("    and %zu more\n", cupti->block_count - report->top);
}

/* --- the differences as JSON --- */

static void json_sum(struct json *json, const char *name, const struct snap_cupti_sum *sum) {
    json_object(json, name);
    json_number(json, "blocks", sum->blocks);
    json_number(json, "bytes", sum->bytes);
    json_end_object(json);
}

static void json_head(struct json *json, const struct snap_cupti *head, uint64_t began) {
    json_string(json, "state", state_name(head->state));
    json_string(json, "failed_call", *head->call ? head->call : NULL);
    json_number(json, "result", head->result);
    json_number(json, "version", head->version);
    json_string(json, "library", *head->library ? head->library : NULL);
    json_number(json, "records", head->records);
    if (head->read_ns > began)
        json_real(json, "read_seconds", (double)(head->read_ns - began) / 1e9);
    else
        json_null(json, "read_seconds");
    json_string(json, "other_client", *head->other ? head->other : NULL);
    json_bool(json, "shared", head->several);
    json_number(json, "unknown_records", head->unknown);
    json_number(json, "dropped_records", head->dropped);
    json_number(json, "unread_records", head->unread);
    json_sum(json, "same", &head->same);
    json_sum(json, "only_cupti", &head->only_cupti);
    json_sum(json, "only_ledger", &head->only_ledger);
    json_sum(json, "other_size", &head->sizes);
    json_sum(json, "other_kinds", &head->others);
    json_number(json, "calls", head->calls);
    json_number(json, "calls_refused", head->no_calls);
    json_sum(json, "addresses_same", &head->addresses_same);
    json_sum(json, "addresses_other", &head->addresses_other);
    json_object(json, "pools");
    json_number(json, "same", head->pools_same);
    json_number(json, "other", head->pools_other);
    json_number(json, "reserved_bytes", head->pool_reserved);
    json_number(json, "used_bytes", head->pool_used);
    json_number(json, "refused", head->no_pools);
    json_end_object(json);
}

static int json_sources(struct json *json, const struct cupti_image *cupti) {
    size_t count;
    struct cupti_source *sources = cupti_sources(cupti, &count);
    json_array(json, "sources");
    for (size_t i = 0; sources && i < count; i++) {
        json_object(json, NULL);
        json_string(json, "source", *sources[i].path ? sources[i].path : NULL);
        json_number(json, "blocks", sources[i].blocks);
        json_number(json, "bytes", sources[i].bytes);
        json_end_object(json);
    }
    json_end_array(json);
    free(sources);
    return sources ? 0 : -1;
}

static void json_difference(struct json *json, const struct snap_cupti_block *block) {
    json_object(json, NULL);
    json_string(json, "difference", differences[block->state]);
    json_string(json, "kind", cuda_kind_name(block->kind));
    json_number(json, "device", block->device);
    json_number(json, "address", block->address);
    json_number(json, "cupti_bytes", block->bytes);
    json_number(json, "ledger_bytes", block->ledger_bytes);
    json_string(json, "source", *block->source ? block->source : NULL);
    json_end_object(json);
}

int report_json_cupti(struct json *json, const struct report *report) {
    const struct cupti_image *cupti = &report->image->cupti;
    const struct snap_cupti *head = &cupti->head;
    if (!cupti->asked) {
        json_null(json, "cupti");
        return 0;
    }
    json_object(json, "cupti");
    json_head(json, head, report->image->header.start_ns);
    int result = json_sources(json, cupti);
    json_array(json, "differences");
    for (size_t i = 0; i < cupti->block_count; i++) json_difference(json, &cupti->blocks[i]);
    json_end_array(json);
    uint64_t all = head->only_cupti.blocks + head->only_ledger.blocks + head->sizes.blocks +
                   head->addresses_other.blocks + head->pools_other;
    json_number(json, "differences_omitted", all > cupti->block_count ? all - cupti->block_count : 0);
    json_end_object(json);
    return result;
}
