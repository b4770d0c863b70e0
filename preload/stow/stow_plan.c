/* stow_plan.c — see stow_plan.h. */
#include "preload/stow/stow_plan.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "preload/shared/os.h"
#include "preload/stow/stow_area.h"
#include "preload/stow/stow_pages.h"
#include "preload/stow/stow_host.h"
#include "preload/stow/stow_table.h"

enum { MAPPINGS_LEFT = 4096 }; /* mappings below vm.max_map_count that are left to the program */

static bool add_segment(struct stow_plan *self, struct stow_segment segment) {
    if (self->count == self->capacity) {
        uint64_t wanted = self->capacity ? self->capacity * 2 : 4096;
        struct stow_segment *larger = os_map(wanted * sizeof *larger);
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

void stow_plan_memory(struct stow_plan *self, uint32_t index, uint64_t start, uint64_t end) {
    struct work *work = &self->session->work[index];
    uint64_t run_end, pages;
    while (stow_pages_run(self->pagemap, &start, end, STOW_PAGES_HELD, STOW_PLAN_GAP, &run_end, &pages)) {
        if (!add_segment(self, (struct stow_segment){start, run_end, index, STOW_SEGMENT_MEMORY, true})) {
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

static void plan_area(struct stow_plan *self, uint32_t index, const struct stow_area *area, uint64_t start,
                      uint64_t end) {
    struct work *work = &self->session->work[index];
    uint32_t refusal;
    if (is_registered(start, end)) {
        stow_work_refuse(work, STOW_REGISTERED);
        return;
    }
    if (area->file && !area->locked && !(area->shared && area->write)) {
        if (!add_segment(self,
                         (struct stow_segment){start, end, index, STOW_SEGMENT_FILE, area->write || area->anonymous}))
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
        stow_plan_memory(self, index, start, end);
}

/* Plans the move of a range. The parts that are in stow files already are planned apart from the rest. */
static void plan_parts(struct stow_plan *self, uint32_t index, const struct stow_area *area, uint64_t start,
                       uint64_t end) {
    struct stow_region region;
    while (start < end) {
        stow_table_lock();
        bool any = stow_table_first(start, end, &region);
        stow_table_unlock();
        if (!any) region.start = region.end = end;
        if (region.start > start) plan_area(self, index, area, start, region.start);
        if (any && !add_segment(
                       self, (struct stow_segment){region.start, region.end, index, STOW_SEGMENT_STOWED, area->write}))
            stow_work_refuse(&self->session->work[index], STOW_ADDRESS_SPACE);
        start = region.end;
    }
}

static uint64_t stow_plan_end_of(const struct stow_piece *piece) { return piece->start + piece->length; }

static bool plan_at_area(void *context, const struct stow_area *area) {
    struct stow_plan *self = context;
    const struct work *work = self->session->work;
    self->mappings++;
    self->locks_future |= area->start <= self->probe && self->probe < area->end && area->locked;
    while (self->over < self->session->count && stow_plan_end_of(&work[self->over].piece) <= area->start) self->over++;
    for (uint32_t i = self->over; i < self->session->count && work[i].piece.start < area->end; i++) {
        const struct stow_piece *piece = &work[i].piece;
        uint64_t start = piece->start > area->start ? piece->start : area->start;
        uint64_t end = stow_plan_end_of(piece) < area->end ? stow_plan_end_of(piece) : area->end;
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

uint32_t stow_plan_make(struct stow_plan *self, struct stow_session *session) {
    *self = (struct stow_plan){.session = session, .pagemap = stow_pages_open()};
    if (self->pagemap < 0) return self->pagemap == -EMFILE ? STOW_NO_DESCRIPTOR : STOW_NO_KERNEL_HELP;
    void *probe = os_map(OS_PAGE);
    self->probe = (uint64_t)probe;
    int64_t seen = probe ? stow_areas(true, session->text, plan_at_area, self) : -ENOMEM;
    if (probe) os_unmap(probe, OS_PAGE);
    if (seen < 0) return STOW_NO_KERNEL_HELP;
    if (self->locks_future) return STOW_LOCKS_FUTURE;
    return self->mappings + 2 * (int64_t)self->count + MAPPINGS_LEFT > mappings_allowed() ? STOW_MAPPINGS : STOW_DONE;
}

void stow_plan_end(struct stow_plan *self) {
    if (self->pagemap >= 0) os_close(self->pagemap);
    if (self->segments) os_unmap(self->segments, self->capacity * sizeof *self->segments);
}

void stow_plan_refuse_memory(struct stow_plan *self, uint32_t refusal) {
    for (uint64_t i = 0; i < self->count; i++)
        if (self->segments[i].kind == STOW_SEGMENT_MEMORY)
            stow_work_refuse(&self->session->work[self->segments[i].work], refusal);
}
