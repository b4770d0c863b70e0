/* stow_carry.c — see stow_carry.h. */
#include "preload/stow/stow_carry.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>

#include "preload/shared/os.h"
#include "preload/stow/stow_area.h"
#include "preload/stow/stow_pages.h"
#include "preload/stow/stow_host.h"
#include "preload/stow/stow_table.h"

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif

enum { TABLE_MORE = 1024 }; /* capacity for regions that may be cut in two while a chunk moves */

/* Whether a chunk's refusal means that the next chunk would be refused, too. */
static bool is_final(uint32_t refusal) { return refusal && refusal != STOW_PINNED && refusal != STOW_IN_USE; }

static uint32_t memory_out(struct stow_session *self, struct stow_host *host, const struct stow_segment *segment,
                           int pagemap) {
    struct work *work = &self->work[segment->work];
    uint32_t refusal = STOW_DONE;
    for (uint64_t start = segment->start, end, done; start < segment->end && !is_final(refusal); start = end) {
        end = stow_work_chunk_end(start, segment->end, host->chunk);
        stow_table_lock();
        bool reserved = stow_table_reserve(TABLE_MORE);
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

/* Makes every processor give up the pages that it has just read. Each processor has lists of a few such pages, and
 * MADV_PAGEOUT on another processor takes no page from these lists. The kernel empties the lists of all processors when
 * POSIX_FADV_DONTNEED finds a clean page that is mapped, as the first page of the program is. */
static void stow_carry_gather(void) {
    const int clean = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
    int fd = os_open("/proc/self/exe", O_RDONLY, 0);
    if (fd < 0) return;
    os_call(SYS_sync_file_range, fd, 0, OS_PAGE, clean); /* the page may be dirty, if the program was just built */
    os_call(SYS_fadvise64, fd, 0, OS_PAGE, POSIX_FADV_DONTNEED);
    os_close(fd);
}

/* Drops clean pages of a file's mapping. In a writable mapping the pages are paged out instead, because paging out
 * loses no private page, even if a thread writes meanwhile. Returns the bytes that stay mapped. */
static uint64_t stow_carry_drop(const struct stow_segment *segment, int pagemap) {
    uint64_t left = 1, length = segment->end - segment->start;
    for (int i = 0; left && i < 2; i++) {
        if (i) stow_carry_gather();
        os_call(SYS_madvise, segment->start, length, segment->writable ? MADV_PAGEOUT : MADV_DONTNEED);
        left = stow_pages_count(pagemap, segment->start, segment->end, STOW_PAGES_MAPPED);
    }
    return left;
}

/* Drops clean pages of a file's mapping from memory, because the file has their content. */
static uint32_t drop_pages(struct stow_session *self, const struct stow_segment *segment, int pagemap,
                           uint64_t *bytes) {
    struct stow_area area;
    *bytes = 0;
    if (!stow_area_at(segment->start, self->text, &area) || !area.file) return STOW_GONE;
    int fd = segment->kind == STOW_SEGMENT_FILE ? open_mapped(&area) : -1;
    if (segment->kind == STOW_SEGMENT_FILE && fd < 0) return STOW_NAMELESS_FILE;
    if (fd >= 0 && lies_in_memory(fd)) {
        os_close(fd);
        return STOW_NOT_PRIVATE;
    }
    uint64_t length = segment->end - segment->start, offset = area.offset + (segment->start - area.start);
    uint64_t before = stow_pages_count(pagemap, segment->start, segment->end, STOW_PAGES_MAPPED);
    uint64_t after = stow_carry_drop(segment, pagemap);
    if (fd >= 0) {
        os_call(SYS_fadvise64, fd, offset, length, POSIX_FADV_DONTNEED);
        os_close(fd);
    }
    *bytes = before > after ? before - after : 0;
    return *bytes || !before ? STOW_DONE : STOW_NO_KERNEL_HELP;
}

static void files_out(struct stow_session *self, const struct stow_segment *segment, int pagemap) {
    struct work *work = &self->work[segment->work];
    uint64_t bytes;
    if (!stow_work_begin(work, segment->start, segment->end)) return;
    uint32_t refusal = drop_pages(self, segment, pagemap, &bytes);
    stow_table_lock();
    stow_work_end(work, bytes);
    if (refusal) stow_work_refuse(work, refusal);
}

/* The program may have written to stowed pages. Such pages become plain memory here, and are added to the plan, so
 * that they are moved like other memory. */
static uint32_t own_pages_back(struct stow_plan *plan, const struct stow_segment *segment) {
    struct stow_session *self = plan->session;
    struct stow_back back;
    uint64_t at = segment->start, run_end, pages;
    if (!stow_pages_run(plan->pagemap, &at, segment->end, STOW_PAGES_OWN, STOW_PLAN_GAP, &run_end, &pages))
        return STOW_DONE;
    uint32_t refusal = stow_back_begin(&back, self->options.idle, self->own_files);
    back.held_unseen = self->options.held_unseen;
    while (!refusal) {
        refusal = stow_work_bring_back(&self->work[segment->work], &back, at, run_end, false);
        if (!refusal) stow_plan_memory(plan, segment->work, at, run_end);
        at = run_end;
        if (refusal ||
            !stow_pages_run(plan->pagemap, &at, segment->end, STOW_PAGES_OWN, STOW_PLAN_GAP, &run_end, &pages))
            break;
    }
    stow_back_end(&back);
    return refusal;
}

static void ours_out(struct stow_plan *plan, struct stow_segment segment) {
    struct work *work = &plan->session->work[segment.work];
    uint32_t refusal = own_pages_back(plan, &segment);
    if (refusal) stow_work_refuse(work, refusal);
    segment.writable = true;
    for (struct stow_region region = {.end = segment.start};;) {
        stow_table_lock();
        bool any = stow_table_first(region.end, segment.end, &region);
        stow_table_unlock();
        if (!any) return;
        struct stow_segment part = {region.start, region.end, segment.work, STOW_SEGMENT_STOWED, true};
        if (stow_pages_count(plan->pagemap, part.start, part.end, STOW_PAGES_MAPPED))
            files_out(plan->session, &part, plan->pagemap);
    }
}

static uint32_t begin_host(const struct stow_session *self, struct stow_host *host) {
    uint32_t refusal = stow_host_begin(host, self->options.method, self->options.idle);
    if (refusal || host->method == STOW_BY_MOVE || !self->options.held_unseen) return refusal;
    stow_host_end(host);
    return STOW_HELD_UNSEEN;
}

/* ours_out adds segments to the plan. They are segments of memory, so the first loop need not look at them. */
uint32_t stow_carry_out(struct stow_plan *plan) {
    struct stow_session *self = plan->session;
    struct stow_host host;
    uint64_t planned = plan->count;
    for (uint64_t i = 0; i < planned; i++)
        if (plan->segments[i].kind == STOW_SEGMENT_STOWED) ours_out(plan, plan->segments[i]);
    for (uint64_t i = 0; i < plan->count; i++)
        if (plan->segments[i].kind == STOW_SEGMENT_FILE) files_out(self, &plan->segments[i], plan->pagemap);
    stow_work_note_progress(stow_work_current.moved,
                            stow_work_current.moved + plan->memory); /* clean pages of files have left already */
    if (!plan->memory) return STOW_DONE;
    uint32_t refusal = begin_host(self, &host);
    if (refusal) return refusal;
    refusal = stow_file_open(&host.file, self->options.directory, plan->memory);
    if (!refusal) {
        for (uint64_t i = 0; i < plan->count && !refusal; i++)
            if (plan->segments[i].kind == STOW_SEGMENT_MEMORY)
                refusal = memory_out(self, &host, &plan->segments[i], plan->pagemap);
        stow_file_close(&host.file);
    }
    stow_host_end(&host);
    return refusal;
}
