/* stow.c — see stow.h. */
#include "preload/stow/stow.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <time.h>

#include "preload/shared/heapsort.h"
#include "preload/ledger/ledger.h"
#include "preload/base/lock.h"
#include "preload/shared/os.h"
#include "preload/stow/stow_area.h"
#include "preload/stow/stow_host.h"
#include "preload/stow/stow_table.h"
#include "preload/stow/stow_work.h"
#include "preload/base/seal.h"

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif

enum {
    GAP = 256,            /* pages that are not in memory, but still join two runs */
    MAPPINGS_LEFT = 4096, /* mappings below vm.max_map_count that are left to the program */
    PATIENCE = 20000,
    TABLE_SPARE = 1024, /* room for regions that may be cut in two while a chunk moves */
};

/* Waits for hooks that came before the pieces were known. They are over soon, except a hook that was left by
 * longjmp. */
static bool wait_for_hooks(void) {
    const struct timespec pause = {.tv_nsec = 100000};
    uint32_t before = __atomic_fetch_add(&stow_epoch, 1, __ATOMIC_SEQ_CST) & 1;
    for (int i = 0; __atomic_load_n(&stow_passing[before], __ATOMIC_SEQ_CST); i++) {
        if (i == PATIENCE) return false;
        os_call(SYS_nanosleep, &pause, 0);
    }
    return true;
}

struct session {
    uint64_t signals;
    uint32_t count;
    struct work *work;
    uint64_t work_length;
    char *text;
    struct stow_options options;
    bool own_files;
};

static uint64_t start_of(const struct work *work) { return work->piece.start; }

HEAPSORT(struct work, sort_by_start, start_of)

static int begin(struct session *self, const struct stow_piece *pieces, uint32_t count,
                 const struct stow_options *options) {
    uint32_t idle = 0;
    *self = (struct session){.count = count, .work_length = count * sizeof(struct work) + OS_PAGE};
    if (options) self->options = *options;
    if (seal_is_set()) return -EPERM;
    self->work = os_map(self->work_length);
    self->text = os_map(STOW_AREA_TEXT);
    if (!self->work || !self->text) return -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t start = os_round_up(pieces[i].start, OS_PAGE);
        uint64_t end = (pieces[i].start + pieces[i].length) & ~(uint64_t)(OS_PAGE - 1);
        self->work[i].index = i;
        self->work[i].piece =
            (struct stow_piece){.start = start, .length = end > start ? end - start : 0, .owner = pieces[i].owner};
    }
    sort_by_start(self->work, count);
    if (!lock_out_signals(&self->signals)) return -EPERM;
    if (!__atomic_compare_exchange_n(&stow_work_current.held, &idle, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
        lock_let_signals(self->signals);
        return -EBUSY;
    }
    stow_work_current.end = self->options.end;
    stow_work_current.tell = self->options.tell;
    stow_work_current.context = self->options.context;
    stow_work_note_progress(0, 0);
    stow_table_lock();
    stow_work_current.work = self->work, stow_work_current.count = count;
    stow_work_update_watch();
    stow_table_unlock();
    return 0;
}

/* The program may use its memory again, so the results can be written where the caller wants them. */
static int64_t end(struct session *self, struct stow_piece *pieces) {
    int64_t moved = 0;
    stow_table_lock();
    stow_work_current.work = NULL, stow_work_current.count = 0;
    stow_work_current.tell = NULL;
    stow_work_current.end.word = NULL;
    __atomic_store_n(&stow_work_current.held, 0, __ATOMIC_RELEASE);
    stow_work_update_watch();
    stow_table_unlock();
    lock_let_signals(self->signals);
    for (uint32_t i = 0; i < self->count; i++) {
        moved += (int64_t)self->work[i].piece.moved;
        pieces[self->work[i].index].refusal = self->work[i].piece.refusal;
        pieces[self->work[i].index].moved = self->work[i].piece.moved;
    }
    return moved;
}

static void let_go(struct session *self) {
    if (self->work) os_unmap(self->work, self->work_length);
    if (self->text) os_unmap(self->text, STOW_AREA_TEXT);
}

static void refuse_all(struct session *self, uint32_t refusal) {
    for (uint32_t i = 0; i < self->count; i++) stow_work_refuse(&self->work[i], refusal);
}

/* The result when nothing moved: the refusal that says most. */
static int64_t outcome(const struct session *self, int64_t moved) {
    int error = 0;
    for (uint32_t i = 0; i < self->count && !moved; i++) {
        int each = stow_work_error(self->work[i].piece.refusal);
        if (!error || (error == -ENOTSUP && each)) error = each;
    }
    return moved ? moved : error;
}

/* --- the plan: what to do with which range --- */

enum kind { MEMORY, OURS, FILE_PAGES };

struct segment {
    uint64_t start, end;
    uint32_t work;
    enum kind kind;
    bool writable; /* for FILE_PAGES */
};

struct plan {
    struct session *session;
    struct segment *segments;
    uint64_t count, capacity;
    uint64_t memory; /* bytes that go to the file, including gaps */
    int64_t mappings;
    uint32_t over;  /* leading pieces that end before the present area; pieces are in order */
    uint64_t probe; /* a page of ours that was just mapped */
    bool locks_future;
    int pagemap;
};

static bool add_segment(struct plan *self, struct segment segment) {
    if (self->count == self->capacity) {
        uint64_t wanted = self->capacity ? self->capacity * 2 : 4096;
        struct segment *larger = os_map(wanted * sizeof *larger);
        if (!larger) return false;
        if (self->segments) {
            memcpy(larger, self->segments, self->count * sizeof *larger);
            os_unmap(self->segments, self->capacity * sizeof *larger);
        }
        self->segments = larger, self->capacity = wanted;
    }
    self->segments[self->count++] = segment;
    return true;
}

/* Whether the range holds the mover's own stack or thread-local storage. */
static bool is_own_ground(uint64_t start, uint64_t end) {
    uint64_t stack = (uint64_t)__builtin_frame_address(0), local = (uint64_t)__builtin_thread_pointer();
    return (stack >= start && stack < end) || (local >= start && local < end);
}

static void plan_memory(struct plan *self, uint32_t index, uint64_t start, uint64_t end) {
    struct work *work = &self->session->work[index];
    uint64_t run_end, pages;
    while (stow_pages_run(self->pagemap, &start, end, STOW_PAGES_HELD, GAP, &run_end, &pages)) {
        if (!add_segment(self, (struct segment){start, run_end, index, MEMORY, true})) {
            stow_work_refuse(work, STOW_ADDRESS_SPACE);
            return;
        }
        self->memory += run_end - start;
        start = run_end;
    }
}

static bool is_registered(uint64_t start, uint64_t end) {
    stow_table_lock();
    bool registered = stow_work_is_registered(start, end);
    stow_table_unlock();
    return registered;
}

static void plan_area(struct plan *self, uint32_t index, const struct stow_area *area, uint64_t start, uint64_t end) {
    struct work *work = &self->session->work[index];
    uint32_t refusal;
    if (is_registered(start, end)) {
        stow_work_refuse(work, STOW_REGISTERED);
        return;
    }
    if (area->file && !area->locked && !(area->shared && area->write)) {
        if (!add_segment(self, (struct segment){start, end, index, FILE_PAGES, area->write || area->anonymous}))
            stow_work_refuse(work, STOW_ADDRESS_SPACE);
        return;
    }
    if (is_own_ground(start, end))
        refusal = STOW_STACK;
    else
        refusal = area->file && area->shared ? STOW_NOT_PRIVATE : stow_area_refusal(area);
    if (refusal)
        stow_work_refuse(work, refusal);
    else
        plan_memory(self, index, start, end);
}

/* Plans the parts of a range that are in stow files already, and those that are not. */
static void plan_parts(struct plan *self, uint32_t index, const struct stow_area *area, uint64_t start, uint64_t end) {
    struct stow_region region;
    while (start < end) {
        stow_table_lock();
        bool any = stow_table_first(start, end, &region);
        stow_table_unlock();
        if (!any) region.start = region.end = end;
        if (region.start > start) plan_area(self, index, area, start, region.start);
        if (any && !add_segment(self, (struct segment){region.start, region.end, index, OURS, area->write}))
            stow_work_refuse(&self->session->work[index], STOW_ADDRESS_SPACE);
        start = region.end;
    }
}

static uint64_t end_of(const struct stow_piece *piece) { return piece->start + piece->length; }

static bool look_at_area(void *context, const struct stow_area *area) {
    struct plan *self = context;
    const struct work *work = self->session->work;
    self->mappings++;
    self->locks_future |= area->start <= self->probe && self->probe < area->end && area->locked;
    while (self->over < self->session->count && end_of(&work[self->over].piece) <= area->start) self->over++;
    for (uint32_t i = self->over; i < self->session->count && work[i].piece.start < area->end; i++) {
        const struct stow_piece *piece = &work[i].piece;
        uint64_t start = piece->start > area->start ? piece->start : area->start;
        uint64_t end = end_of(piece) < area->end ? end_of(piece) : area->end;
        if (start < end && !work[i].gone) plan_parts(self, i, area, start, end);
    }
    return true;
}

static int64_t mappings_allowed(void) {
    char text[32] = {0};
    int fd = os_open("/proc/sys/vm/max_map_count", O_RDONLY, 0);
    if (fd < 0) return 65530;
    os_read(fd, text, sizeof text - 1);
    os_close(fd);
    const char *at = text;
    return (int64_t)os_take_decimal(&at);
}

static uint32_t make_plan(struct plan *self, struct session *session) {
    *self = (struct plan){.session = session, .pagemap = stow_pages_open()};
    if (self->pagemap < 0) return self->pagemap == -EMFILE ? STOW_NO_DESCRIPTOR : STOW_NO_KERNEL_HELP;
    void *probe = os_map(OS_PAGE);
    self->probe = (uint64_t)probe;
    int64_t seen = probe ? stow_areas(true, session->text, look_at_area, self) : -ENOMEM;
    if (probe) os_unmap(probe, OS_PAGE);
    if (seen < 0) return STOW_NO_KERNEL_HELP;
    if (self->locks_future) return STOW_LOCKS_FUTURE;
    return self->mappings + 2 * (int64_t)self->count + MAPPINGS_LEFT > mappings_allowed() ? STOW_MAPPINGS : STOW_DONE;
}

static void end_plan(struct plan *self) {
    if (self->pagemap >= 0) os_close(self->pagemap);
    if (self->segments) os_unmap(self->segments, self->capacity * sizeof *self->segments);
}

/* --- out --- */

/* Whether the next chunk would be refused, too. */
static bool is_final(uint32_t refusal) { return refusal && refusal != STOW_PINNED && refusal != STOW_IN_USE; }

static uint32_t memory_out(struct session *self, struct stow_host *host, const struct segment *segment, int pagemap) {
    struct work *work = &self->work[segment->work];
    uint32_t refusal = STOW_DONE;
    for (uint64_t start = segment->start, end, done; start < segment->end && !is_final(refusal); start = end) {
        end = stow_work_chunk_end(start, segment->end, host->chunk);
        stow_table_lock();
        bool reserved = stow_table_reserve(TABLE_SPARE);
        stow_table_unlock();
        if (!reserved) return STOW_ADDRESS_SPACE;
        if (!stow_work_begin(work, start, end)) return STOW_DONE;
        uint64_t resident = stow_pages_count(pagemap, start, end, STOW_PAGES_HELD);
        refusal = stow_host_out(host, start, end - start, &done);
        stow_table_lock();
        if (done) stow_table_put(start, start + done, work->piece.owner);
        stow_work_end(work, done < resident ? done : resident);
        if (refusal) stow_work_refuse(work, refusal);
    }
    return is_final(refusal) ? refusal : STOW_DONE;
}

/* Opens the file of a mapping, if it still has the name by which it was mapped. */
static int open_mapped(const struct stow_area *area) {
    struct stat status;
    if (!area->path[0]) return -ENOENT;
    long result = os_call(SYS_newfstatat, AT_FDCWD, area->path, &status, 0);
    if (result < 0 || !S_ISREG(status.st_mode) || status.st_ino != area->inode) return -ENOENT;
    return os_open(area->path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
}

static bool lies_in_memory(int fd) {
    struct statfs fs;
    return os_call(SYS_fstatfs, fd, &fs) == 0 &&
           (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC || fs.f_type == HUGETLBFS_MAGIC);
}

/* Drops clean pages of files: the file has their content. Paging out leaves private pages alone, even if a thread
 * writes meanwhile. */
static uint32_t drop_pages(struct session *self, const struct segment *segment, int pagemap, uint64_t *bytes) {
    struct stow_area area;
    *bytes = 0;
    if (!stow_area_at(segment->start, self->text, &area) || !area.file) return STOW_GONE;
    int fd = segment->kind == FILE_PAGES ? open_mapped(&area) : -1;
    if (segment->kind == FILE_PAGES && fd < 0) return STOW_NAMELESS_FILE;
    if (fd >= 0 && lies_in_memory(fd)) {
        os_close(fd);
        return STOW_NOT_PRIVATE;
    }
    uint64_t length = segment->end - segment->start, offset = area.offset + (segment->start - area.start);
    uint64_t before = stow_pages_count(pagemap, segment->start, segment->end, STOW_PAGES_MAPPED);
    os_call(SYS_madvise, segment->start, length, segment->writable ? MADV_PAGEOUT : MADV_DONTNEED);
    if (fd >= 0) {
        os_call(SYS_fadvise64, fd, offset, length, POSIX_FADV_DONTNEED);
        os_close(fd);
    }
    uint64_t after = stow_pages_count(pagemap, segment->start, segment->end, STOW_PAGES_MAPPED);
    *bytes = before > after ? before - after : 0;
    return *bytes || !before ? STOW_DONE : STOW_NO_KERNEL_HELP;
}

static void files_out(struct session *self, const struct segment *segment, int pagemap) {
    struct work *work = &self->work[segment->work];
    uint64_t bytes;
    if (!stow_work_begin(work, segment->start, segment->end)) return;
    uint32_t refusal = drop_pages(self, segment, pagemap, &bytes);
    stow_table_lock();
    stow_work_end(work, bytes);
    if (refusal) stow_work_refuse(work, refusal);
}

/* Makes pages that were written since they were stowed plain memory again. They are then moved like other memory. */
static uint32_t own_pages_back(struct plan *plan, const struct segment *segment) {
    struct session *self = plan->session;
    struct stow_back back;
    uint64_t at = segment->start, run_end, pages;
    if (!stow_pages_run(plan->pagemap, &at, segment->end, STOW_PAGES_OWN, GAP, &run_end, &pages)) return STOW_DONE;
    uint32_t refusal = stow_back_begin(&back, self->options.idle, self->own_files);
    back.held_unseen = self->options.held_unseen;
    while (!refusal) {
        refusal = stow_work_bring_back(&self->work[segment->work], &back, at, run_end, false);
        if (!refusal) plan_memory(plan, segment->work, at, run_end);
        at = run_end;
        if (refusal || !stow_pages_run(plan->pagemap, &at, segment->end, STOW_PAGES_OWN, GAP, &run_end, &pages)) break;
    }
    stow_back_end(&back);
    return refusal;
}

static void ours_out(struct plan *plan, struct segment segment) {
    struct work *work = &plan->session->work[segment.work];
    uint32_t refusal = own_pages_back(plan, &segment);
    if (refusal) stow_work_refuse(work, refusal);
    segment.writable = true;
    for (struct stow_region region = {.end = segment.start};;) {
        stow_table_lock();
        bool any = stow_table_first(region.end, segment.end, &region);
        stow_table_unlock();
        if (!any) return;
        struct segment part = {region.start, region.end, segment.work, OURS, true};
        if (stow_pages_count(plan->pagemap, part.start, part.end, STOW_PAGES_MAPPED))
            files_out(plan->session, &part, plan->pagemap);
    }
}

static uint32_t begin_host(const struct session *self, struct stow_host *host) {
    uint32_t refusal = stow_host_begin(host, self->options.method, self->options.idle);
    if (refusal || host->method == STOW_BY_MOVE || !self->options.held_unseen) return refusal;
    stow_host_end(host);
    return STOW_HELD_UNSEEN;
}

/* own_pages_back adds segments of memory while this loop goes through the planned ones. */
static uint32_t carry_out(struct plan *plan) {
    struct session *self = plan->session;
    struct stow_host host;
    uint64_t planned = plan->count;
    for (uint64_t i = 0; i < planned; i++)
        if (plan->segments[i].kind == OURS) ours_out(plan, plan->segments[i]);
    for (uint64_t i = 0; i < plan->count; i++)
        if (plan->segments[i].kind == FILE_PAGES) files_out(self, &plan->segments[i], plan->pagemap);
    stow_work_note_progress(stow_work_current.moved,
                            stow_work_current.moved + plan->memory); /* clean pages of files are done */
    if (!plan->memory) return STOW_DONE;
    uint32_t refusal = begin_host(self, &host);
    if (refusal) return refusal;
    refusal = stow_file_open(&host.file, self->options.directory, plan->memory);
    if (!refusal) {
        for (uint64_t i = 0; i < plan->count && !refusal; i++)
            if (plan->segments[i].kind == MEMORY) refusal = memory_out(self, &host, &plan->segments[i], plan->pagemap);
        stow_file_close(&host.file);
    }
    stow_host_end(&host);
    return refusal;
}

static void refuse_memory(struct plan *plan, uint32_t refusal) {
    for (uint64_t i = 0; i < plan->count; i++)
        if (plan->segments[i].kind == MEMORY) stow_work_refuse(&plan->session->work[plan->segments[i].work], refusal);
}

static void look_whether_there(struct session *self) {
    for (uint32_t i = 0; i < self->count; i++) {
        struct work *work = &self->work[i];
        if (!self->options.is_there || self->options.is_there(&work->piece, self->options.context)) continue;
        stow_table_lock();
        work->gone = true;
        stow_table_unlock();
        stow_work_refuse(work, STOW_GONE);
    }
}

static int64_t move_out(struct stow_piece *pieces, uint32_t count, const struct stow_options *options, bool own_files) {
    struct session session;
    struct plan plan = {.pagemap = -1};
    int error = begin(&session, pieces, count, options);
    session.own_files = own_files;
    if (error) {
        for (uint32_t i = 0; i < count; i++)
            pieces[i].refusal = error == -EPERM ? STOW_SANDBOX : STOW_DONE, pieces[i].moved = 0;
        let_go(&session);
        return error;
    }
    if (wait_for_hooks()) {
        look_whether_there(&session);
        uint32_t refusal = make_plan(&plan, &session);
        if (refusal)
            refuse_all(&session, refusal);
        else if ((refusal = carry_out(&plan)))
            refuse_memory(&plan, refusal);
        for (uint32_t i = 0; i < count; i++)
            if (!session.work[i].piece.moved) stow_work_refuse(&session.work[i], STOW_EMPTY);
    } else {
        refuse_all(&session, STOW_GONE);
    }
    end_plan(&plan);
    int64_t moved = end(&session, pieces), result = outcome(&session, moved);
    let_go(&session);
    return result;
}

/* --- in --- */

static void all_in(struct session *self) {
    struct stow_back back;
    uint32_t refusal = stow_back_begin(&back, self->options.idle, self->own_files);
    back.held_unseen = self->options.held_unseen;
    for (uint32_t i = 0; i < self->count && !refusal; i++) {
        const struct stow_piece *piece = &self->work[i].piece;
        uint32_t each = stow_work_bring_back(&self->work[i], &back, piece->start, piece->start + piece->length, true);
        if (each) stow_work_refuse(&self->work[i], each);
    }
    if (refusal)
        refuse_all(self, refusal);
    else
        stow_back_end(&back);
}

static int64_t move_in(struct stow_piece *pieces, uint32_t count, const struct stow_options *options, bool own_files) {
    struct session session;
    uint64_t wanted = 0;
    int error = begin(&session, pieces, count, options);
    session.own_files = own_files;
    if (error) {
        let_go(&session);
        return error;
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct stow_piece *piece = &session.work[i].piece;
        uint64_t stowed = stow_work_stowed_in(piece->start, piece->start + piece->length);
        if (!stowed) stow_work_refuse(&session.work[i], STOW_EMPTY);
        wanted += stowed;
    }
    stow_work_note_progress(0, wanted);
    if (wanted && wait_for_hooks())
        all_in(&session);
    else if (wanted)
        refuse_all(&session, STOW_GONE);
    int64_t moved = end(&session, pieces), result = outcome(&session, moved);
    let_go(&session);
    return result;
}

/* --- on a thread of its own --- */

struct call {
    int64_t (*move)(struct stow_piece *pieces, uint32_t count, const struct stow_options *options, bool own_files);
    struct stow_piece *pieces;
    uint32_t count;
    const struct stow_options *options;
    bool own_files;
    int64_t result;
};

static void answer(void *context) {
    struct call *self = context;
    self->result = self->move(self->pieces, self->count, self->options, self->own_files);
}

int64_t stow_out(struct stow_piece *pieces, uint32_t count, const struct stow_options *options) {
    struct call call = {.move = move_out, .pieces = pieces, .count = count, .options = options};
    stow_work_apart(answer, &call, &call.own_files);
    return call.result;
}

int64_t stow_in(struct stow_piece *pieces, uint32_t count, const struct stow_options *options) {
    struct call call = {.move = move_in, .pieces = pieces, .count = count, .options = options};
    stow_work_apart(answer, &call, &call.own_files);
    return call.result;
}

/* --- questions --- */

uint64_t stow_bytes(uint32_t owner, uint64_t *back_by_use) {
    uint64_t sum = 0, back = 0;
    int pagemap = back_by_use ? stow_pages_open() : -1;
    stow_table_lock();
    for (uint32_t i = 0; i < stow_table_count(); i++) {
        const struct stow_region *region = stow_table_regions() + i;
        if (owner && region->owner != owner) continue;
        sum += region->end - region->start;
        if (pagemap >= 0) back += stow_pages_count(pagemap, region->start, region->end, STOW_PAGES_MAPPED);
    }
    stow_table_unlock();
    if (pagemap >= 0) os_close(pagemap);
    if (back_by_use) *back_by_use = back;
    return sum;
}

uint64_t stow_bytes_within(uint64_t start, uint64_t length) {
    uint64_t sum = 0, end = start + length;
    struct stow_region region;
    stow_table_lock();
    for (; start < end && stow_table_first(start, end, &region); start = region.end) sum += region.end - region.start;
    stow_table_unlock();
    return sum;
}

void stow_change_owner(uint32_t from, uint32_t to) {
    stow_table_lock();
    for (uint32_t i = 0; i < stow_table_count(); i++)
        if (stow_table_regions()[i].owner == from) stow_table_regions()[i].owner = to;
    for (uint32_t i = 0; i < stow_work_current.count; i++)
        if (stow_work_current.work[i].piece.owner == from) stow_work_current.work[i].piece.owner = to;
    stow_table_unlock();
}
