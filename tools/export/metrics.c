/* metrics.c — see metrics.h. */
#include "tools/export/metrics.h"
#include "preload/shared/utf8.h"
#include "tools/base/list.h"
#include "tools/decisions/decisions.h"
#include "tools/reader/cuda_image.h"
#include "tools/views/cuda_devices.h"
#include "tools/views/resident.h"
#include "tools/views/roster.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    LABELS = 1200,                  /* bytes of all labels of a sample */
    VALUE = 200,                    /* a label's value is cut after the character that reaches this size in bytes */
    MODEL_LABELS = 2 * (VALUE + 16) /* bytes of the labels of a model */
};

static const char OTHERS[] = "(others)"; /* the label of all models that have none of their own */

enum family {
    START,
    LIVE,
    BLOCKS,
    PEAK,
    ALLOCATED,
    RESIDENT,
    MODEL_LIVE,
    MODEL_STOWED,
    MODEL_DEVICE,
    DEVICE_LIVE,
    RUNS,
    TRIGGERS,
    TRIGGER_SECONDS,
    TRIGGER_GIVEN,
    LEAKS,
    LEAK_GROWTH,
    LOST,
    FAMILIES
};

static const struct {
    const char *name, *unit, *type, *help;
} families[FAMILIES] = {
    [START] = {"memstow_start_time_seconds", "seconds", "gauge", "When tracking of the process began, since 1970."},
    [LIVE] = {"memstow_live_bytes", "bytes", "gauge", "Memory that the program has allocated and not freed."},
    [BLOCKS] = {"memstow_live_blocks", "", "gauge", "Blocks and mappings that the program has not freed."},
    [PEAK] = {"memstow_peak_live_bytes", "bytes", "gauge", "The most host memory that was live at once."},
    [ALLOCATED] = {"memstow_allocated_bytes", "bytes", "counter", "Memory ever allocated, freed since or not."},
    [RESIDENT] = {"memstow_resident_bytes", "bytes", "gauge", "Resident memory (RSS) of the process, by use."},
    [MODEL_LIVE] = {"memstow_model_live_bytes", "bytes", "gauge", "Host memory of a model."},
    [MODEL_STOWED] = {"memstow_model_stowed_bytes", "bytes", "gauge", "Memory of a model that is stowed in files."},
    [MODEL_DEVICE] = {"memstow_model_device_bytes", "bytes", "gauge", "CUDA memory of a model."},
    [DEVICE_LIVE] = {"memstow_device_live_bytes", "bytes", "gauge", "CUDA memory that the program has allocated."},
    [RUNS] = {"memstow_runs", "", "gauge", "Ended runs that the ledger knows, by outcome."},
    [TRIGGERS] = {"memstow_triggers", "", "counter", "Triggers, which apply the policies of models."},
    [TRIGGER_SECONDS] = {"memstow_trigger_duration_seconds", "seconds", "gauge",
                         "How long the last trigger took, by its reason."},
    [TRIGGER_GIVEN] = {"memstow_trigger_given_bytes", "bytes", "gauge",
                       "Memory that the last trigger gave back, by its reason."},
    [LEAKS] = {"memstow_leaks", "", "gauge", "Causes of leaks; no sample while there is no verdict."},
    [LEAK_GROWTH] = {"memstow_leak_growth_bytes", "bytes", "gauge", "Memory that all leaks gain in one run."},
    [LOST] = {"memstow_lost_events", "", "counter", "Events that could not be counted in full."},
};

struct sample {
    enum family family;
    double value;
    char labels[LABELS];
};

/* ---- labels of samples */

/* Writes the next character of a label's value: quotes and backslashes escaped, an unprintable character as '?'.
 * Returns the number of bytes written. */
static size_t label_letter(char to[UTF8_MOST], const char **value, size_t *left) {
    size_t printable = utf8_printable(*value, *left), length = printable ? printable : 1;
    bool escaped = **value == '"' || **value == '\\';
    if (escaped) *to = '\\';
    memcpy(to + escaped, printable ? *value : "?", length);
    *value += length;
    *left -= length;
    return escaped + length;
}

/* Appends ,name="value". Long values are cut. */
static void label_add(char *labels, const char *name, const char *value) {
    size_t used = strlen(labels), left = strlen(value);
    used += (size_t)snprintf(labels + used, LABELS - used, ",%s=\"", name);
    for (size_t end = used + VALUE; left && used < end;) used += label_letter(labels + used, &value, &left);
    memcpy(labels + used, "\"", 2);
}

/* The labels that all samples of a process have. */
static void process_labels(char *labels, pid_t pid, const struct image *image) {
    snprintf(labels, LABELS, "pid=\"%d\"", pid);
    label_add(labels, "process", image->header.name);
}

/* Adds a sample with the labels of the process and up to two more labels; a label whose name is NULL is left
 * out. Returns 0, or -1: no memory. */
static int metrics_add_sample(struct metrics *metrics, enum family family, const struct image *image, double value,
                              const char *name, const char *text, const char *name2, const char *text2) {
    if (!LIST_GROW(metrics->samples, metrics->count, metrics->capacity)) return -1;
    struct sample *sample = &metrics->samples[metrics->count++];
    sample->family = family;
    sample->value = value;
    process_labels(sample->labels, metrics->pid, image);
    if (name) label_add(sample->labels, name, text);
    if (name2) label_add(sample->labels, name2, text2);
    return 0;
}

static int add_of(struct metrics *metrics, enum family family, const struct image *image, uint64_t value,
                  const char *name, const char *text) {
    return metrics_add_sample(metrics, family, image, (double)value, name, text, NULL, NULL);
}

/* ---- the samples of a process */

static int add_sum(struct metrics *metrics, const struct image *image, const struct sum *sum, const char *kind) {
    return add_of(metrics, LIVE, image, sum->live_bytes, "kind", kind) < 0 ||
                   add_of(metrics, BLOCKS, image, sum->live_blocks, "kind", kind) < 0 ||
                   add_of(metrics, ALLOCATED, image, sum->alloc_bytes, "kind", kind) < 0
               ? -1
               : 0;
}

static int add_totals(struct metrics *metrics, const struct image *image) {
    uint64_t lost = 0;
    for (size_t i = 0; i < SNAP_LOST_KINDS; i++) lost += image->header.lost[i];
    if (metrics_add_sample(metrics, START, image, (double)image->header.start_wall_ns / 1e9, NULL, NULL, NULL, NULL) <
            0 ||
        add_sum(metrics, image, &image->host, "heap") < 0 || add_sum(metrics, image, &image->mapped, "mapped") < 0 ||
        (image->cuda.used && add_sum(metrics, image, &image->cuda.device, "cuda") < 0) ||
        add_of(metrics, PEAK, image, image_peak(image), NULL, NULL) < 0)
        return -1;
    return add_of(metrics, LOST, image, lost, NULL, NULL);
}

static int add_resident(struct metrics *metrics, const struct image *image) {
    struct resident resident;
    if (resident_split(&resident, image) < 0) return -1;
    const struct {
        const char *name;
        uint64_t bytes;
    } parts[] = {{"live", resident.live},
                 {"allocator_overhead", resident.overhead},
                 {"allocator_free", resident.retained},
                 {"anonymous", resident.anonymous},
                 {"program_data", resident.program_data},
                 {"files", resident.file},
                 {"stowed", resident.stowed},
                 {"from_devices", resident.of_devices},
                 {"buffers", resident.buffers},
                 {"stacks", resident.stack},
                 {"memstow", resident.own},
                 {"rest", resident.rest}};
    int result = 0;
    for (size_t i = 0; resident.measured && result == 0 && i < sizeof parts / sizeof *parts; i++)
        result = add_of(metrics, RESIDENT, image, parts[i].bytes, "part", parts[i].name);
    resident_clear(&resident);
    return result;
}

/* The sums of all models with the same labels. */
struct model {
    const char *name, *origin;
    char labels[MODEL_LABELS]; /* both, as labels */
    uint64_t live, stowed, device;
};

struct models {
    struct model *list;
    size_t count, capacity;
};

static int models_add(struct models *models, const struct image *image, const struct roster_row *row) {
    const struct snap_owner *owner = row->owner;
    if (owner->kind != SNAP_OWNER_MODEL || (roster_is_retired(owner) && !row->live_bytes && !row->cuda_bytes)) return 0;
    char labels[LABELS] = "";
    if (!LIST_GROW(models->list, models->count, models->capacity)) return -1;
    struct model *model = &models->list[models->count++];
    *model = (struct model){.name = image_string(image, owner->name),
                            .origin = image_string(image, owner->origin),
                            .live = row->live_bytes,
                            .stowed = roster_stowed(owner, row->live_bytes, row->cuda_bytes).in_files,
                            .device = row->cuda_bytes};
    label_add(labels, "model", model->name);
    label_add(labels, "origin", model->origin);
    memcpy(model->labels, labels, strlen(labels) + 1);
    return 0;
}

static void model_join(struct model *model, const struct model *with) {
    model->live += with->live;
    model->stowed += with->stowed;
    model->device += with->device;
}

static int metrics_by_labels(const void *left, const void *right) {
    const struct model *a = left, *b = right;
    return strcmp(a->labels, b->labels);
}

/* Makes one model of all models with the same labels. */
static void models_unite(struct models *models) {
    size_t kept = 0;
    if (models->count) qsort(models->list, models->count, sizeof *models->list, metrics_by_labels);
    for (size_t i = 0; i < models->count; i++) {
        if (kept && metrics_by_labels(&models->list[kept - 1], &models->list[i]) == 0)
            model_join(&models->list[kept - 1], &models->list[i]);
        else
            models->list[kept++] = models->list[i];
    }
    models->count = kept;
}

static int metrics_by_size(const void *left, const void *right) {
    const struct model *a = left, *b = right;
    uint64_t of_a = a->live + a->device, of_b = b->live + b->device;
    if (of_a != of_b) return of_a < of_b ? 1 : -1;
    int names = strcmp(a->name, b->name);
    return names ? names : strcmp(a->origin, b->origin);
}

static bool model_is_others(const struct model *model) { return strcmp(model->name, OTHERS) == 0 && !*model->origin; }

/* Keeps the largest `most` models. All other models become one, "(others)", with their sums. If one of the kept models
 * has that name, too, the other models are added to it. */
static void models_bound(struct models *models, size_t most) {
    if (models->count) qsort(models->list, models->count, sizeof *models->list, metrics_by_size);
    if (models->count <= most) return;
    struct model others = {.name = OTHERS, .origin = ""};
    for (size_t i = most; i < models->count; i++) model_join(&others, &models->list[i]);
    models->count = most;
    for (size_t i = 0; i < most; i++) {
        if (model_is_others(&models->list[i])) {
            model_join(&models->list[i], &others);
            return;
        }
    }
    models->list[models->count++] = others;
}

static int model_add(struct metrics *metrics, const struct image *image, const struct model *model) {
    const struct {
        enum family family;
        uint64_t bytes;
    } figures[] = {{MODEL_LIVE, model->live}, {MODEL_STOWED, model->stowed}, {MODEL_DEVICE, model->device}};
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        if (figures[i].family == MODEL_DEVICE && !image->cuda.used) continue;
        if (metrics_add_sample(metrics, figures[i].family, image, (double)figures[i].bytes, "model", model->name,
                               "origin", model->origin) < 0)
            return -1;
    }
    return 0;
}

/* Adds the number of ended runs, by outcome. */
static int add_runs(struct metrics *metrics, const struct image *image) {
    uint64_t counts[ROSTER_OUTCOMES] = {0}, all = 0;
    for (size_t i = 0; i < image->owner_count; i++)
        if (roster_outcome(&image->owners[i])) counts[image->owners[i].outcome]++, all++;
    int result = 0;
    for (uint32_t k = 0; all && result == 0 && k < ROSTER_OUTCOMES; k++)
        result = add_of(metrics, RUNS, image, counts[k], "outcome", roster_outcome_word(k));
    return result;
}

/* A trigger is a moment at which memstow puts models away. These are its reasons; see docs/decisions.md. */
static const char *const reasons[] = {"run_ended", "request", "pressure", "idle", "rescue"};
enum { REASONS = sizeof reasons / sizeof *reasons };

/* Finds the last finished trigger of each reason. NULL: there is none. */
static void last_triggers(const struct decisions *decisions, const struct event *acts[REASONS]) {
    char reason[16];
    for (size_t i = 0; i < decisions->trigger_count; i++) {
        const struct trigger *trigger = &decisions->triggers[i];
        decisions_text(&decisions->events[trigger->event], "reason", reason, sizeof reason);
        for (size_t k = 0; trigger->act && k < REASONS; k++)
            if (strcmp(reason, reasons[k]) == 0) acts[k] = &decisions->events[trigger->act];
    }
}

static int trigger_add(struct metrics *metrics, const struct image *image, const struct event *act,
                       const char *reason) {
    double seconds = (double)act->numbers[NUMBER_TOOK] / 1e9;
    return metrics_add_sample(metrics, TRIGGER_SECONDS, image, seconds, "reason", reason, NULL, NULL) < 0
               ? -1
               : add_of(metrics, TRIGGER_GIVEN, image, act->numbers[NUMBER_GIVEN], "reason", reason);
}

/* Adds the figures of triggers. Triggers are numbered from 1, so the number of the last trigger is their count.
 * A trace may have no trigger. If such a trace has dropped no lines, the count is 0. If it has dropped lines, the count
 * is not known, and is left out. */
static int add_triggers(struct metrics *metrics, const struct image *image) {
    struct decisions decisions;
    const struct event *acts[REASONS] = {NULL};
    int result = decisions_load(&decisions, image);
    if (result == 0) last_triggers(&decisions, acts);
    if (result == 0 && decisions.trigger_count) {
        size_t last = decisions.triggers[decisions.trigger_count - 1].event;
        result = add_of(metrics, TRIGGERS, image, decisions.events[last].numbers[NUMBER_TRIGGER], NULL, NULL);
    } else if (result == 0 && decisions_lines_before(&decisions) == 0) {
        result = add_of(metrics, TRIGGERS, image, 0, NULL, NULL);
    }
    for (size_t k = 0; result == 0 && k < REASONS; k++)
        if (acts[k]) result = trigger_add(metrics, image, acts[k], reasons[k]);
    decisions_clear(&decisions);
    return result;
}

static int add_owners(struct metrics *metrics, const struct image *image) {
    struct roster roster;
    struct models models = {0};
    int result = roster_make(&roster, image);
    for (size_t i = 0; result == 0 && i < roster.count; i++) result = models_add(&models, image, &roster.rows[i]);
    models_unite(&models);
    models_bound(&models, metrics->models);
    for (size_t i = 0; result == 0 && i < models.count; i++) result = model_add(metrics, image, &models.list[i]);
    free(models.list);
    roster_clear(&roster);
    return result < 0 || add_runs(metrics, image) < 0 ? -1 : add_triggers(metrics, image);
}

static int add_devices(struct metrics *metrics, const struct image *image) {
    struct cuda_line line;
    char number[16];
    int result = 0;
    for (size_t i = 0; image->cuda.used && result == 0 && i < image->cuda.device_count; i++) {
        if (!cuda_line_of(image, i, &line)) continue;
        snprintf(number, sizeof number, "%" PRIu32, line.device);
        result = add_of(metrics, DEVICE_LIVE, image, line.live, "device", number);
    }
    return result;
}

int metrics_add(struct metrics *metrics, const struct image *image, pid_t pid) {
    metrics->pid = pid;
    return add_totals(metrics, image) < 0 || add_resident(metrics, image) < 0 || add_owners(metrics, image) < 0
               ? -1
               : add_devices(metrics, image);
}

/* The number of leaks includes memory that retired owners still have. The growth does not include it, because it does
 * not grow. */
int metrics_add_leaks(struct metrics *metrics, const struct image *image, const struct leaks *leaks) {
    double growth = 0;
    if (leaks_verdict(leaks) == LEAKS_CANNOT_TELL) return 0;
    for (size_t i = 0; i < leaks->count; i++) growth += leaks->list[i].judged.bytes_per_run;
    return add_of(metrics, LEAKS, image, leaks_total(leaks), NULL, NULL) < 0
               ? -1
               : metrics_add_sample(metrics, LEAK_GROWTH, image, growth, NULL, NULL, NULL, NULL);
}

/* ---- writing the text */

static void family_head(enum family family, bool open, FILE *to) {
    bool counter = strcmp(families[family].type, "counter") == 0;
    const char *name = families[family].name, *end = counter && !open ? "_total" : "";
    fprintf(to, "# HELP %s%s %s\n# TYPE %s%s %s\n", name, end, families[family].help, name, end, families[family].type);
    if (open && *families[family].unit) fprintf(to, "# UNIT %s %s\n", name, families[family].unit);
}

static void family_write(const struct metrics *metrics, enum family family, bool open, FILE *to) {
    const char *end = strcmp(families[family].type, "counter") == 0 ? "_total" : "";
    bool begun = false;
    for (size_t i = 0; i < metrics->count; i++) {
        const struct sample *sample = &metrics->samples[i];
        if (sample->family != family) continue;
        if (!begun) family_head(family, open, to);
        begun = true;
        fprintf(to, "%s%s{%s} %.17g\n", families[family].name, end, sample->labels, sample->value);
    }
}

void metrics_write(const struct metrics *metrics, enum metrics_form form, FILE *to) {
    bool open = form == METRICS_OPENMETRICS;
    for (enum family family = 0; family < FAMILIES; family++) family_write(metrics, family, open, to);
    if (open) fputs("# EOF\n", to);
}

void metrics_end(struct metrics *metrics) {
    free(metrics->samples);
    *metrics = (struct metrics){0};
}
