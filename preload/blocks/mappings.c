/* mappings.c — see mappings.h. The queue is a lock-free stack. One thread takes the whole queue and reverses it. Only
 * the thread that holds `busy` touches the table. No thread waits for `busy`: the holder looks at the queue again after
 * it has let go of `busy`. */
#include "preload/blocks/mappings.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "preload/count/account.h"
#include "preload/ledger/ledger.h"
#include "preload/ledger/series.h"
#include "preload/base/lock.h"
#include "preload/shared/os.h"
#include "preload/count/pin.h"
#include "preload/count/site.h"
#include "preload/base/seal.h"
#include "preload/base/forked.h"

enum { EVENTS = 1 << 15, RESERVED = 64, WAITS = 10000, WAIT_NS = 100000, PIECES = 1 << 16 };

enum operation { ADD, TAKE, DROP, PUT, RESTORE, PROTECT, ADVISE, ASSIGN };

struct event {
    /* Index + 1 of the next event in the queue or the pool; 0: none. It must be the first field: see
     * mappings_queue(). */
    uint32_t next;
    uint8_t operation, kind, shared, accessible;
    uint32_t site, tid, ticket;
    int32_t advice;
    uint64_t address, length, time;
    /* For ADD: the new mapping gets the kind of the mapping at this address. 0: it gets the event's own `kind` and
     * `shared`. */
    uint64_t source;
};

static struct event events[EVENTS];
static struct pool {
    uint64_t free;       /* lower half: index + 1 of the first free event (0: none); upper half: a tag against ABA */
    uint32_t fresh, end; /* the events from index `fresh` to `end` - 1 were never used */
} common = {.end = EVENTS - RESERVED},
  /* reserved: for a process in a sandbox, where nobody can wait */
    reserved = {.fresh = EVENTS - RESERVED, .end = EVENTS};
static uint32_t queue_head; /* index + 1 of the newest queued event */
static uint32_t busy;
static uint32_t last_ticket;

static struct series records = {
    .type = SNAP_MAPPING, .record_size = sizeof(struct snap_mapping), .first_bits = 7, .limit = PIECES};

/* Everything below is touched only while `busy` is held. The arrays hold ids of records. ordered: the records in use,
 * by address. unused: free records. taken: records that mappings_take took out, each with its ticket. */
static uint32_t ordered[PIECES], ordered_count;
static uint32_t unused[PIECES], unused_count;
static struct { uint32_t id, ticket; } taken[PIECES];
static uint32_t taken_count;
static uint32_t chosen[PIECES]; /* the records in `taken` that belong to the present ticket */

/* --- the queue of events, and the pool of free events --- */

/* The link is read and written atomically: a slow thread in try_take_event may read the link of an event that another
 * thread already took. The slow thread's compare-exchange then fails. */
static uint32_t next_of(const struct event *event) { return __atomic_load_n(&event->next, __ATOMIC_RELAXED); }

static void set_next(struct event *event, uint32_t next) { __atomic_store_n(&event->next, next, __ATOMIC_RELAXED); }

static struct event *try_take_event(struct pool *pool) {
    uint64_t head = __atomic_load_n(&pool->free, __ATOMIC_ACQUIRE);
    while ((uint32_t)head) {
        struct event *event = &events[(uint32_t)head - 1];
        uint64_t rest = ((head >> 32) + 1) << 32 | next_of(event);
        if (__atomic_compare_exchange_n(&pool->free, &head, rest, true, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE))
            return event;
    }
    uint32_t fresh = __atomic_load_n(&pool->fresh, __ATOMIC_RELAXED);
    while (fresh < pool->end)
        if (__atomic_compare_exchange_n(&pool->fresh, &fresh, fresh + 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            return &events[fresh];
    return NULL;
}

/* Takes a free event from the pool. NULL: there is none. The pool becomes empty when the thread that holds the table
 * does not run. We wait for that thread, but only for a limited time. We sleep, because sched_yield is not enough on a
 * busy machine. */
static struct event *take_event(void) {
    const struct timespec pause = {.tv_nsec = WAIT_NS};
    struct event *event = try_take_event(&common);
    if (!event && seal_is_set()) event = try_take_event(&reserved);
    for (int wait = 0; !event && wait < WAITS && !seal_is_set(); wait++) {
        os_call(SYS_nanosleep, &pause, 0);
        event = try_take_event(&common);
    }
    if (!event) ledger_lost(SNAP_LOST_MAPPINGS);
    return event;
}

static void give_event_back(struct event *event) {
    struct pool *pool = event - events < EVENTS - RESERVED ? &common : &reserved;
    uint64_t head = os_load(&pool->free), mine;
    do {
        set_next(event, (uint32_t)head);
        mine = ((head >> 32) + 1) << 32 | (uint64_t)(event - events + 1);
    } while (!__atomic_compare_exchange_n(&pool->free, &head, mine, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

static void mappings_apply(const struct event *event);

static void apply_queue(void) {
    uint32_t newest = __atomic_exchange_n(&queue_head, 0, __ATOMIC_ACQUIRE), oldest = 0;
    while (newest) {
        struct event *event = &events[newest - 1];
        uint32_t next = next_of(event);
        set_next(event, oldest);
        oldest = newest;
        newest = next;
    }
    while (oldest) {
        struct event *event = &events[oldest - 1];
        oldest = next_of(event);
        mappings_apply(event);
        give_event_back(event);
    }
}

/* Takes hold of the table. False: another thread holds it, and will look at the queue again. */
static bool take_table(void) {
    uint32_t nobody = 0;
    return __atomic_compare_exchange_n(&busy, &nobody, 1, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

static void mappings_submit(struct event *event) {
    uint32_t head = __atomic_load_n(&queue_head, __ATOMIC_RELAXED);
    do set_next(event, head);
    while (!__atomic_compare_exchange_n(&queue_head, &head, (uint32_t)(event - events + 1), true, __ATOMIC_SEQ_CST,
                                        __ATOMIC_RELAXED));
    uint64_t signals = 0;
    /* While this thread has the table, other threads leave their events in the queue for it. Signals stay blocked until
     * this thread has looked at the queue again. Otherwise a signal handler could keep this thread from applying
     * these events, for example by longjmp. */
    bool blocked = lock_out_signals(&signals);
    while (__atomic_load_n(&queue_head, __ATOMIC_SEQ_CST) && take_table()) {
        apply_queue();
        __atomic_store_n(&busy, 0, __ATOMIC_SEQ_CST);
    }
    if (blocked) lock_let_signals(signals);
}

/* --- records of mappings, ordered by address; a piece is such a record --- */

static struct snap_mapping *mappings_record_at(uint32_t id) { return series_at(&records, id); }

static struct snap_mapping *mappings_piece(uint32_t position) { return mappings_record_at(ordered[position]); }

static uint64_t mappings_end_of(const struct snap_mapping *record) { return record->address + record->length; }

static void mappings_write_record(uint32_t id, const struct snap_mapping *value) {
    struct snap_mapping *record = mappings_record_at(id);
    uint32_t sequence = record->sequence;
    __atomic_store_n(&record->sequence, sequence + 1, __ATOMIC_RELEASE);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    size_t after = sizeof value->sequence;
    memcpy((char *)record + after, (const char *)value + after, sizeof *value - after);
    __atomic_store_n(&record->sequence, sequence + 2, __ATOMIC_RELEASE);
}

static uint32_t new_record(void) {
    uint32_t id = SERIES_NONE;
    if (ordered_count + taken_count < PIECES) id = unused_count ? unused[--unused_count] : series_take(&records);
    if (id == SERIES_NONE) ledger_lost(SNAP_LOST_MAPPINGS);
    return id;
}

static void free_record(uint32_t id) {
    mappings_write_record(id, &(struct snap_mapping){0});
    unused[unused_count++] = id;
}

/* The position, in `ordered`, of the first piece that ends after the address. */
static uint32_t position_of(uint64_t address) {
    uint32_t low = 0, high = ordered_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (mappings_end_of(mappings_piece(middle)) > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static void insert_at(uint32_t position, uint32_t id) {
    memmove(ordered + position + 1, ordered + position, (ordered_count - position) * sizeof *ordered);
    ordered[position] = id;
    ordered_count++;
}

static void remove_at(uint32_t position, uint32_t count) {
    ordered_count -= count;
    memmove(ordered + position, ordered + position + count, (ordered_count - position) * sizeof *ordered);
}

/* --- counting mapped bytes --- */

/* Returns the counter of a mapping that is not counted at its site: one counter is for all mappings of files, another
 * for all memory without access. NULL: the mapping counts at its site. */
static uint64_t *own_counter(const struct snap_mapping *record) {
    if (record->kind == SNAP_MAP_FILE) return &ledger_head->file_mapped_live;
    return record->kind == SNAP_MAP_RESERVED ? &ledger_head->reserved_live : NULL;
}

static void mappings_count(const struct snap_mapping *record, uint64_t bytes, uint64_t blocks) {
    uint64_t *own = own_counter(record);
    if (own)
        __atomic_fetch_add(own, bytes, __ATOMIC_RELAXED);
    else
        account_map(record->site, bytes, blocks);
}

static void mappings_uncount(const struct snap_mapping *record, uint64_t bytes, uint64_t blocks) {
    uint64_t *own = own_counter(record);
    if (own)
        __atomic_fetch_sub(own, bytes, __ATOMIC_RELAXED);
    else
        account_unmap(record->site, bytes, blocks);
}

/* --- operations: what each kind of event changes in the table --- */

/* Makes `address` a border between two pieces. The upper piece counts as one more block. */
static void mappings_cut(uint64_t address) {
    uint32_t position = position_of(address);
    if (position == ordered_count || mappings_piece(position)->address >= address) return;
    uint32_t id = new_record();
    struct snap_mapping lower = *mappings_piece(position), upper = lower;
    if (id == SERIES_NONE) return;
    upper.address = address;
    upper.length = mappings_end_of(&lower) - address;
    lower.length = address - lower.address;
    mappings_write_record(ordered[position], &lower);
    mappings_write_record(id, &upper);
    insert_at(position + 1, id);
    mappings_count(&upper, 0, 1);
}

/* Cuts at both ends of the range. Then the range consists of whole pieces: from *position to the returned position
 * minus 1. */
static uint32_t mappings_isolate(uint64_t address, uint64_t length, uint32_t *position) {
    mappings_cut(address);
    mappings_cut(address + length);
    uint32_t end = *position = position_of(address);
    while (end < ordered_count && mappings_end_of(mappings_piece(end)) <= address + length) end++;
    return end;
}

static void drop_range(uint64_t address, uint64_t length) {
    uint32_t position, end = mappings_isolate(address, length, &position);
    for (uint32_t i = position; i < end; i++) {
        mappings_uncount(mappings_piece(i), mappings_piece(i)->length, 1);
        free_record(ordered[i]);
    }
    remove_at(position, end - position);
}

static void insert_record(uint32_t id) {
    const struct snap_mapping *record = mappings_record_at(id);
    insert_at(position_of(record->address), id);
}

static void apply_add(const struct event *event) {
    uint32_t source = event->source ? position_of(event->source) : ordered_count;
    struct snap_mapping like = {.kind = event->kind, .shared = event->shared};
    if (source < ordered_count && mappings_piece(source)->address <= event->source) like = *mappings_piece(source);
    drop_range(event->address, event->length);
    uint32_t id = new_record();
    if (id == SERIES_NONE) return;
    struct snap_mapping record = {.kind = like.kind,
                                  .address = event->address,
                                  .length = event->length,
                                  .birth_ns = event->time,
                                  .site = event->site,
                                  .tid = event->tid,
                                  .shared = like.shared};
    mappings_write_record(id, &record);
    insert_record(id);
    mappings_count(&record, record.length, 1);
}

static void apply_take(const struct event *event) {
    uint32_t position, end = mappings_isolate(event->address, event->length, &position);
    for (uint32_t i = position; i < end; i++) {
        taken[taken_count].id = ordered[i];
        taken[taken_count++].ticket = event->ticket;
    }
    remove_at(position, end - position);
}

/* Fills chosen[] with the records taken for the ticket, lowest address first. Returns how many records there are. */
static uint32_t mappings_untake(uint32_t ticket) {
    uint32_t count = 0, kept = 0;
    for (uint32_t i = 0; i < taken_count; i++)
        if (taken[i].ticket == ticket)
            chosen[count++] = taken[i].id;
        else
            taken[kept++] = taken[i];
    taken_count = kept;
    return count;
}

static void apply_drop(const struct event *event) {
    uint32_t pieces = mappings_untake(event->ticket);
    for (uint32_t i = 0; i < pieces; i++) {
        mappings_uncount(mappings_record_at(chosen[i]), mappings_record_at(chosen[i])->length, 1);
        free_record(chosen[i]);
    }
}

/* Puts back the pieces that were taken for the event's ticket, one behind the other from the new address on, in their
 * old order and size. If the range has become longer, the last piece becomes longer. If the range has become shorter,
 * pieces are cut off at its end. */
static void apply_put(const struct event *event) {
    uint64_t at = event->address, end = event->address + event->length;
    uint32_t last = SERIES_NONE, pieces = mappings_untake(event->ticket);
    drop_range(event->address, event->length); /* with MREMAP_FIXED, other mappings may be there */
    for (uint32_t i = 0; i < pieces; i++) {
        uint32_t id = last = chosen[i];
        struct snap_mapping record = *mappings_record_at(id);
        uint64_t length = at >= end ? 0 : record.length < end - at ? record.length : end - at;
        mappings_uncount(&record, record.length - length, length ? 0 : 1);
        if (!length) {
            free_record(id);
            continue;
        }
        record.address = at;
        record.length = length;
        at += length;
        mappings_write_record(id, &record);
        insert_record(id);
    }
    if (last == SERIES_NONE || at >= end || !mappings_record_at(last)->length) return;
    struct snap_mapping record = *mappings_record_at(last);
    record.length += end - at;
    mappings_write_record(last, &record);
    mappings_count(&record, end - at, 0);
}

static void apply_restore(const struct event *event) {
    uint32_t pieces = mappings_untake(event->ticket);
    for (uint32_t i = 0; i < pieces; i++) insert_record(chosen[i]);
}

static bool changes_kind(const struct snap_mapping *record, bool accessible) {
    return record->kind == (accessible ? SNAP_MAP_RESERVED : SNAP_MAP_ANONYMOUS);
}

static void apply_protect(const struct event *event) {
    uint64_t end = event->address + event->length;
    uint32_t position = position_of(event->address);
    bool any = false;
    for (; position < ordered_count && mappings_piece(position)->address < end; position++)
        any = any || changes_kind(mappings_piece(position), event->accessible);
    if (!any) return;
    uint32_t stop = mappings_isolate(event->address, event->length, &position);
    for (; position < stop; position++) {
        struct snap_mapping record = *mappings_piece(position);
        if (!changes_kind(&record, event->accessible)) continue;
        mappings_uncount(&record, record.length, 1);
        record.kind = event->accessible ? SNAP_MAP_ANONYMOUS : SNAP_MAP_RESERVED;
        mappings_write_record(ordered[position], &record);
        mappings_count(&record, record.length, 1);
    }
}

static void apply_advise(const struct event *event) {
    uint64_t end = event->address + event->length;
    for (uint32_t i = position_of(event->address); i < ordered_count && mappings_piece(i)->address < end; i++) {
        struct snap_mapping record = *mappings_piece(i);
        record.advice |= event->advice >= 0 && event->advice < 64 ? (uint64_t)1 << event->advice : 0;
        mappings_write_record(ordered[i], &record);
    }
}

static bool is_counted(const struct snap_mapping *record) {
    return record->kind != SNAP_MAP_FILE && record->kind != SNAP_MAP_RESERVED;
}

/* Moves the counts to sites of the new owner, whose id is in event->site. The thread is pinned (pin.h), so that fold.c
 * does not remove the new sites before they are marked as sites of mappings. */
static void apply_assign(const struct event *event) {
    enum pin pin = pin_begin((uintptr_t)__builtin_frame_address(0));
    uint32_t position, end = mappings_isolate(event->address, event->length, &position);
    for (; position < end; position++) {
        struct snap_mapping record = *mappings_piece(position);
        uint32_t to;
        if (!site_of_model(record.site, event->site, &to)) continue;
        if (is_counted(&record) && !account_shift_mapped(record.site, to, record.length, 1)) continue;
        record.site = to;
        mappings_write_record(ordered[position], &record);
    }
    pin_end(pin);
}

static void mappings_apply(const struct event *event) {
    static void (*const operations[])(const struct event *) = {
        [ADD] = apply_add,         [TAKE] = apply_take,       [DROP] = apply_drop,     [PUT] = apply_put,
        [RESTORE] = apply_restore, [PROTECT] = apply_protect, [ADVISE] = apply_advise, [ASSIGN] = apply_assign,
    };
    operations[event->operation](event);
}

/* --- what the hooks call --- */

static bool mappings_queue(struct event value) {
    struct event *event = take_event();
    if (!event) return false;
    memcpy((char *)event + sizeof event->next, (char *)&value + sizeof value.next, sizeof value - sizeof value.next);
    mappings_submit(event);
    return true;
}

static uint32_t self_id(void) { return seal_is_set() ? 0 : os_tid(); }

static uint64_t whole_pages(uint64_t length) { return os_round_up(length, OS_PAGE); }

void mappings_add(uintptr_t address, uint64_t length, enum snap_mapping_kind kind, bool shared, uint32_t site) {
    mappings_queue((struct event){.operation = ADD,
                                  .kind = (uint8_t)kind,
                                  .shared = shared,
                                  .site = site,
                                  .tid = self_id(),
                                  .address = address,
                                  .length = kind == SNAP_MAP_BRK ? length : whole_pages(length),
                                  .time = os_now()});
}

void mappings_copy(uintptr_t source, uintptr_t address, uint64_t length, uint32_t site) {
    mappings_queue((struct event){.operation = ADD,
                                  .kind = SNAP_MAP_ANONYMOUS,
                                  .site = site,
                                  .tid = self_id(),
                                  .address = address,
                                  .length = whole_pages(length),
                                  .time = os_now(),
                                  .source = source});
}

uint32_t mappings_take(uintptr_t address, uint64_t length) {
    uint32_t ticket = __atomic_add_fetch(&last_ticket, 1, __ATOMIC_RELAXED);
    mappings_queue((struct event){.operation = TAKE, .address = address, .length = length, .ticket = ticket});
    return ticket;
}

void mappings_drop(uint32_t ticket) { mappings_queue((struct event){.operation = DROP, .ticket = ticket}); }

void mappings_put(uint32_t ticket, uintptr_t address, uint64_t length) {
    mappings_queue(
        (struct event){.operation = PUT, .address = address, .length = whole_pages(length), .ticket = ticket});
}

void mappings_restore(uint32_t ticket) { mappings_queue((struct event){.operation = RESTORE, .ticket = ticket}); }

void mappings_protect(uintptr_t address, uint64_t length, bool accessible) {
    mappings_queue((struct event){
        .operation = PROTECT, .address = address, .length = whole_pages(length), .accessible = accessible});
}

/* How many bytes of a record lie in a range. No byte lies in two records, so the results for all records can be added.
 * No lock is needed, because the program mapped the range before, and does not unmap it meanwhile. */
static uint64_t mappings_overlap(const struct snap_mapping *record, uint64_t address, uint64_t end) {
    if (!record || !record->length || address >= mappings_end_of(record) || end <= record->address) return 0;
    return (end < mappings_end_of(record) ? end : mappings_end_of(record)) -
           (address > record->address ? address : record->address);
}

static bool is_mapped(uint64_t address, uint64_t end) {
    uint64_t found = 0;
    for (uint64_t id = 0, n = os_load(&records.next); id < n && found < end - address; id++)
        found += mappings_overlap(mappings_record_at((uint32_t)id), address, end);
    return found >= end - address;
}

/* Whether there is memory for the records and counters that an assignment of the range needs. The caller asks before it
 * queues the event, because it does not learn whether the thread that applies the event fails. */
static bool has_capacity(uint64_t address, uint64_t end, uint32_t model) {
    enum pin pin = pin_begin((uintptr_t)__builtin_frame_address(0));
    uint64_t found = 0;
    bool has = true;
    for (uint64_t id = 0, n = os_load(&records.next); id < n && has && found < end - address; id++) {
        const struct snap_mapping *record = mappings_record_at((uint32_t)id);
        uint64_t bytes = mappings_overlap(record, address, end);
        uint32_t to;
        if (!bytes) continue;
        found += bytes;
        has = site_of_model(record->site, model, &to) &&
              (!is_counted(record) || account_shift_mapped(record->site, to, 0, 0));
    }
    pin_end(pin);
    return has;
}

int mappings_assign(uintptr_t address, uint64_t length, uint32_t model) {
    if (!is_mapped(address, address + length)) return -ENXIO;
    if (!has_capacity(address, address + length, model)) return -ENOMEM;
    return mappings_queue((struct event){.operation = ASSIGN, .address = address, .length = length, .site = model})
               ? 0
               : -ENOMEM;
}

/* Copies a record. False: it was written to meanwhile. */
static bool copy_record(const struct snap_mapping *record, struct snap_mapping *to) {
    uint32_t sequence = __atomic_load_n(&record->sequence, __ATOMIC_ACQUIRE);
    *to = *record;
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return !(sequence & 1) && __atomic_load_n(&record->sequence, __ATOMIC_RELAXED) == sequence;
}

bool mappings_find(uintptr_t address, struct snap_mapping *out) {
    for (uint64_t id = 0, n = os_load(&records.next); id < n; id++) {
        const struct snap_mapping *record = mappings_record_at((uint32_t)id);
        if (mappings_overlap(record, address, address + 1) && copy_record(record, out) &&
            mappings_overlap(out, address, address + 1))
            return is_counted(out);
    }
    return false;
}

void mappings_advise(uintptr_t address, uint64_t length, int advice) {
    if (advice >= 0 && advice < 32) __atomic_fetch_add(&ledger_head->advised_bytes[advice], length, __ATOMIC_RELAXED);
    mappings_queue(
        (struct event){.operation = ADVISE, .address = address, .length = whole_pages(length), .advice = advice});
}

static void mappings_abandon(void) {
    series_reset(&records);
    ordered_count = unused_count = taken_count = 0;
    queue_head = busy = 0;
    common = (struct pool){.end = EVENTS - RESERVED};
    reserved = (struct pool){.fresh = EVENTS - RESERVED, .end = EVENTS};
}
FORKED(mappings_abandon);

void mappings_visit_records(void (*visit)(struct snap_mapping *record, void *context), void *context) {
    for (uint64_t id = 0, n = os_load(&records.next); id < n; id++) {
        struct snap_mapping *record = mappings_record_at((uint32_t)id);
        if (record && record->length) visit(record, context);
    }
}
