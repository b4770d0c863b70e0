/* A test double of libmemstow.so. It has the registration ABI, with only tables behind it. It counts assigned memory,
 * but no allocations. Retired memory counts as freed; stowed memory stays where it is. With the double, tests of the
 * Python module and the node pack reach cases that are rare in the library, such as requests and full tables. Tests of
 * the library itself show what happens to memory. Only tests call memstow_double_*. */
#define _GNU_SOURCE
#include "../../include/memstow.h"
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { OWNERS = 4096, LINES = 1 << 21 };
struct owner {
    uint32_t kind, policy, retired, adopted_by, idle, discard;
    int32_t priority;
    uint64_t key1, key2, live, stowed, on_device, device_stowed;
    char name[96];
};
struct request {
    struct memstow_request asked;
    int64_t result;
    char text[256];
    int done;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct owner owners[OWNERS];
static uint32_t count, running;
static int triggering;
static uint32_t last_reason;
static uint64_t last_needed;
static char lines[LINES];
static uint64_t written, line_count;
static struct request requests[64];
static uint32_t asked, taken;
static _Thread_local struct memstow_scopes scopes;
static _Thread_local char why[128];

static int64_t fail(int error, const char *text) {
    snprintf(why, sizeof why, "%s", text);
    return -error;
}

static struct owner *owner_of(uint32_t id) { return id && id <= count ? &owners[id - 1] : NULL; }

uint32_t memstow_abi_version(void) { return MEMSTOW_ABI_VERSION; }

int32_t memstow_is_tracking(void) { return 1; }

const char *memstow_error(void) { return why; }

int64_t memstow_owner_open(uint32_t kind, const char *name, const char *origin, uint64_t key1, uint64_t key2) {
    (void)origin;
    if (kind < MEMSTOW_MODEL || kind > MEMSTOW_CUSTOM || (kind == MEMSTOW_RUN && key1 != UINT64_MAX))
        return fail(EINVAL, "no such kind");
    pthread_mutex_lock(&lock);
    int64_t id = 0;
    for (uint32_t i = 0; (key1 || key2) && i < count && !id; i++)
        if (!owners[i].retired && owners[i].kind == kind && owners[i].key1 == key1 && owners[i].key2 == key2)
            id = i + 1;
    if (!id && count < OWNERS) {
        struct owner *made = &owners[count++];
        made->kind = kind, made->key1 = key1, made->key2 = key2;
        snprintf(made->name, sizeof made->name, "%s", name ? name : "");
        id = count;
    }
    pthread_mutex_unlock(&lock);
    return id ? id : fail(ENOSPC, "the double has no more owners");
}

int32_t memstow_owner_retire(uint32_t id) {
    struct owner *owner = owner_of(id);
    if (!owner) return fail(ENOENT, "no such owner");
    owner->retired = 1, owner->live = owner->stowed = owner->on_device = 0;
    return 0;
}

int32_t memstow_owner_adopt(uint32_t id, uint32_t provisional) {
    struct owner *owner = owner_of(id), *from = owner_of(provisional);
    if (!owner || !from || owner == from) return fail(ENOENT, "no such owner");
    owner->live += from->live;
    from->live = 0, from->retired = 1, from->adopted_by = id;
    return 0;
}

int32_t memstow_owner_policy(uint32_t id, uint32_t policy, int32_t priority) {
    struct owner *owner = owner_of(id);
    if (!owner || policy > MEMSTOW_FREE) return fail(owner ? EINVAL : ENOENT, "no such owner or policy");
    owner->policy = policy, owner->priority = priority;
    return 0;
}

int32_t memstow_owner_idle(uint32_t id, uint32_t idle) {
    struct owner *owner = owner_of(id);
    if (!owner) return fail(ENOENT, "no such owner");
    owner->idle = idle;
    return 0;
}

int32_t memstow_owner_discard(uint32_t id, uint32_t discard) {
    struct owner *owner = owner_of(id);
    if (!owner || discard > 1) return fail(owner ? EINVAL : ENOENT, "no such owner, or neither 0 nor 1");
    owner->discard = discard;
    return 0;
}

int32_t memstow_owner_figures(uint32_t id, struct memstow_figures *out) {
    struct owner *owner = owner_of(id);
    if (!owner || out->size != sizeof *out)
        return fail(owner ? EINVAL : ENOENT, "no such owner, or figures of another size");
    *out = (struct memstow_figures){.size = sizeof *out,
                                    .kind = owner->kind,
                                    .policy = owner->policy,
                                    .priority = owner->priority,
                                    .retired = owner->retired,
                                    .adopted_by = owner->adopted_by,
                                    .live_bytes = owner->live,
                                    .mapped_bytes = owner->live,
                                    .cuda_bytes = owner->on_device,
                                    .resident_bytes = UINT64_MAX,
                                    .stowed_bytes = owner->stowed,
                                    .movable_bytes = owner->live,
                                    .cuda_bytes = owner->on_device,
                                    .device_stowed_bytes = owner->device_stowed,
                                    .on_device_bytes = {owner->on_device - owner->device_stowed}};
    return 0;
}

/* The double does not know nodes and runs. */
int64_t memstow_shares(struct memstow_share *out, uint32_t room, uint32_t size) {
    uint32_t found = 0;
    if (size != sizeof *out) return fail(EINVAL, "shares of another size");
    for (uint32_t i = 0; i < count; i++)
        if (owners[i].live || owners[i].on_device) {
            if (found < room)
                out[found] = (struct memstow_share){
                    .model = i + 1, .live_bytes = owners[i].live, .cuda_bytes = owners[i].on_device};
            found++;
        }
    return found;
}

/* The library returns the peak of a period. The double returns the bytes that are live now instead. */
int64_t memstow_peak(uint32_t anew) {
    int64_t live = 0;
    (void)anew;
    for (uint32_t i = 0; i < count; i++) live += owners[i].live;
    return live;
}

static int is_node(uint32_t id) { return owners[id - 1].kind == MEMSTOW_NODE; }

int32_t memstow_scope_enter(uint32_t id) {
    if (!owner_of(id)) return fail(ENOENT, "no such owner");
    if (scopes.count == MEMSTOW_SCOPES) return fail(ENOSPC, "too many scopes are open");
    scopes.owners[scopes.count++] = id;
    return 0;
}

int32_t memstow_scope_leave(uint32_t id) {
    if (!owner_of(id)) return fail(ENOENT, "no such owner");
    for (uint32_t i = scopes.count; i--;)
        if (is_node(scopes.owners[i]) == is_node(id)) {
            if (scopes.owners[i] != id) break;
            memmove(&scopes.owners[i], &scopes.owners[i + 1], (--scopes.count - i) * sizeof scopes.owners[0]);
            return 0;
        }
    return fail(EPERM, "the innermost scope of this kind is another owner's");
}

int32_t memstow_scope_save(struct memstow_scopes *out) {
    if (out->size != sizeof *out) return fail(EINVAL, "scopes of another size");
    *out = scopes;
    out->size = sizeof *out;
    return 0;
}

int32_t memstow_scope_swap(const struct memstow_scopes *now, struct memstow_scopes *before) {
    struct memstow_scopes next = now ? *now : (struct memstow_scopes){0};
    if (before) memstow_scope_save(before);
    scopes = next;
    return 0;
}

int32_t memstow_assign(uint32_t id, const void *start, uint64_t length) {
    struct owner *owner = owner_of(id);
    if (!owner || !start) return fail(owner ? EFAULT : ENOENT, "no such owner or memory");
    pthread_mutex_lock(&lock);
    owner->live += length;
    pthread_mutex_unlock(&lock);
    return 0;
}

int32_t memstow_release_range(const void *start, uint64_t length) {
    (void)length;
    return start ? 0 : fail(ENXIO, "no such memory");
}

int64_t memstow_run_begin(const char *name) {
    if (running) return fail(EBUSY, "another run has not ended");
    int64_t id = memstow_owner_open(MEMSTOW_RUN, name, "", UINT64_MAX, count + 1);
    running = id > 0 ? id : 0;
    return id;
}

int32_t memstow_run_end(uint32_t run, uint32_t outcome) {
    if (!run || run != running || outcome > MEMSTOW_OUT_OF_MEMORY)
        return fail(ENOENT, "that run is not the present one");
    running = 0;
    return memstow_owner_retire(run);
}

/* Tests set how much of an owner's memory is on a device, and whether the device or the disk is full. They ask whether
 * an owner was declared idle, and whether its content may be discarded. */
static int device_is_full, disk_is_full;
void memstow_double_on_device(uint32_t id, uint64_t bytes) { owner_of(id)->on_device = bytes; }
void memstow_double_device_full(int full) { device_is_full = full; }
void memstow_double_disk_full(int full) { disk_is_full = full; }
int memstow_double_idle(uint32_t id) { return owner_of(id)->idle; }
int memstow_double_discard(uint32_t id) { return owner_of(id)->discard; }

int64_t memstow_stow(uint32_t id) {
    struct owner *owner = owner_of(id);
    if (!owner) return fail(ENOENT, "no such owner");
    if (disk_is_full) return fail(ENOSPC, "the disk is full");
    int64_t moved = owner->live - owner->stowed;
    owner->stowed = owner->live;
    owner->device_stowed = owner->on_device;
    return moved;
}

int64_t memstow_restore(uint32_t id) {
    struct owner *owner = owner_of(id);
    if (!owner) return fail(ENOENT, "no such owner");
    int64_t moved = owner->stowed;
    if (owner->device_stowed && device_is_full) return fail(ENOMEM, "no device memory to bring it back to");
    owner->stowed = owner->device_stowed = 0;
    return moved;
}

int64_t memstow_release(uint32_t id) { return owner_of(id) ? 0 : fail(ENOENT, "no such owner"); }

static int is_decided(const struct owner *owner) {
    return (owner->kind == MEMSTOW_MODEL || owner->kind == MEMSTOW_CUSTOM) && !owner->retired;
}

int64_t memstow_trigger_begin(uint32_t reason, const char *text, uint64_t needed, struct memstow_decision *out,
                              uint32_t room, uint32_t size) {
    (void)text;
    last_reason = reason, last_needed = needed;
    if (reason < MEMSTOW_RUN_ENDED || reason > MEMSTOW_IDLE || size != sizeof *out)
        return fail(EINVAL, "there is no such reason");
    if (triggering) return fail(EBUSY, "another trigger has not ended");
    triggering = 1;
    uint32_t decided = 0;
    for (uint32_t i = 0; i < count; i++)
        if (is_decided(&owners[i])) {
            uint32_t policy = owners[i].policy ? owners[i].policy : MEMSTOW_KEEP;
            if (decided < room)
                out[decided] = (struct memstow_decision){
                    i + 1, policy, policy, owners[i].policy ? MEMSTOW_WHY_POLICY : MEMSTOW_WHY_NOTHING_SAID,
                    owners[i].live};
            decided++;
        }
    return decided;
}

int64_t memstow_trigger_end(void) {
    if (!triggering) return fail(ENOENT, "no trigger has begun");
    triggering = 0;
    int64_t moved = 0;
    for (uint32_t i = 0; i < count; i++)
        if (is_decided(&owners[i]) && owners[i].policy == MEMSTOW_STOW && !disk_is_full) moved += memstow_stow(i + 1);
    return moved;
}

int64_t memstow_trigger(uint32_t reason, const char *text) {
    int64_t begun = memstow_trigger_begin(reason, text, 0, NULL, 0, sizeof(struct memstow_decision));
    return begun < 0 ? begun : memstow_trigger_end();
}

/* Adds the line to the trace, with its number in front. Numbers begin at 1. */
int32_t memstow_trace(const char *json) {
    if (strlen(json) > 4000) return fail(E2BIG, "the line is too long");
    pthread_mutex_lock(&lock);
    if (written + 4096 < LINES)
        written += sprintf(lines + written, "{\"n\":%llu,%s\n", (unsigned long long)++line_count, json + 1);
    pthread_mutex_unlock(&lock);
    return 0;
}

int64_t memstow_decisions(char *to, uint64_t room, uint64_t from, uint64_t *next) {
    const char *line = lines;
    for (uint64_t number = 1; number < from && line < lines + written; number++) line = strchr(line, '\n') + 1;
    if (!from) from = 1;
    uint64_t length = 0;
    for (const char *end; line + length < lines + written; length = end + 1 - line, from++) {
        end = strchr(line + length, '\n');
        if ((uint64_t)(end + 1 - line) > room) break;
    }
    memcpy(to, line, length);
    if (next) *next = from;
    return length;
}

int32_t memstow_request_next(struct memstow_request *out, uint32_t milliseconds) {
    struct timespec millisecond = {.tv_nsec = 1000000};
    for (uint32_t waited = 0; taken == asked; waited++) {
        if (waited >= milliseconds) return 0;
        nanosleep(&millisecond, NULL);
    }
    *out = requests[taken++].asked;
    return 1;
}

int32_t memstow_request_done(uint64_t ticket, int64_t result, const char *text) {
    if (!ticket || ticket > asked) return fail(ENOENT, "no such ticket");
    requests[ticket - 1].result = result, requests[ticket - 1].done = 1;
    snprintf(requests[ticket - 1].text, sizeof requests[0].text, "%s", text ? text : "");
    return 0;
}

int32_t memstow_snapshot(const char *path) {
    FILE *file = fopen(path, "wx");
    if (!file) return fail(errno, "the file cannot be made");
    fputs("a snapshot of the test double\n", file);
    fclose(file);
    return 0;
}

/* Makes a request, as `memstow trigger PID` and others do. Returns the ticket. */
uint64_t memstow_double_ask(uint32_t kind, uint32_t owner, const char *text) {
    struct memstow_request *made = &requests[asked].asked;
    *made = (struct memstow_request){.size = sizeof *made, .kind = kind, .owner = owner, .ticket = asked + 1};
    snprintf(made->text, sizeof made->text, "%s", text ? text : "");
    return ++asked;
}

/* Makes the request that memstow itself makes when memory is short. */
uint64_t memstow_double_ask_trigger(uint32_t reason, uint64_t needed) {
    struct memstow_request *made = &requests[asked].asked;
    *made = (struct memstow_request){
        .size = sizeof *made, .kind = MEMSTOW_ASK_TRIGGER, .reason = reason, .needed = needed, .ticket = asked + 1};
    return ++asked;
}

/* The reason of the last trigger, and the bytes that it needed. */
uint32_t memstow_double_reason(void) { return last_reason; }
uint64_t memstow_double_needed(void) { return last_needed; }

/* The result of the answer; INT64_MIN: there is no answer yet. */
int64_t memstow_double_answer(uint64_t ticket) {
    return requests[ticket - 1].done ? requests[ticket - 1].result : INT64_MIN;
}
