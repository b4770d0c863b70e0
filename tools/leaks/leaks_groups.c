/* leaks_groups.c — merges findings of sites into findings of causes; see leaks.h. Sites have one cause if the same
 * holder has their memory. If no holder is known, they have one cause if one owner allocated the memory at one line of
 * Python. */
#include "tools/symbols/innermost.h"
#include "tools/leaks/leaks.h"
#include "tools/base/text.h"
#include "tools/views/stacks.h"

#include <stdlib.h>
#include <string.h>

/* --- memory that comes with threads --- */

/* Whether the module's file name begins with `name`. A version may follow. */
static bool is_file(const char *module, const char *name) {
    return strncmp(text_base_name(module), name, strlen(name)) == 0;
}

/* Whether this function of this module belongs to the C library or OpenMP, and allocates memory that each thread has as
 * long as it lives. */
static bool is_of_threads(const char *module, const char *function) {
    static const char *const functions[] = {"allocate_dtv", "_dl_allocate_tls", "allocate_stack", "pthread_create",
                                            "__pthread_create"};
    static const char *const openmp[] = {"libgomp", "libiomp", "libomp"}; /* of GCC, Intel and LLVM */
    for (size_t i = 0; i < sizeof openmp / sizeof *openmp; i++)
        if (is_file(module, openmp[i])) return true;
    for (size_t i = 0; function && i < sizeof functions / sizeof *functions; i++)
        if (strncmp(function, functions[i], strlen(functions[i])) == 0) return true;
    return false;
}

/* Whether memory of this stack comes with threads (is_of_threads). Looks at the innermost functions of the stack. Stops
 * at the first function that is neither in the C library nor in the loader, and after six functions at the latest. */
static bool comes_with_threads(const struct leaks *self, struct symbols *symbols, uint32_t stack) {
    enum { DEPTH = 6 };
    uint32_t frames[DEPTH];
    size_t count = stack_frames(self->image, stack, frames, DEPTH);
    for (size_t i = 0; i < count; i++) {
        const struct named_frame *frame = symbols_frame(symbols, frames[i]);
        if (frame->python || !frame->module) return false;
        if (is_of_threads(frame->module, frame->symbols[0].function)) return true;
        if (!is_file(frame->module, "ld-linux") && !is_file(frame->module, "libc.so")) return false;
    }
    return false;
}

static void leave_threads_out(struct leaks *self, struct symbols *symbols) {
    size_t kept = 0;
    for (size_t i = 0; i < self->count; i++) {
        const struct leak_finding *finding = &self->list[i];
        uint32_t stack = finding->example != LEAK_NO_SITE ? self->sites->list[finding->example].stack : 0;
        if (!stack || !comes_with_threads(self, symbols, stack)) {
            self->list[kept++] = *finding;
            continue;
        }
        self->rest[LEAK_THREADS].sites += finding->stacks;
        self->rest[LEAK_THREADS].live_bytes += finding->live_bytes;
    }
    self->count = kept;
}

/* --- finding causes, and merging their findings --- */

static uint64_t bytes_hash(uint64_t seed, const void *from, size_t length) {
    const uint8_t *bytes = from;
    for (size_t i = 0; i < length; i++) seed = (seed ^ bytes[i]) * UINT64_C(0x100000001b3);
    return seed ^ seed >> 29;
}

static uint64_t hash_text(uint64_t seed, const char *text) { return bytes_hash(seed, text, strlen(text) + 1); }

static bool is_library(const char *file) {
    return strstr(file, "/site-packages/") || strstr(file, "/dist-packages/") || strstr(file, "/lib/python3");
}

static void hash_frame(const struct image *image, const struct snap_frame *frame, uint64_t *key) {
    const struct snap_code *code = stack_frame_code(image, frame);
    *key = hash_text(hash_text(*key, image_string(image, code->name)), image_string(image, code->file));
    *key = bytes_hash(*key, &frame->line, sizeof frame->line);
}

/* Hashes into *key the innermost line of Python that is not in a library, or else the innermost line of Python. False:
 * the stack has no line of Python. */
static bool hash_line(const struct image *image, uint32_t stack, uint64_t *key) {
    size_t count;
    const uint32_t *frames = stack_all(image, stack, &count);
    const struct snap_frame *first = NULL;
    for (size_t i = 0; i < count; i++) {
        const struct snap_frame *frame = stack_frame(image, frames[i]);
        if (!innermost_is_python(image, frames[i])) continue;
        if (!first) first = frame;
        if (is_library(image_string(image, stack_frame_code(image, frame)->file))) continue;
        first = frame;
        break;
    }
    if (first) hash_frame(image, first, key);
    return first != NULL;
}

static uint64_t key_of_line(const struct leaks *self, const struct leak_finding *finding) {
    const uint32_t owners[] = {finding->model, finding->node};
    uint64_t key = bytes_hash(UINT64_C(0xcbf29ce484222325), owners, sizeof owners);
    if (finding->site == LEAK_NO_SITE) return hash_text(key, "all sites");
    const struct leak_site *site = &self->sites->list[finding->site];
    key = bytes_hash(key, &site->on_cuda, sizeof site->on_cuda);
    if (self->sites->sampled || !site->stack || !hash_line(self->image, site->stack, &key))
        key = bytes_hash(key, &site->path, sizeof site->path);
    return key;
}

static uint64_t key_of_holder(const struct leak_holder *holder) {
    uint64_t key = bytes_hash(UINT64_C(0x84222325cbf29ce4), holder->held_at.at, holder->held_at.length);
    return bytes_hash(key, holder->pack.at ? holder->pack.at : "", holder->pack.length);
}

static int by_key(const void *left, const void *right) {
    const struct leak_finding *a = left, *b = right;
    if (a->key != b->key) return a->key < b->key ? -1 : 1;
    return leaks_by_growth(left, right);
}

/* The holder of a finding's memory. For the rest of an owner: the holder of its largest site whose holder is known. */
static const struct leak_holder *holder_of(const struct leaks *self, const struct leak_finding *finding) {
    const struct leak_holder *found = NULL;
    uint64_t most = 0;
    if (finding->site != LEAK_NO_SITE) return leaks_holder_of_site(self, finding->site);
    for (size_t i = 0; i < self->holder_count && self->holders[i].site != LEAK_NO_SITE; i++) {
        const struct leak_site *site = &self->sites->list[self->holders[i].site];
        if (!leaks_is_in_rest(site, finding) || site->live_bytes <= most) continue;
        most = site->live_bytes;
        found = leaks_holder_of_site(self, self->holders[i].site);
    }
    return found;
}

/* The index of the first finding behind `first` that has another key. */
static size_t end_of_key(const struct leaks *self, size_t first) {
    size_t end = first + 1;
    while (end < self->part_count && self->parts[end].key == self->parts[first].key) end++;
    return end;
}

static bool is_named(const struct leak_holder *holder) { return holder && holder->held_at.length; }

/* Gives each finding without a known holder the holder of another finding with the same key, because it is assumed that
 * one object holds everything that one line allocated. */
static void share_holders(struct leaks *self) {
    for (size_t first = 0, end; first < self->part_count; first = end) {
        const struct leak_holder *holder = NULL;
        end = end_of_key(self, first);
        for (size_t i = first; i < end; i++)
            if (!is_named(holder) && self->parts[i].holder) holder = self->parts[i].holder;
        for (size_t i = first; i < end; i++)
            if (!is_named(self->parts[i].holder)) self->parts[i].holder = holder;
    }
}

static void add_up(struct leak_finding *whole, const struct leak_finding *part) {
    whole->stacks += part->stacks;
    whole->live_bytes += part->live_bytes;
    whole->live_blocks += part->live_blocks;
    whole->judged.bytes_per_run += part->judged.bytes_per_run;
    whole->judged.blocks_per_run += part->judged.blocks_per_run;
    whole->is_retired |= part->is_retired;
    if (part->oldest == UINT32_MAX) return;
    if (whole->oldest == UINT32_MAX || part->oldest < whole->oldest) whole->oldest = part->oldest;
    if (whole->newest == UINT32_MAX || part->newest > whole->newest) whole->newest = part->newest;
}

static void make_causes(struct leaks *self) {
    self->count = 0;
    for (size_t first = 0, end; first < self->part_count; first = end) {
        end = end_of_key(self, first);
        struct leak_finding cause = self->parts[first];
        cause.first_part = first;
        cause.part_count = end - first;
        for (size_t i = first + 1; i < end; i++) add_up(&cause, &self->parts[i]);
        self->list[self->count++] = cause;
    }
}

/* --- retired owners that findings report already --- */

/* Fills of_site: by site, 1 + the index of the cause that the site is part of. */
static void mark_sites(const struct leaks *self, uint32_t *of_site) {
    for (uint32_t i = 0; i < self->count; i++) {
        const struct leak_finding *cause = &self->list[i];
        for (size_t k = cause->first_part; k < cause->first_part + cause->part_count; k++) {
            const struct leak_finding *part = &self->parts[k];
            if (part->site != LEAK_NO_SITE) of_site[part->site] = i + 1;
            for (uint32_t site = 0; part->site == LEAK_NO_SITE && site < self->sites->count; site++)
                if (leaks_is_in_rest(&self->sites->list[site], part)) of_site[site] = i + 1;
        }
    }
}

/* Whether the holder's first place, or one of its other places, is `place`. */
static bool has_place(const struct leak_holder *holder, const struct leak_holder *place) {
    struct leak_holder other;
    size_t next = 0;
    if (leaks_same_holder(holder, place)) return true;
    while (leaks_next_place(holder, &next, &other))
        if (leaks_same_holder(&other, place)) return true;
    return false;
}

static bool is_in_findings(const struct leaks *self, const struct leak_holder *place) {
    for (size_t i = 0; i < self->count; i++)
        if (has_place(self->list[i].holder, place)) return true;
    return false;
}

/* Whether findings name all places of the holder. If they name only some of them, the other places would still hold
 * memory after the user has mended the findings. */
static bool is_held_elsewhere(const struct leaks *self, const struct leak_holder *holder) {
    struct leak_holder other;
    size_t next = 0;
    if (!is_in_findings(self, holder)) return false;
    while (leaks_next_place(holder, &next, &other))
        if (!is_in_findings(self, &other)) return false;
    return true;
}

/* Returns how many bytes of a retired owner are not reported by findings. A byte is reported if it is in a finding, or
 * if findings name all places of its holder. `usual`: the holder that is assumed for sites without a known holder. */
static uint64_t retired_untold(const struct leaks *self, const struct leak_retired *retired, const uint32_t *of_site,
                               const struct leak_holder *usual) {
    bool is_usual_told = is_held_elsewhere(self, usual);
    uint64_t untold = is_usual_told ? 0 : retired->rest_bytes;
    for (uint32_t i = 0; i < self->sites->count; i++) {
        const struct leak_site *site = &self->sites->list[i];
        if (site->model != retired->name || !site->gone_bytes || of_site[i]) continue;
        const struct leak_holder *holder = leaks_holder_of_site(self, i);
        if (!is_named(holder)) continue;
        bool is_told = is_held_elsewhere(self, holder);
        if (is_told && !is_usual_told) untold -= site->gone_bytes;
        if (!is_told && is_usual_told) untold += site->gone_bytes;
    }
    return untold;
}

/* Finds the memory of a retired owner that is in no finding, and the holder of most of that memory. */
static void retired_find_rest(struct leaks *self, struct leak_retired *retired, const uint32_t *of_site) {
    uint64_t most = 0, most_held = 0;
    retired->rest_bytes = retired->live_bytes;
    retired->rest_blocks = retired->live_blocks;
    retired->rest_site = LEAK_NO_SITE;
    for (uint32_t i = 0; i < self->sites->count; i++) {
        const struct leak_site *site = &self->sites->list[i];
        if (site->model != retired->name || !site->gone_bytes) continue;
        if (of_site[i]) {
            retired->rest_bytes -= site->gone_bytes;
            retired->rest_blocks -= site->gone_blocks;
            continue;
        }
        const struct leak_holder *holder = leaks_holder_of_site(self, i);
        if (site->gone_bytes > most) most = site->gone_bytes, retired->rest_site = i;
        if (is_named(holder) && site->gone_bytes > most_held) most_held = site->gone_bytes, retired->holder = holder;
    }
}

/* Names the holders of a retired owner, and decides whether findings report the owner already (is_told). */
static void retired_tell(struct leaks *self, struct leak_retired *retired, const uint32_t *of_site) {
    const struct leak_holder *of_owner = leaks_holder_of_owner(self, retired->name);
    retired_find_rest(self, retired, of_site);
    uint64_t untold = retired_untold(self, retired, of_site, is_named(of_owner) ? of_owner : retired->holder);
    retired->is_told = untold < retired->live_bytes && !leaks_is_too_much(untold, retired->allocated_bytes);
    if (!retired->holder) retired->holder = of_owner;
    retired->other = retired->holder == of_owner || leaks_same_holder(retired->holder, of_owner) ? NULL : of_owner;
}

/* Makes retired owners that have the same holder count as one leak: the first of them counts, and is_same is set for
 * those after it. An owner that findings report (is_told) is not taken as the first, because it is never counted. */
static void count_once(struct leaks *self) {
    for (size_t i = 0; i < self->retired_leaks; i++)
        for (size_t k = 0; k < i && !self->retired[i].is_same; k++)
            self->retired[i].is_same =
                !self->retired[k].is_told && leaks_same_holder(self->retired[k].holder, self->retired[i].holder);
}

static int tell_all(struct leaks *self) {
    uint32_t *of_site = calloc(self->sites->count + 1, sizeof *of_site);
    if (!of_site) return -1;
    mark_sites(self, of_site);
    for (size_t i = 0; i < self->retired_count; i++) retired_tell(self, &self->retired[i], of_site);
    free(of_site);
    count_once(self);
    return 0;
}

int leaks_group(struct leaks *self, struct symbols *symbols) {
    if (symbols) leave_threads_out(self, symbols);
    self->parts = malloc((self->count + 1) * sizeof *self->parts);
    if (!self->parts) return -1;
    self->part_count = self->count;
    for (size_t i = 0; i < self->count; i++) {
        self->parts[i] = self->list[i];
        self->parts[i].key = key_of_line(self, &self->list[i]);
        self->parts[i].holder = holder_of(self, &self->list[i]);
    }
    if (self->part_count) qsort(self->parts, self->part_count, sizeof *self->parts, by_key);
    share_holders(self);
    for (size_t i = 0; i < self->part_count; i++)
        if (is_named(self->parts[i].holder)) self->parts[i].key = key_of_holder(self->parts[i].holder);
    if (self->part_count) qsort(self->parts, self->part_count, sizeof *self->parts, by_key);
    make_causes(self);
    if (self->count) qsort(self->list, self->count, sizeof *self->list, leaks_by_growth);
    return tell_all(self);
}
