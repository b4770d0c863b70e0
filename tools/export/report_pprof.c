/* report_pprof.c — a report as a compressed profile for pprof and similar programs; see export.h and report_profile.h.
 * A profile has repeated fields only, and protocol buffers that follow each other are merged. So each string, function,
 * location and sample is written as a small profile of its own, and a million stacks need no memory. */
#include "tools/export/export.h"
#include "tools/views/estimate.h"
#include "pprof.pb-c.h"
#include "tools/export/report_profile.h"
#include "tools/views/stacks.h"
#include "tools/base/text.h"

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
    struct text_id *strings, *functions, *names;
    int64_t string_count, function_count, name_count;
    struct roots roots;
    uint8_t *located; /* by frame: its location is written. Locations that are only names follow those of frames */
    uint8_t *packed;
    size_t packed_room;
    bool failed; /* no memory */
    uint32_t frames[STACK_FRAMES_MAX];
    /* the locations of one sample: a merged part, its frames or a stand-in, its owner */
    uint64_t locations[STACK_FRAMES_MAX + 3];
};

/* In place of a tag: several owners have a share. */
#define MANY_TAGS UINT32_MAX

/* A call stack and its values. */
struct profiled {
    uint32_t stack, module, tag;
    const char *inner; /* text of the innermost part, if that was merged; NULL: the stack is whole */
    int64_t values[VALUES];
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

static void profile_put(struct pprof *pprof, const Pprof__Profile *profile) {
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

/* ---- strings and functions: each is written when it is first needed */

/* Whether the text is new. *id is its number; new numbers begin at `count`. */
static bool text_number(struct pprof *pprof, struct text_id **table, int64_t *count, const char *text, int64_t *id) {
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

/* Writes a string. Readers require UTF-8. */
static int64_t string(struct pprof *pprof, const char *text) {
    int64_t id;
    struct text_line safe = text_fit(text ? text : "", sizeof safe.s - 24);
    if (text_number(pprof, &pprof->strings, &pprof->string_count, safe.s, &id)) {
        Pprof__Profile profile = PPROF__PROFILE__INIT;
        char *texts[] = {safe.s};
        profile.n_string_table = 1;
        profile.string_table = texts;
        profile_put(pprof, &profile);
    }
    return id;
}

static uint64_t function(struct pprof *pprof, const char *name, const char *file) {
    char key[2 * sizeof(struct text_line)];
    int64_t id;
    snprintf(key, sizeof key, "%s\x1f%s", name, file ? file : "");
    if (text_number(pprof, &pprof->functions, &pprof->function_count, key, &id)) {
        Pprof__Profile profile = PPROF__PROFILE__INIT;
        Pprof__Function one = PPROF__FUNCTION__INIT, *all[] = {&one};
        one.id = (uint64_t)id + 1;
        one.name = one.system_name = string(pprof, name);
        one.filename = string(pprof, file);
        profile.n_function = 1;
        profile.function = all;
        profile_put(pprof, &profile);
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
    profile_put(pprof, &profile);
}

/* Writes the program itself first: pprof names the profile after it. */
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
    char name[sizeof(struct text_line)], nameless[SYMBOL_NAMELESS];
    snprintf(name, sizeof name, "%s%s", frame->python ? "py:" : "",
             symbol->function ? symbol->function : symbol_nameless(frame, nameless));
    return function(pprof, name, symbol->file);
}

static void put_location(struct pprof *pprof, Pprof__Location *location) {
    Pprof__Profile profile = PPROF__PROFILE__INIT;
    profile.n_location = 1;
    profile.location = &location;
    profile_put(pprof, &profile);
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

/* The location of a name that is not a frame. `module`: 1 + id, for a site whose module alone is known; 0: none. */
static uint64_t locate_name(struct pprof *pprof, const char *name, uint32_t module) {
    const struct image *image = pprof->report->image;
    Pprof__Location location = PPROF__LOCATION__INIT;
    Pprof__Line line = PPROF__LINE__INIT, *all[] = {&line};
    int64_t id;
    bool is_new = text_number(pprof, &pprof->names, &pprof->name_count, name, &id);
    location.id = image->frame_count + 1 + (uint64_t)id;
    if (!is_new) return location.id;
    location.mapping_id = image_module(image, module) ? module : 0;
    line.function_id = function(pprof, name, NULL);
    location.n_line = 1;
    location.line = all;
    put_location(pprof, &location);
    return location.id;
}

static uint64_t location_of(struct pprof *pprof, uint32_t frame) {
    if (!pprof->located[frame]) locate_frame(pprof, frame);
    pprof->located[frame] = 1;
    return frame + UINT64_C(1);
}

/* The locations of a stack, innermost first. Returns their number. */
static size_t locate_all(struct pprof *pprof, const struct profiled *one) {
    const struct report *report = pprof->report;
    const char *root = one->tag == MANY_TAGS ? NULL : pprof->roots.names[roots_of(&pprof->roots, one->tag)];
    size_t count = stack_frames(report->image, one->stack, pprof->frames, STACK_FRAMES_MAX), known = 0;
    if (one->inner) pprof->locations[known++] = locate_name(pprof, one->inner, 0);
    for (size_t i = 0; i < count; i++)
        if (pprof->frames[i] < report->image->frame_count && !report_skips_frame(report, pprof->frames[i]))
            pprof->locations[known++] = location_of(pprof, pprof->frames[i]);
    if (!known) pprof->locations[known++] = locate_name(pprof, report_no_frames(report, one->module), one->module);
    if (root) pprof->locations[known++] = locate_name(pprof, root, 0);
    return known;
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

static struct profiled site_figures(const struct report *report, const struct listed_site *site) {
    struct total sum = report_site(report->image, site);
    bool peak = report->measure == MEASURE_PEAK;
    return (struct profiled){.stack = sum.stack,
                             .module = sum.module,
                             .tag = sum.tag,
                             .values = {(int64_t)sum.alloc_blocks, (int64_t)sum.alloc_bytes,
                                        (int64_t)(peak ? sum.peak_blocks : total_live_blocks(&sum)),
                                        (int64_t)(peak ? sum.peak_bytes : total_live_bytes(&sum))}};
}

static void figures_add(struct profiled *to, const struct profiled *one) {
    for (int i = 0; i < VALUES; i++) to->values[i] += one->values[i];
}

static void put_sample(struct pprof *pprof, struct profiled *one) {
    const struct snap_tag *tag = image_tag(pprof->report->image, one->tag);
    Pprof__Profile profile = PPROF__PROFILE__INIT;
    Pprof__Sample sample = PPROF__SAMPLE__INIT, *all[] = {&sample};
    Pprof__Label labels[LABELS], *label_list[LABELS] = {&labels[0], &labels[1], &labels[2]};
    sample.n_location_id = locate_all(pprof, one);
    sample.location_id = pprof->locations;
    sample.n_value = VALUES;
    sample.value = one->values;
    sample.n_label += add_label(pprof, &labels[sample.n_label], "model", tag->model);
    sample.n_label += add_label(pprof, &labels[sample.n_label], "node", tag->node);
    sample.n_label += add_label(pprof, &labels[sample.n_label], "run", tag->run);
    sample.label = label_list;
    profile.n_sample = 1;
    profile.sample = all;
    profile_put(pprof, &profile);
}

/* ---- merged samples */

/* Writes one sample for everything that --top leaves out. */
static void put_rest(struct pprof *pprof, const struct listed_site *sites, size_t count) {
    char name[64];
    struct profiled rest = {.inner = name, .tag = MANY_TAGS};
    snprintf(name, sizeof name, "(%zu more)", count);
    for (size_t i = 0; i < count; i++) {
        struct profiled one = site_figures(pprof->report, &sites[i]);
        figures_add(&rest, &one);
    }
    put_sample(pprof, &rest);
}

/* For each node: the innermost node on its path with at least --min bytes, counting all that is further in. NULL: no
 * memory. */
static uint32_t *large_nodes(const struct report *report) {
    const struct image *image = report->image;
    uint64_t *bytes = calloc(image->node_count + 1, sizeof *bytes);
    uint32_t *large = calloc(image->node_count + 1, sizeof *large);
    for (size_t i = 0; bytes && i < image->total_count; i++) {
        const struct total *total = &image->totals[i];
        if (total->stack < image->node_count && report_keeps(report, total))
            bytes[total->stack] += total_measure(total, report->measure);
    }
    for (size_t node = image->node_count; bytes && node-- > 1;) bytes[image->nodes[node].parent] += bytes[node];
    for (uint32_t node = 1; bytes && large && node < image->node_count; node++)
        large[node] = bytes[node] >= report->min ? node : large[image->nodes[node].parent];
    if (!bytes) free(large);
    free(bytes);
    return bytes ? large : NULL;
}

static int by_stack(const void *left, const void *right) {
    const struct profiled *a = left, *b = right;
    if (a->stack != b->stack) return a->stack < b->stack ? -1 : 1;
    if (a->tag != b->tag) return a->tag < b->tag ? -1 : 1;
    if (a->module != b->module) return a->module < b->module ? -1 : 1;
    return (a->inner != NULL) - (b->inner != NULL);
}

/* With --min: writes each stack down to its last large node. A stack that was cut does not get its module. */
static int put_large(struct pprof *pprof, const struct listed_site *sites, size_t count) {
    const struct image *image = pprof->report->image;
    uint32_t *large = large_nodes(pprof->report);
    struct profiled *list = calloc(count + 1, sizeof *list);
    for (size_t i = 0; large && list && i < count; i++) {
        list[i] = site_figures(pprof->report, &sites[i]);
        uint32_t stack = list[i].stack, kept = stack < image->node_count ? large[stack] : 0;
        if (!stack || kept == stack) continue;
        list[i].stack = kept;
        list[i].module = 0;
        list[i].inner = "(smaller)";
    }
    if (large && list) qsort(list, count, sizeof *list, by_stack);
    for (size_t i = 0, next; large && list && i < count; i = next) {
        for (next = i + 1; next < count && by_stack(&list[i], &list[next]) == 0; next++)
            figures_add(&list[i], &list[next]);
        put_sample(pprof, &list[i]);
    }
    int result = large && list ? 0 : -1;
    free(large);
    free(list);
    return result;
}

static int put_samples(struct pprof *pprof, const struct listed_site *sites, size_t count) {
    size_t shown = count < pprof->report->top ? count : pprof->report->top;
    if (pprof->report->min) return put_large(pprof, sites, count);
    for (size_t i = 0; i < shown; i++) {
        struct profiled one = site_figures(pprof->report, &sites[i]);
        put_sample(pprof, &one);
    }
    if (shown < count) put_rest(pprof, sites + shown, count - shown);
    return 0;
}

/* ---- */

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
    profile_put(pprof, &profile);
}

static void put_comment(struct pprof *pprof) {
    const struct report *report = pprof->report;
    Pprof__Profile profile = PPROF__PROFILE__INIT;
    char words[512];
    estimate_words(report->image, report->measure, words, sizeof words);
    int64_t comment = string(pprof, words);
    profile.n_comment = 1;
    profile.comment = &comment;
    profile_put(pprof, &profile);
}

static void forget(struct text_id **table) {
    struct text_id *one, *next;
    HASH_ITER(hh, *table, one, next) {
        HASH_DEL(*table, one);
        free(one);
    }
}

static int write_profile(struct pprof *pprof, const struct listed_site *sites, size_t count) {
    /* 15 bits of window; 16 more ask for the head and tail of gzip */
    if (deflateInit2(&pprof->stream, Z_BEST_SPEED, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) return -1;
    put_head(pprof);
    if (pprof->report->image->variances) put_comment(pprof);
    put_mappings(pprof);
    int result = put_samples(pprof, sites, count);
    compress_bytes(pprof, NULL, 0, Z_FINISH);
    deflateEnd(&pprof->stream);
    forget(&pprof->strings);
    forget(&pprof->functions);
    forget(&pprof->names);
    return pprof->failed ? -1 : result;
}

int report_pprof(const struct report *report) {
    size_t count;
    struct listed_site *sites = report_sites(report, true, &count);
    struct pprof *pprof = calloc(1, sizeof *pprof);
    int result = -1;
    if (pprof) {
        pprof->report = report;
        pprof->located = calloc(report->image->frame_count + 1, 1);
        report_tell_estimates(report);
        if (roots_make(&pprof->roots, report) == 0 && sites && pprof->located)
            result = write_profile(pprof, sites, count);
        roots_clear(&pprof->roots);
        free(pprof->located);
        free(pprof->packed);
    }
    free(pprof);
    free(sites);
    return result;
}
