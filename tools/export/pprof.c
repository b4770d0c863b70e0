/* pprof.c — see pprof.h. */
#include "tools/export/pprof.h"
#include "pprof.pb-c.h"
#include "tools/base/text.h"
#include "tools/symbols/innermost.h"
#include "tools/views/stacks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

struct pprof_text {
    int64_t id;
    UT_hash_handle hh;
    char text[];
};

/* ---- writing and compressing bytes */

static void compress_bytes(struct pprof *pprof, const uint8_t *bytes, size_t length, int flush) {
    uint8_t out[1 << 15];
    pprof->stream.next_in = (uint8_t *)bytes;
    pprof->stream.avail_in = (uInt)length;
    do {
        pprof->stream.next_out = out;
        pprof->stream.avail_out = sizeof out;
        deflate(&pprof->stream, flush);
        fwrite(out, 1, sizeof out - pprof->stream.avail_out, pprof->to);
    } while (pprof->stream.avail_out == 0);
}

static void profile_put(struct pprof *pprof, const Pprof__Profile *profile) {
    size_t size = pprof__profile__get_packed_size(profile);
    if (size > pprof->packed_capacity) {
        free(pprof->packed);
        pprof->packed_capacity = 2 * size;
        pprof->packed = malloc(pprof->packed_capacity);
        if (!pprof->packed) pprof->packed_capacity = 0;
    }
    pprof->failed |= !pprof->packed;
    if (pprof->packed) compress_bytes(pprof, pprof->packed, pprof__profile__pack(profile, pprof->packed), Z_NO_FLUSH);
}

/* ---- strings and functions; each is written when it is needed for the first time */

/* Sets *id to the number of the text. A new text gets the number *count, which then grows by 1. Returns whether the
 * text is new. */
static bool text_number(struct pprof *pprof, struct pprof_text **table, int64_t *count, const char *text, int64_t *id) {
    struct pprof_text *known;
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

/* Returns the number of a string. Writes the string if it is new. The string is made valid UTF-8, because readers
 * require that. */
static int64_t pprof_string(struct pprof *pprof, const char *text) {
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

/* Returns the number of a function. Writes the function if it is new. `native`: the name is also written as the system
 * name. Python functions get no system name, because pprof treats the name of a function with a system name as C++. For
 * example, pprof would shorten "py:<module>" to "py:". */
static uint64_t pprof_function(struct pprof *pprof, const char *name, const char *file, bool native) {
    char key[2 * sizeof(struct text_line)];
    int64_t id;
    snprintf(key, sizeof key, "%s\x1f%s", name, file ? file : "");
    if (text_number(pprof, &pprof->functions, &pprof->function_count, key, &id)) {
        Pprof__Profile profile = PPROF__PROFILE__INIT;
        Pprof__Function one = PPROF__FUNCTION__INIT, *all[] = {&one};
        one.id = (uint64_t)id + 1;
        one.name = pprof_string(pprof, name);
        if (native) one.system_name = one.name;
        one.filename = pprof_string(pprof, file);
        profile.n_function = 1;
        profile.function = all;
        profile_put(pprof, &profile);
    }
    return (uint64_t)id + 1;
}

/* ---- writing mappings and locations */

static void put_mapping(struct pprof *pprof, const struct pprof_side *side, size_t index) {
    const struct image *image = side->image;
    const struct snap_module *module = &image->modules[index];
    Pprof__Profile profile = PPROF__PROFILE__INIT;
    Pprof__Mapping one = PPROF__MAPPING__INIT, *all[] = {&one};
    char hex[2 * sizeof module->build_id + 1] = "";
    for (size_t i = 0; i < module->build_id_length && i < sizeof module->build_id; i++)
        snprintf(hex + 2 * i, 3, "%02x", module->build_id[i]);
    one.id = side->first_mapping + index;
    one.memory_start = module->start;
    one.memory_limit = module->end;
    one.filename = pprof_string(pprof, image_string(image, module->path));
    one.build_id = pprof_string(pprof, hex);
    one.has_functions = one.has_filenames = one.has_line_numbers = one.has_inline_frames = true;
    profile.n_mapping = 1;
    profile.mapping = all;
    profile_put(pprof, &profile);
}

/* Writes the mapping of the program first, because pprof names the profile after the first mapping. */
static void put_mappings(struct pprof *pprof, const struct pprof_side *side) {
    const struct image *image = side->image;
    const char *exe = image_fact(image, SNAP_FACT_EXE);
    size_t program = 0;
    while (program < image->module_count && strcmp(image_string(image, image->modules[program].path), exe) != 0)
        program++;
    if (program < image->module_count) put_mapping(pprof, side, program);
    for (size_t i = 0; i < image->module_count; i++)
        if (i != program) put_mapping(pprof, side, i);
}

static uint64_t symbol_function(struct pprof *pprof, const struct named_frame *frame, const struct symbol *symbol) {
    char name[sizeof(struct text_line)], nameless[SYMBOL_NAMELESS];
    snprintf(name, sizeof name, "%s%s", frame->python ? "py:" : "",
             symbol->function ? symbol->function : symbol_nameless(frame, nameless));
    return pprof_function(pprof, name, symbol->file, !frame->python);
}

static void put_location(struct pprof *pprof, Pprof__Location *location) {
    Pprof__Profile profile = PPROF__PROFILE__INIT;
    profile.n_location = 1;
    profile.location = &location;
    profile_put(pprof, &profile);
}

static void locate_frame(struct pprof *pprof, const struct pprof_side *side, uint32_t id) {
    const struct named_frame *named = symbols_frame(side->symbols, id);
    const struct snap_frame *frame = stack_frame(side->image, id);
    Pprof__Location location = PPROF__LOCATION__INIT;
    Pprof__Line lines[64], *all[64];
    location.id = side->first_location + id;
    if (frame && stack_frame_module(side->image, frame)) location.mapping_id = side->first_mapping + frame->module - 1;
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

/* Returns the location of a name that is not a frame. `module`: 1 + the id of the module that the location is in; 0:
 * none. */
static uint64_t locate_name(struct pprof *pprof, const struct pprof_side *side, const char *name, uint32_t module) {
    Pprof__Location location = PPROF__LOCATION__INIT;
    Pprof__Line line = PPROF__LINE__INIT, *all[] = {&line};
    int64_t id;
    bool is_new = text_number(pprof, &pprof->names, &pprof->name_count, name, &id);
    location.id = pprof->first_name + (uint64_t)id;
    if (!is_new) return location.id;
    if (side->image && image_module(side->image, module)) location.mapping_id = side->first_mapping + module - 1;
    line.function_id = pprof_function(pprof, name, NULL, false);
    location.n_line = 1;
    location.line = all;
    put_location(pprof, &location);
    return location.id;
}

static uint64_t location_of(struct pprof *pprof, const struct pprof_side *side, uint32_t frame) {
    if (!side->located[frame]) locate_frame(pprof, side, frame);
    side->located[frame] = 1;
    return side->first_location + frame;
}

static bool pprof_skips(const struct pprof *pprof, const struct pprof_side *side, uint32_t frame) {
    return frame >= side->image->frame_count || (pprof->python && !innermost_is_python(side->image, frame));
}

/* Writes the locations of a stack to pprof->locations, innermost first. Returns how many there are. */
static size_t locate_all(struct pprof *pprof, const struct pprof_sample *sample) {
    const struct pprof_side *side = &pprof->sides[sample->side];
    size_t count = 0, known = 0;
    const uint32_t *frames = side->image ? stack_all(side->image, sample->stack, &count) : NULL;
    if (sample->inner) pprof->locations[known++] = locate_name(pprof, side, sample->inner, 0);
    for (size_t i = 0; i < count; i++)
        if (!pprof_skips(pprof, side, frames[i])) pprof->locations[known++] = location_of(pprof, side, frames[i]);
    if (!known) pprof->locations[known++] = locate_name(pprof, side, sample->nowhere, sample->module);
    if (sample->root) pprof->locations[known++] = locate_name(pprof, side, sample->root, 0);
    return known;
}

/* ---- writing samples */

static size_t add_labels(struct pprof *pprof, const struct pprof_sample *sample, Pprof__Label *labels) {
    static const char *const keys[PPROF_LABELS] = {"model", "node", "run", "pprof::base"};
    size_t count = 0;
    for (int i = 0; i < PPROF_LABELS; i++) {
        if (!sample->labels[i]) continue;
        pprof__label__init(&labels[count]);
        labels[count].key = pprof_string(pprof, keys[i]);
        labels[count++].str = pprof_string(pprof, sample->labels[i]);
    }
    return count;
}

void pprof_put(struct pprof *pprof, const struct pprof_sample *sample) {
    Pprof__Profile profile = PPROF__PROFILE__INIT;
    Pprof__Sample one = PPROF__SAMPLE__INIT, *all[] = {&one};
    Pprof__Label labels[PPROF_LABELS], *label_list[PPROF_LABELS];
    for (int i = 0; i < PPROF_LABELS; i++) label_list[i] = &labels[i];
    one.n_location_id = locate_all(pprof, sample);
    one.location_id = pprof->locations;
    one.n_value = (size_t)pprof->value_count;
    one.value = (int64_t *)sample->values;
    one.n_label = add_labels(pprof, sample, labels);
    one.label = label_list;
    profile.n_sample = 1;
    profile.sample = all;
    profile_put(pprof, &profile);
}

/* ---- the head and the end of a profile */

static void put_head(struct pprof *pprof, const struct pprof_head *head) {
    const struct snap_header *header = head->header;
    Pprof__Profile profile = PPROF__PROFILE__INIT;
    Pprof__ValueType types[PPROF_VALUES], *all[PPROF_VALUES];
    pprof_string(pprof, "");
    for (int i = 0; i < head->type_count; i++) {
        all[i] = &types[i];
        pprof__value_type__init(all[i]);
        types[i].type = pprof_string(pprof, head->types[i].name);
        types[i].unit = pprof_string(pprof, head->types[i].unit);
    }
    profile.n_sample_type = (size_t)head->type_count;
    profile.sample_type = all;
    profile.default_sample_type = types[head->chosen].type;
    profile.period_type = &types[head->type_count - 1];
    profile.period = header->sample_bytes ? (int64_t)header->sample_bytes : 1;
    profile.time_nanos = (int64_t)header->start_wall_ns;
    profile.duration_nanos = head->now > header->start_ns ? (int64_t)(head->now - header->start_ns) : 0;
    profile_put(pprof, &profile);
}

static void put_comment(struct pprof *pprof, const char *words) {
    Pprof__Profile profile = PPROF__PROFILE__INIT;
    int64_t comment = pprof_string(pprof, words);
    profile.n_comment = 1;
    profile.comment = &comment;
    profile_put(pprof, &profile);
}

static int begin_sides(struct pprof *pprof, const struct pprof_head *head) {
    uint64_t location = 1, mapping = 1;
    for (int i = 0; i < PPROF_SIDES; i++) {
        struct pprof_side *side = &pprof->sides[i];
        *side = (struct pprof_side){.image = head->images[i],
                                    .symbols = head->symbols[i],
                                    .first_location = location,
                                    .first_mapping = mapping};
        if (!side->image) continue;
        location += side->image->frame_count;
        mapping += side->image->module_count;
        side->located = calloc(side->image->frame_count + 1, 1);
        if (!side->located) return -1;
    }
    pprof->first_name = location;
    /* space for all frames of a stack, the name of merged frames, the name `nowhere` and the name of an owner */
    pprof->locations = calloc(STACK_FRAMES_MAX + 3, sizeof *pprof->locations);
    return pprof->locations ? 0 : -1;
}

int pprof_begin(struct pprof *pprof, const struct pprof_head *head) {
    *pprof = (struct pprof){.python = head->python, .value_count = head->type_count, .to = head->to};
    /* 15 is the binary logarithm of the window's size. The added 16 makes zlib write gzip's header and trailer. */
    if (deflateInit2(&pprof->stream, Z_BEST_SPEED, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) return -1;
    if (begin_sides(pprof, head) < 0) return -1;
    put_head(pprof, head);
    if (head->comment) put_comment(pprof, head->comment);
    for (int i = 0; i < PPROF_SIDES; i++)
        if (pprof->sides[i].image) put_mappings(pprof, &pprof->sides[i]);
    return pprof->failed ? -1 : 0;
}

static void pprof_forget(struct pprof_text **table) {
    struct pprof_text *one, *next;
    HASH_ITER(hh, *table, one, next) {
        HASH_DEL(*table, one);
        free(one);
    }
}

int pprof_end(struct pprof *pprof) {
    compress_bytes(pprof, NULL, 0, Z_FINISH);
    deflateEnd(&pprof->stream);
    pprof_forget(&pprof->strings);
    pprof_forget(&pprof->functions);
    pprof_forget(&pprof->names);
    for (int i = 0; i < PPROF_SIDES; i++) free(pprof->sides[i].located);
    free(pprof->locations);
    free(pprof->packed);
    return pprof->failed ? -1 : 0;
}
