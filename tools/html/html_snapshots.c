/* html_snapshots.c — see html_snapshots.h. */
#include "tools/html/html_snapshots.h"
#include "tools/leaks/series.h"
#include "tools/reader/cuda_image.h"
#include "tools/symbols/innermost.h"
#include "tools/views/roster.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

enum { SITES_LISTED = 500, OWNERS_LISTED = 200, READINGS_MOST = 128, NAME_MOST = 300 };

struct html_owner_number {
    UT_hash_handle hh;
    uint32_t id, number;
};

void html_snapshots_end(struct html_snapshots *self) {
    struct html_owner_number *number, *next;
    HASH_ITER(hh, self->numbers, number, next) {
        HASH_DEL(self->numbers, number);
        free(number);
    }
    for (int device = 0; device < 2; device++) {
        groups_end(&self->groups[device]);
        free(self->seen[device]);
        html_track_end(&self->sites[device]);
        html_track_end(&self->owners[device]);
    }
    self->owner_count = self->count = 0;
}

/* ---- adding a snapshot: its sites */

/* Notes the bytes of each row, and whether the image has the row. */
static int note_rows(struct html_snapshots *self, const struct image *image, int device) {
    struct groups *groups = &self->groups[device];
    uint64_t *bytes = calloc(groups->count + 1, sizeof *bytes);
    free(self->seen[device]);
    self->seen[device] = calloc(groups->count + 1, 1);
    int result = bytes && self->seen[device] ? 0 : -1;
    for (size_t i = 0; result == 0 && i < groups->count; i++) bytes[i] = groups->rows[i].side[0].live_bytes;
    for (size_t i = 0; result == 0 && i < image->total_count; i++)
        if (groups->row_of[i]) self->seen[device][groups->row_of[i] - 1] = 1;
    if (result == 0) result = html_track_add(&self->sites[device], bytes, groups->count, (uint32_t)self->count);
    free(bytes);
    return result;
}

static int add_sites(struct html_snapshots *self, const struct report *report, const struct image *image, int device) {
    struct groups *groups = &self->groups[device];
    if (!groups->sides) groups_begin(groups, BY_SITE, 1);
    for (size_t i = 0; i < groups->count; i++) groups->rows[i].side[0] = (struct row_side){0, 0};
    groups->without_runs = true;
    groups->matched = report->matched;
    groups->row_of = calloc(image->total_count + 1, sizeof *groups->row_of);
    int result = groups->row_of ? groups_add(groups, image, 0) : -1;
    if (result == 0) result = note_rows(self, image, device);
    free(groups->row_of);
    groups->row_of = NULL;
    groups->matched = NULL;
    return result;
}

static int add_device_sites(struct html_snapshots *self, const struct report *report) {
    struct image view = cuda_view(report->image);
    int result = view.totals ? add_sites(self, report, &view, 1) : -1;
    cuda_view_end(&view);
    return result;
}

/* ---- adding a snapshot: its owners */

/* The number of an owner; NULL: no memory. */
static const struct html_owner_number *number_of(struct html_snapshots *self, uint32_t id) {
    struct html_owner_number *number;
    HASH_FIND(hh, self->numbers, &id, sizeof id, number);
    if (number || !(number = malloc(sizeof *number))) return number;
    number->id = id;
    number->number = (uint32_t)self->owner_count++;
    HASH_ADD(hh, self->numbers, id, sizeof id, number);
    return number;
}

static int note_owners(struct html_snapshots *self, const struct roster *roster, int device) {
    uint64_t *bytes = calloc(self->owner_count + 1, sizeof *bytes);
    for (size_t i = 0; bytes && i < roster->count; i++) {
        const struct roster_row *row = &roster->rows[i];
        bytes[number_of(self, row->owner->id)->number] = device ? row->cuda_bytes : row->live_bytes;
    }
    int result = bytes ? html_track_add(&self->owners[device], bytes, self->owner_count, (uint32_t)self->count) : -1;
    free(bytes);
    return result;
}

static int add_owners(struct html_snapshots *self, const struct image *image) {
    struct roster roster;
    int result = roster_make(&roster, image);
    for (size_t i = 0; result == 0 && i < roster.count; i++)
        if (!number_of(self, roster.rows[i].owner->id)) result = -1;
    for (int device = 0; result == 0 && device < 2; device++) result = note_owners(self, &roster, device);
    roster_clear(&roster);
    return result;
}

int html_snapshots_add(struct html_snapshots *self, const struct report *report) {
    const struct image *image = report->image;
    if (self->count == HTML_SNAPSHOTS_MOST) return 0;
    struct html_snapshot *snapshot = &self->list[self->count];
    *snapshot = (struct html_snapshot){
        .taken_ns = image_now(image),
        .live_bytes = {image->host.live_bytes + image->mapped.live_bytes, image->cuda.device.live_bytes}};
    snprintf(snapshot->name, sizeof snapshot->name, "%.*s", NAME_MOST, report->argument);
    if (add_sites(self, report, image, 0) < 0 || add_owners(self, image) < 0) return -1;
    if (image->cuda.used && add_device_sites(self, report) < 0) return -1;
    self->count++;
    return 0;
}

/* ---- the document */

/* A site in words. */
struct site_words {
    const char *model, *node; /* NULL: none */
    const char *module;
    uint32_t stack; /* a node of the report's image; 0: none */
    bool is_gone;   /* the image does not have the stack any more */
    bool on_device;
};

/* Writes a text. A long text is cut, and then ends with "…". */
static void json_cut(struct json *json, const char *key, const char *text) {
    char cut[NAME_MOST + 1];
    bool is_long = text && strnlen(text, NAME_MOST) == NAME_MOST;
    if (is_long) snprintf(cut, sizeof cut, "%.*s\xe2\x80\xa6", NAME_MOST - 3, text);
    json_string(json, key, is_long ? cut : text);
}

/* Writes the line of code that represents a site: its function, file, line number and module. */
static void json_line(struct json *json, const struct report *report, const struct site_words *words) {
    struct innermost_line line = {NULL, NULL};
    if (!words->is_gone && words->stack) innermost_caller(&line, report->image, report->symbols, words->stack);
    const char *function = line.symbol ? line.symbol->function : NULL;
    const char *module = line.frame ? line.frame->module : words->module;
    char nameless[SYMBOL_NAMELESS];
    if (line.frame && !function) function = symbol_nameless(line.frame, nameless);
    json_cut(json, "function", function);
    json_cut(json, "file", line.symbol ? line.symbol->file : NULL);
    json_number(json, "line", line.symbol ? line.symbol->line : 0);
    json_cut(json, "module", module && *module ? module : NULL);
    json_bool(json, "python", line.frame && line.frame->python);
    json_bool(json, "gone", words->is_gone);
}

static void json_columns(struct json *json, const uint64_t *bytes, size_t count) {
    json_array(json, "bytes");
    json->one_line = true;
    for (size_t i = 0; i < count; i++) json_number(json, NULL, bytes[i]);
    json_end_array(json);
    json->one_line = false;
}

static void json_site(struct json *json, const struct report *report, const struct site_words *words,
                      const uint64_t *bytes, size_t count) {
    json_object(json, NULL);
    json_line(json, report, words);
    json_cut(json, "model", words->model);
    json_cut(json, "node", words->node);
    json_bool(json, "on_device", words->on_device);
    json_columns(json, bytes, count);
    json_end_object(json);
}

/* Writes one value of a list, for the snapshot with this index. */
typedef void put_value(struct json *json, const void *of, size_t index);

static void json_list(struct json *json, const char *key, size_t count, put_value *put, const void *of) {
    json_array(json, key);
    json->one_line = true;
    for (size_t i = 0; i < count; i++) put(json, of, i);
    json_end_array(json);
    json->one_line = false;
}

static void json_since(struct json *json, const struct image *image, uint64_t taken_ns) {
    uint64_t start = image->header.start_ns;
    json_real(json, NULL, taken_ns > start ? (double)(taken_ns - start) / 1e9 : 0);
}

/* ---- the document of several files */

struct writing {
    struct html_snapshots *self;
    const struct report *report;
    struct json *json;
    uint64_t *bytes; /* of one item in each snapshot */
};

static void put_seconds(struct json *json, const void *of, size_t index) {
    const struct writing *writing = of;
    json_since(json, writing->report->image, writing->self->list[index].taken_ns);
}

static void put_file(struct json *json, const void *of, size_t index) {
    json_string(json, NULL, ((const struct writing *)of)->self->list[index].name);
}

static void put_live(struct json *json, const void *of, size_t index) {
    json_number(json, NULL, ((const struct writing *)of)->self->list[index].live_bytes[0]);
}

static void put_on_devices(struct json *json, const void *of, size_t index) {
    json_number(json, NULL, ((const struct writing *)of)->self->list[index].live_bytes[1]);
}

static void write_row(const struct writing *writing, uint32_t index, int device) {
    const struct groups *groups = &writing->self->groups[device];
    const struct row *row = &groups->rows[index];
    char model[NAME_MOST + 1], node[NAME_MOST + 1];
    groups_owner_words(groups, row->model, true, model, sizeof model);
    groups_owner_words(groups, row->node, true, node, sizeof node);
    const struct site_words words = {.model = row->model ? model : NULL,
                                     .node = row->node ? node : NULL,
                                     .module = groups_member(groups, row),
                                     .stack = row->stack ? row->stack_node : 0,
                                     .is_gone = row->stack && !writing->self->seen[device][index],
                                     .on_device = device};
    json_site(writing->json, writing->report, &words, writing->bytes, writing->self->count);
}

/* Writes the sites that held or changed most: those of the host, or those of devices. *left_out grows by the number of
 * the other sites. */
static int write_sites(const struct writing *writing, int device, size_t *left_out) {
    struct html_track *track = &writing->self->sites[device];
    struct html_chosen chosen;
    size_t moments = writing->self->count;
    int result = html_track_choose(&chosen, &track->moved, track->count, (uint32_t)moments, SITES_LISTED);
    for (size_t i = 0; result == 0 && i < chosen.count; i++) {
        html_track_bytes(&track->moved, &chosen.list[i], writing->bytes, moments);
        write_row(writing, chosen.list[i].item, device);
    }
    *left_out += chosen.left_out + html_track_dropped(track);
    free(chosen.list);
    return result;
}

static void write_owner(const struct writing *writing, uint32_t id, int device) {
    const struct snap_owner *owner = image_owner(writing->report->image, id);
    const char *name = image_owner_name(writing->report->image, id);
    json_object(writing->json, NULL);
    json_number(writing->json, "id", id);
    json_string(writing->json, "kind", owner ? roster_kind(owner) : NULL);
    json_cut(writing->json, "name", name);
    json_cut(writing->json, "origin", owner ? image_string(writing->report->image, owner->origin) : NULL);
    json_bool(writing->json, "on_device", device);
    json_columns(writing->json, writing->bytes, writing->self->count);
    json_end_object(writing->json);
}

/* The ids of owners by their numbers. NULL: no memory. */
static uint32_t *ids_of(const struct html_snapshots *self) {
    uint32_t *ids = calloc(self->owner_count + 1, sizeof *ids);
    if (ids)
        for (const struct html_owner_number *number = self->numbers; number; number = number->hh.next)
            ids[number->number] = number->id;
    return ids;
}

static int write_owners(const struct writing *writing, int device, size_t *left_out) {
    struct html_track *track = &writing->self->owners[device];
    struct html_chosen chosen;
    uint32_t *ids = ids_of(writing->self);
    size_t moments = writing->self->count;
    int result = html_track_choose(&chosen, &track->moved, track->count, (uint32_t)moments, OWNERS_LISTED);
    if (!ids) result = -1;
    for (size_t i = 0; result == 0 && i < chosen.count; i++) {
        html_track_bytes(&track->moved, &chosen.list[i], writing->bytes, moments);
        write_owner(writing, ids[chosen.list[i].item], device);
    }
    *left_out += chosen.left_out + html_track_dropped(track);
    free(chosen.list);
    free(ids);
    return result;
}

static int write_lists(const struct writing *writing) {
    size_t sites = 0, owners = 0;
    int result = 0;
    json_array(writing->json, "owners");
    for (int device = 0; result == 0 && device < 2; device++) result = write_owners(writing, device, &owners);
    json_end_array(writing->json);
    json_number(writing->json, "owners_omitted", owners);
    json_array(writing->json, "sites");
    for (int device = 0; result == 0 && device < 2; device++) result = write_sites(writing, device, &sites);
    json_end_array(writing->json);
    json_number(writing->json, "sites_omitted", sites);
    return result;
}

int html_snapshots_write(struct html_snapshots *self, const struct report *report, struct html_out *out) {
    static struct json json;
    uint64_t bytes[HTML_SNAPSHOTS_MOST];
    const struct writing writing = {self, report, &json, bytes};
    FILE *to = html_document(out, "snapshots");
    if (!to) return -1;
    json_begin(&json, to, "memstow-snapshots");
    json_bool(&json, "series", false);
    json_bool(&json, "estimated", report->image->variances);
    json_list(&json, "files", self->count, put_file, &writing);
    json_list(&json, "seconds", self->count, put_seconds, &writing);
    json_list(&json, "live_bytes", self->count, put_live, &writing);
    json_list(&json, "device_bytes", self->count, put_on_devices, &writing);
    int result = write_lists(&writing);
    json_finish(&json);
    return fclose(to) == 0 ? result : -1;
}

/* ---- the document of a series */

struct readings {
    struct leak_sites *sites;
    const struct report *report;
};

static void put_reading_seconds(struct json *json, const void *of, size_t index) {
    const struct readings *readings = of;
    json_since(json, readings->report->image, readings->sites->points[index].taken_ns);
}

static void put_reading_live(struct json *json, const void *of, size_t index) {
    json_number(json, NULL, ((const struct readings *)of)->sites->points[index].live_bytes);
}

/* Returns the name of an owner, or NULL if there is no owner. A model's or custom owner's origin follows its name. */
static const char *reading_owner(const struct leak_sites *sites, uint32_t name, char *to, size_t size) {
    const struct leak_name *owner = name ? sites->names[name] : NULL;
    if (!owner) return NULL;
    bool told = *owner->origin && (owner->kind == SNAP_OWNER_MODEL || owner->kind == SNAP_OWNER_CUSTOM);
    snprintf(to, size, told ? "%s (%s)" : "%s", owner->name, owner->origin);
    return to;
}

static void write_reading_site(struct json *json, const struct readings *readings, uint32_t index,
                               const uint64_t *bytes) {
    const struct leak_site *site = &readings->sites->list[index];
    char model[NAME_MOST + 1], node[NAME_MOST + 1];
    const struct site_words words = {.model = reading_owner(readings->sites, site->model, model, sizeof model),
                                     .node = reading_owner(readings->sites, site->node, node, sizeof node),
                                     .module = image_module_name(readings->report->image, site->module),
                                     .stack = site->stack,
                                     .on_device = site->on_cuda};
    json_site(json, readings->report, &words, bytes, readings->sites->point_count);
}

static int write_reading_sites(struct json *json, const struct readings *readings) {
    struct leak_sites *sites = readings->sites;
    struct html_chosen chosen;
    uint64_t bytes[READINGS_MOST];
    int result = html_track_choose(&chosen, &sites->moved, sites->count, sites->point_count, SITES_LISTED);
    json_array(json, "sites");
    for (size_t i = 0; result == 0 && i < chosen.count; i++) {
        html_track_bytes(&sites->moved, &chosen.list[i], bytes, sites->point_count);
        write_reading_site(json, readings, chosen.list[i].item, bytes);
    }
    json_end_array(json);
    json_number(json, "sites_omitted", chosen.left_out);
    free(chosen.list);
    return result;
}

static int write_readings(const struct readings *readings, struct html_out *out) {
    static struct json json;
    size_t count = readings->sites->point_count;
    FILE *to = html_document(out, "snapshots");
    if (!to) return -1;
    json_begin(&json, to, "memstow-snapshots");
    json_bool(&json, "series", true);
    json_bool(&json, "estimated", readings->report->image->variances);
    json_list(&json, "seconds", count, put_reading_seconds, readings);
    json_list(&json, "live_bytes", count, put_reading_live, readings);
    int result = write_reading_sites(&json, readings);
    json_finish(&json);
    return fclose(to) == 0 ? result : -1;
}

int html_snapshots_write_series(const struct report *report, struct html_out *out) {
    static struct leak_sites sites;
    const struct readings readings = {&sites, report};
    leak_sites_begin(&sites);
    int result = leak_sites_read(&sites, report->image);
    if (result == 0) result = series_unpack(&sites, report->image);
    while (result == 0 && sites.point_count > READINGS_MOST) result = leak_sites_halve(&sites);
    if (result == 0) result = write_readings(&readings, out);
    leak_sites_end(&sites);
    return result;
}
