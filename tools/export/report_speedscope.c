/* report_speedscope.c — a report as a file for speedscope; see export.h. The file's schema is
 * https://www.speedscope.app/file-format-schema.json. Each measure is a profile of its own. Samples are written as they
 * come, and refer to frames by number. The list of frames is written after all samples. */
#include "tools/base/list.h"
#include "tools/export/export.h"
#include "tools/export/report_profile.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

/* A text that does not come from symbols.h. It is stored once, so that equal texts are the same pointer, as they are in
 * symbols.h. */
struct scope_name {
    UT_hash_handle hh;
    char text[];
};

/* A frame of the file. */
struct scope_frame {
    UT_hash_handle hh;
    uint32_t number;
    struct scope_key {
        const char *name, *file;
        uint32_t line; /* of a Python function; 0: none */
        bool python;
    } key;
};

struct scope {
    struct profile_sink sink; /* used: number of frames */
    const struct report *report;
    struct roots roots;
    struct json json;
    struct scope_name *names;
    struct scope_frame *frames; /* in the order of their numbers */
    uint32_t *stack;
    uint64_t *weights;
    size_t stack_capacity, weight_count, weight_capacity;
};

static struct scope *scope_of(struct profile_sink *sink) { return (struct scope *)sink; }

/* ---- pushing frames */

static const char *keep_name(struct scope *scope, const char *text) {
    struct scope_name *name;
    size_t length = strlen(text);
    HASH_FIND(hh, scope->names, text, length, name);
    if (name) return name->text;
    name = malloc(sizeof *name + length + 1);
    scope->sink.failed |= !name;
    if (!name) return "";
    memcpy(name->text, text, length + 1);
    HASH_ADD(hh, scope->names, text, length, name);
    return name->text;
}

static void push_key(struct scope *scope, const struct scope_key *key) {
    struct scope_frame *frame;
    HASH_FIND(hh, scope->frames, key, sizeof *key, frame);
    if (!LIST_GROW(scope->stack, scope->sink.used, scope->stack_capacity)) scope->sink.failed = true;
    if (!frame && !scope->sink.failed && (frame = calloc(1, sizeof *frame))) {
        frame->key = *key;
        frame->number = HASH_COUNT(scope->frames);
        HASH_ADD(hh, scope->frames, key, sizeof frame->key, frame);
    }
    scope->sink.failed |= !frame;
    if (!scope->sink.failed) scope->stack[scope->sink.used++] = frame->number;
}

static void report_speedscope_push(struct profile_sink *sink, const char *name) {
    struct scope_key key;
    memset(&key, 0, sizeof key); /* clears the padding, too, because all bytes of the structure are the key */
    key.name = keep_name(scope_of(sink), name);
    push_key(scope_of(sink), &key);
}

static void push_function(struct profile_sink *sink, const struct named_frame *frame, const struct symbol *symbol) {
    char nameless[SYMBOL_NAMELESS];
    struct scope_key key;
    memset(&key, 0, sizeof key);
    key.name = symbol->function ? symbol->function : keep_name(scope_of(sink), symbol_nameless(frame, nameless));
    key.file = symbol->function ? symbol->file : frame->module;
    key.line = frame->python ? symbol->line : 0;
    key.python = frame->python;
    push_key(scope_of(sink), &key);
}

static void write_frame(struct json *json, const struct scope_key *key) {
    enum { WIDTH = sizeof(struct text_line) - 24 };
    char name[sizeof(struct text_line) + 8];
    snprintf(name, sizeof name, "%s%s", key->python ? "py:" : "", text_fit(key->name, WIDTH).s);
    json_object(json, NULL);
    json->one_line = true;
    json_string(json, "name", name);
    if (key->file) json_string(json, "file", text_fit_path(key->file, WIDTH).s);
    if (key->line) json_number(json, "line", key->line);
    json_end_object(json);
    json->one_line = false;
}

static void write_frames(struct scope *scope) {
    json_object(&scope->json, "shared");
    json_array(&scope->json, "frames");
    for (struct scope_frame *frame = scope->frames; frame; frame = frame->hh.next)
        write_frame(&scope->json, &frame->key);
    json_end_array(&scope->json);
    json_end_object(&scope->json);
}

/* ---- writing samples */

static void report_speedscope_put(struct profile_sink *sink, const uint64_t amounts[2]) {
    struct scope *scope = scope_of(sink);
    if (!LIST_GROW(scope->weights, scope->weight_count, scope->weight_capacity)) scope->sink.failed = true;
    if (scope->sink.failed) return;
    scope->weights[scope->weight_count++] = amounts[0];
    json_array(&scope->json, NULL);
    scope->json.one_line = true;
    for (size_t i = 0; i < sink->used; i++) json_number(&scope->json, NULL, scope->stack[i]);
    json_end_array(&scope->json);
    scope->json.one_line = false;
}

static void write_weights(struct scope *scope) {
    uint64_t sum = 0;
    json_array(&scope->json, "weights");
    scope->json.one_line = true;
    for (size_t i = 0; i < scope->weight_count; i++) json_number(&scope->json, NULL, scope->weights[i]);
    for (size_t i = 0; i < scope->weight_count; i++) sum += scope->weights[i];
    json_end_array(&scope->json);
    scope->json.one_line = false;
    json_number(&scope->json, "startValue", 0);
    json_number(&scope->json, "endValue", sum);
}

/* ---- writing profiles */

struct scope_profile {
    const char *name;
    enum measure measure;
    bool blocks;
};
static const struct scope_profile profiles[] = {{"live bytes", MEASURE_LIVE, false},
                                                {"bytes at the peak", MEASURE_PEAK, false},
                                                {"live blocks", MEASURE_LIVE, true},
                                                {"allocated bytes", MEASURE_ALLOCATED, false}};
enum { PROFILES = sizeof profiles / sizeof *profiles };

static bool is_chosen(const struct scope *scope, const struct scope_profile *profile) {
    return profile->measure == scope->report->measure && !profile->blocks;
}

static bool has_any(const struct report *report, const struct scope_profile *profile) {
    const struct image *image = report->image;
    for (size_t i = 0; i < image->total_count; i++)
        if (report_keeps(report, &image->totals[i]) &&
            (profile->blocks ? total_measure_blocks : total_measure)(&image->totals[i], profile->measure))
            return true;
    return false;
}

static int write_profile(struct scope *scope, const struct scope_profile *profile) {
    struct report report = *scope->report;
    struct json *json = &scope->json;
    report.measure = profile->measure;
    scope->sink.used = scope->weight_count = 0;
    json_object(json, NULL);
    json_string(json, "type", "sampled");
    json_string(json, "name", profile->name);
    json_string(json, "unit", profile->blocks ? "none" : "bytes");
    json_array(json, "samples");
    int result =
        (profile->blocks ? report_profile_blocks : report_profile)(&report, &scope->roots, &scope->sink, profile->name);
    json_end_array(json);
    write_weights(scope);
    json_end_object(json);
    return result;
}

/* Writes all profiles that are not empty. The profile that the options choose is always written, because speedscope
 * opens with it. */
static int write_profiles(struct scope *scope) {
    uint64_t count = 0, chosen = 0;
    int result = 0;
    json_array(&scope->json, "profiles");
    for (int i = 0; i < PROFILES && result == 0; i++) {
        if (is_chosen(scope, &profiles[i])) chosen = count;
        if (!is_chosen(scope, &profiles[i]) && !has_any(scope->report, &profiles[i])) continue;
        result = write_profile(scope, &profiles[i]);
        count++;
    }
    json_end_array(&scope->json);
    json_number(&scope->json, "activeProfileIndex", chosen);
    return result;
}

static int write_file(struct scope *scope) {
    struct json *json = &scope->json;
    json->out = stdout;
    json_object(json, NULL);
    json_string(json, "$schema", "https://www.speedscope.app/file-format-schema.json");
    json_string(json, "exporter", "memstow " MEMSTOW_VERSION_TEXT);
    json_string(json, "name", scope->report->image->header.name);
    int result = write_profiles(scope);
    write_frames(scope);
    json_finish(json);
    return scope->sink.failed ? -1 : result;
}

static void report_speedscope_forget(struct scope *scope) {
    struct scope_frame *frame, *next_frame;
    struct scope_name *name, *next_name;
    HASH_ITER(hh, scope->frames, frame, next_frame) {
        HASH_DEL(scope->frames, frame);
        free(frame);
    }
    HASH_ITER(hh, scope->names, name, next_name) {
        HASH_DEL(scope->names, name);
        free(name);
    }
    free(scope->stack);
    free(scope->weights);
    roots_clear(&scope->roots);
}

int report_speedscope(const struct report *report) {
    static struct scope scope;
    scope.report = report;
    scope.sink = (struct profile_sink){
        .push = report_speedscope_push, .push_function = push_function, .put = report_speedscope_put};
    int result = roots_make(&scope.roots, report);
    if (result == 0) report_tell_estimates(report);
    if (result == 0) result = write_file(&scope);
    report_speedscope_forget(&scope);
    return result;
}
