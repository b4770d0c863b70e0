/* report_pprof.c — a report as a compressed profile that pprof and its kin open; see report.h.
 * A profile is repeated fields only, and protocol buffers put one after the other are their sum: each string, function,
 * location and sample goes out as a small profile of its own, so that a million stacks need no memory. */
#include "estimate.h"
#include "pprof.pb-c.h"
#include "report.h"
#include "stacks.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <zlib.h>

enum { VALUES = 4 /* alloc_objects, alloc_space, inuse_objects, inuse_space */, LABELS = 3 };

struct text_id {
    int64_t id;
    UT_hash_handle hh;
    char text[];
};

struct pprof {
    const struct report *report;
    z_stream stream;
    struct text_id *strings, *functions;
    int64_t string_count, function_count;
    uint8_t *located; /* by frame, and then by module for sites without a stack: its location is written */
    uint8_t *packed;
    size_t packed_room;
    bool failed; /* no memory */
    uint32_t frames[STACK_FRAMES_MAX];
    uint64_t locations[STACK_FRAMES_MAX];
};

/* ---- bytes */

static void compress_bytes(struct pprof *pprof, const uint8_t *bytes, size_t length, int flush) {
    uint8_t out[1 << 15];
    pprof->stream.next_in = (uint8_t *)bytes;
    pprof->stream.avail_in = (uInt)length;
    do {
        pprof->stream.next_out = out;
        pprof->stream.avail_out = sizeof out;
        deflate(&pprof->stream, flush);
        fwrite(out, 1, sizeof out - pprof->stream.avail_out, stdout);
    } while (pprof->stream.avail_out == 0);
}

static void put(struct pprof *pprof, const Pprof__Profile *profile) {
    size_t size = pprof__profile__get_packed_size(profile);
    if (size > pprof->packed_room) {
        free(pprof->packed);
        pprof->packed_room = 2 * size;
        pprof->packed = malloc(pprof->packed_room);
        if (!pprof->packed) pprof->packed_room = 0;
    }
    pprof->failed |= !pprof->packed;
    if (pprof->packed) compress_bytes(pprof, pprof->packed, pprof__profile__pack(profile, pprof->packed), Z_NO_FLUSH);
}

/* ---- strings and functions, each written when it is first needed */

/* Whether the text is new; *id is its number, from `count` on. */
static bool number(struct pprof *pprof, struct text_id **table, int64_t *count, const char *text, int64_t *id) {
    struct text_id *known;
    size_t length = strlen(text);
    HASH_FIND(hh, *table, text, length, known);
    if (!known && (known = malloc(sizeof *known + length + 1))) {
        memcpy(known->text, text, length + 1);
        *id = known->id = (*count)++;
        HASH_ADD(hh, *table, text, length, known);
        return true;
    }
    pprof->failed |= !known;
    *id = known ? known->id : 0;
    return false;
}

/* Readers insist on UTF-8. */
static int64_t string(struct pprof *pprof, const char *text) {
    int64_t id;
    struct text_line safe = text_fit(text ? text : "", sizeof safe.s - 24);
    if (number(pprof, &pprof->strings, &pprof->string_count, safe.s, &id)) {
        Pprof__Profile profile = PPROF__PROFILE__INIT;
        char *texts[] = {safe.s};
        profile.n_string_table = 1;
        profile.string_table = texts;
        put(pprof, &profile);
    }
    return id;
}

static uint64_t function(struct pprof *pprof, const char *name, const char *file) {
    char key[2 * sizeof(struct text_line)];
    int64_t id;
    snprintf(key, sizeof key, "%s\x1f%s", name, file ? file : "");
    if (number(pprof, &pprof->functions, &pprof->function_count, key, &id)) {
        Pprof__Profile profile = PPROF__PROFILE__INIT;
        Pprof__Function one = PPROF__FUNCTION__INIT, *all[] = {&one};
        one.id = (uint64_t)id + 1;
        one.name = one.system_name = string(pprof, name);
        one.filename = string(pprof, file);
        profile.n_function = 1;
        profile.function = all;
        put(pprof, &profile);
    }
    return (uint64_t)id + 1;
}

/* ---- mappings and locations */

static void put_mapping(struct pprof *pprof, size_t index) {
    const struct snap_module *module = &pprof->report->image->modules[index];
    Pprof__Profile profile = PPROF__PROFILE__INIT;
    Pprof__Mapping one = PPROF__MAPPING__INIT, *all[] = {&one};
    char hex[2 * sizeof module->build_id + 1] = "";
    for (size_t i = 0; i < module->build_id_length && i < sizeof module->build_id; i++)
        snprintf(hex + 2 * i, 3, "%02x", module->build_id[i]);
    one.id = index + 1;
    one.memory_start = module->start;
    one.memory_limit = module->end;
    one.filename = string(pprof, image_string(pprof->report->image, module->path));
    one.build_id = string(pprof, hex);
    one.has_functions = one.has_filenames = one.has_line_numbers = one.has_inline_frames = true;
    profile.n_mapping = 1;
    profile.mapping = all;
    put(pprof, &profile);
}

/* The program itself first: pprof takes its name for the profile's. */
static void put_mappings(struct pprof *pprof) {
    const struct image *image = pprof->report->image;
    const char *exe = image_fact(image, SNAP_FACT_EXE);
    size_t program = 0;
    while (program < image->module_count && strcmp(image_string(image, image->modules[program].path), exe) != 0)
        program++;
    if (program < image->module_count) put_mapping(pprof, program);
    for (size_t i = 0; i < image->module_count; i++)
        if (i != program) put_mapping(pprof, i);
}

static uint64_t symbol_function(struct pprof *pprof, const struct named_frame *frame, const struct symbol *symbol) {
    char name[sizeof(struct text_line)];
    if (symbol->function)
        snprintf(name, sizeof name, "%s%s", frame->python ? "py:" : "", symbol->function);
    else
        snprintf(name, sizeof name, "%s+0x%llx", frame->module ? text_base_name(frame->module) : "(no module)",
                 (unsigned long long)frame->offset);
    return function(pprof, name, symbol->file);
}

static void put_location(struct pprof *pprof, Pprof__Location *location) {
    Pprof__Profile profile = PPROF__PROFILE__INIT;
    profile.n_location = 1;
    profile.location = &location;
    put(pprof, &profile);
}

static void locate_frame(struct pprof *pprof, uint32_t id) {
    const struct named_frame *named = symbols_frame(pprof->report->symbols, id);
    const struct snap_frame *frame = stack_frame(pprof->report->image, id);
    Pprof__Location location = PPROF__LOCATION__INIT;
    Pprof__Line lines[64], *all[64];
    location.id = id + UINT64_C(1);
    if (frame && frame_module(pprof->report->image, frame)) location.mapping_id = frame->module;
    if (frame && !named->python) location.address = frame->address;
    for (; location.n_line < named->count && location.n_line < 64; location.n_line++) {
        const struct symbol *symbol = &named->symbols[location.n_line];
        Pprof__Line *line = all[location.n_line] = &lines[location.n_line];
        pprof__line__init(line);
        line->function_id = symbol_function(pprof, named, symbol);
        line->line = symbol->line;
    }
    location.line = all;
    put_location(pprof, &location);
}

/* For a site of which only the module is known. */
static void locate_module(struct pprof *pprof, uint64_t id, uint32_t module) {
    const char *path = image_module(pprof->report->image, module);
    Pprof__Location location = PPROF__LOCATION__INIT;
    Pprof__Line line = PPROF__LINE__INIT, *all[] = {&line};
    location.id = id;
    location.mapping_id = path ? module : 0;
    line.function_id = function(pprof, path ? text_base_name(path) : "(call stack unknown)", NULL);
    location.n_line = 1;
    location.line = all;
    put_location(pprof, &location);
}

static size_t locate(struct pprof *pprof, const struct total *total) {
    const struct image *image = pprof->report->image;
    size_t count = stack_frames(image, total->stack, pprof->frames, STACK_FRAMES_MAX), known = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t id = pprof->frames[i];
        if (id >= image->frame_count) continue;
        if (!pprof->located[id]) locate_frame(pprof, id);
        pprof->located[id] = 1;
        pprof->locations[known++] = id + UINT64_C(1);
    }
    if (known) return known;
    uint32_t module = total->module <= image->module_count ? total->module : 0;
    uint64_t id = image->frame_count + module;
    if (!pprof->located[id]) locate_module(pprof, id + 1, module);
    pprof->located[id] = 1;
    pprof->locations[0] = id + 1;
    return 1;
}

/* ---- samples */

static size_t add_label(struct pprof *pprof, Pprof__Label *label, const char *key, uint32_t owner_id) {
    const char *name = image_owner_name(pprof->report->image, owner_id);
    if (!name) return 0;
    pprof__label__init(label);
    label->key = string(pprof, key);
    label->str = string(pprof, name);
    return 1;
}

static void put_sample(struct pprof *pprof, const struct listed_site *site) {
    struct total sum = report_site(pprof->report->image, site);
    bool peak = pprof->report->measure == MEASURE_PEAK;
    const struct snap_tag *tag = image_tag(pprof->report->image, sum.tag);
    Pprof__Profile profile = PPROF__PROFILE__INIT;
    Pprof__Sample sample = PPROF__SAMPLE__INIT, *all[] = {&sample};
    Pprof__Label labels[LABELS], *label_list[LABELS] = {&labels[0], &labels[1], &labels[2]};
    int64_t values[VALUES] = {(int64_t)sum.alloc_blocks, (int64_t)sum.alloc_bytes,
                              (int64_t)(peak ? sum.peak_blocks : total_live_blocks(&sum)),
                              (int64_t)(peak ? sum.peak_bytes : total_live_bytes(&sum))};
    sample.n_location_id = locate(pprof, &sum);
    sample.location_id = pprof->locations;
    sample.n_value = VALUES;
    sample.value = values;
    sample.n_label += add_label(pprof, &labels[sample.n_label], "model", tag->model);
    sample.n_label += add_label(pprof, &labels[sample.n_label], "node", tag->node);
    sample.n_label += add_label(pprof, &labels[sample.n_label], "run", tag->run);
    sample.label = label_list;
    profile.n_sample = 1;
    profile.sample = all;
    put(pprof, &profile);
}

static void put_head(struct pprof *pprof) {
    static const char *const names[VALUES][2] = {
        {"alloc_objects", "count"}, {"alloc_space", "bytes"}, {"inuse_objects", "count"}, {"inuse_space", "bytes"}};
    const struct snap_header *header = &pprof->report->image->header;
    uint64_t now = image_now(pprof->report->image);
    Pprof__Profile profile = PPROF__PROFILE__INIT;
    Pprof__ValueType types[VALUES], *all[VALUES];
    string(pprof, "");
    for (int i = 0; i < VALUES; i++) {
        all[i] = &types[i];
        pprof__value_type__init(all[i]);
        types[i].type = string(pprof, names[i][0]);
        types[i].unit = string(pprof, names[i][1]);
    }
    profile.n_sample_type = VALUES;
    profile.sample_type = all;
    profile.default_sample_type = types[pprof->report->measure == MEASURE_ALLOCATED ? 1 : 3].type;
    profile.period_type = &types[3];
    profile.period = header->sample_bytes ? (int64_t)header->sample_bytes : 1;
    profile.time_nanos = (int64_t)header->start_wall_ns;
    profile.duration_nanos = now > header->start_ns ? (int64_t)(now - header->start_ns) : 0;
    put(pprof, &profile);
}

static void put_comment(struct pprof *pprof) {
    const struct report *report = pprof->report;
    Pprof__Profile profile = PPROF__PROFILE__INIT;
    char words[512];
    estimate_words(report->image, report->measure, words, sizeof words);
    int64_t comment = string(pprof, words);
    profile.n_comment = 1;
    profile.comment = &comment;
    put(pprof, &profile);
}

static void forget(struct text_id **table) {
    struct text_id *one, *next;
    HASH_ITER(hh, *table, one, next) {
        HASH_DEL(*table, one);
        free(one);
    }
}

static int write_profile(struct pprof *pprof, const struct listed_site *sites, size_t count) {
    /* 15 bits of window; 16 more ask for gzip's head and tail */
    if (deflateInit2(&pprof->stream, Z_BEST_SPEED, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) return -1;
    put_head(pprof);
    if (pprof->report->image->variances) put_comment(pprof);
    put_mappings(pprof);
    for (size_t i = 0; i < count && i < pprof->report->top; i++) put_sample(pprof, &sites[i]);
    compress_bytes(pprof, NULL, 0, Z_FINISH);
    deflateEnd(&pprof->stream);
    forget(&pprof->strings);
    forget(&pprof->functions);
    return pprof->failed ? -1 : 0;
}

int report_pprof(const struct report *report) {
    size_t count;
    struct listed_site *sites = report_sites(report, true, &count);
    struct pprof *pprof = calloc(1, sizeof *pprof);
    int result = -1;
    if (pprof) {
        pprof->report = report;
        pprof->located = calloc(report->image->frame_count + report->image->module_count + 1, 1);
        report_tell_estimates(report);
        if (sites && pprof->located) result = write_profile(pprof, sites, count);
        free(pprof->located);
        free(pprof->packed);
    }
    free(pprof);
    free(sites);
    return result;
}
