/* stow_back.c — see stow_back.h.
 *
 * In use: a private file mapping cannot be registered with userfaultfd, nor can its pages be moved out of it: mremap
 * would leave the file's old bytes for others to see, or a hole. So, for a pipe's length at a time:
 *   1. every page is made the process's own, as a write would make it (MADV_POPULATE_WRITE);
 *   2. the pages themselves, not copies, are put into a pipe (vmsplice): it holds them, with what is still being
 * written;
 *   3. mremap puts an empty range, registered with userfaultfd, in the place of the mapping, in one step: from now on
 *      nobody can write, and who touches the range waits;
 *   4. what the pages hold by now is read from the pipe and moved into the range; who waits is woken.
 * mremap keeps the registration only for a descriptor that is told of it, and waits until somebody has read that: a
 * thread of our own, for as long as this takes.
 *
 * Nobody else uses it (realloc, or idle owners without userfaultfd): fresh memory is read past the page cache, pages
 * written since are copied over it, and it takes the mapping's place. */
#include "stow_back.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>

#include "os.h"
#include "stow.h"
#include "stow_area.h"
#include "stow_thread.h"
#include "stow_uffd.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

enum { HUGE = 2 << 20, AHEAD = 128 << 10, PIPE_WANTED = 1 << 20, TURNS = 4, EVENTS = 16, EVENT_SIZE = 32 };

/* --- the thread that reads events --- */

static void listen(void *context) {
    const struct stow_back *self = context;
    char events[EVENTS * EVENT_SIZE];
    struct pollfd wait[2] = {{.fd = self->uffd, .events = POLLIN}, {.fd = self->stop, .events = POLLIN}};
    for (;;) {
        long ready = os_call(SYS_poll, wait, 2, -1);
        if (ready < 0 && ready != -EINTR) break;
        if (wait[0].revents & POLLIN) os_call(SYS_read, self->uffd, events, (long)sizeof events);
        if (wait[1].revents || wait[0].revents & (POLLERR | POLLNVAL)) break;
    }
}

static bool start_listener(struct stow_back *self) {
    self->stop = (int)os_call(SYS_eventfd2, 0, EFD_CLOEXEC);
    self->listener = self->stop < 0 ? NULL : thread_start(listen, self, false);
    return self->listener != NULL;
}

static void stop_listener(struct stow_back *self) {
    const uint64_t one = 1;
    if (self->listener) {
        os_write(self->stop, &one, sizeof one);
        thread_join(self->listener);
    }
    if (self->stop >= 0) os_close(self->stop);
}

/* --- begin and end --- */

static bool take_room(struct stow_back *self) {
    self->text = os_map(STOW_AREA_TEXT);
    char *room = os_map(BACK_CHUNK + 2 * HUGE);
    if (!room || !self->text) return false;
    char *start = (char *)os_round_up((uintptr_t)room, HUGE);
    if (start > room) os_unmap(room, (size_t)(start - room));
    self->room = start;
    self->room_length = BACK_CHUNK + 2 * HUGE - (uint64_t)(start - room);
    return true;
}

static bool open_pipe(struct stow_back *self) {
    if (os_call(SYS_pipe2, self->pipe, O_CLOEXEC | O_NONBLOCK) < 0) return false;
    long room = os_call(SYS_fcntl, self->pipe[0], F_SETPIPE_SZ, PIPE_WANTED);
    if (room < 0) room = os_call(SYS_fcntl, self->pipe[0], F_GETPIPE_SZ);
    self->pipe_room = room > 0 ? (uint64_t)room : 0;
    return room > 0;
}

static uint32_t begin_in_use(struct stow_back *self) {
    uint32_t features = 0;
    self->uffd = uffd_open(UFFD_MOVES | UFFD_FOLLOWS, &features);
    if (self->uffd < 0 || !(features & UFFD_FOLLOWS)) return STOW_NOT_IDLE;
    self->moves = features & UFFD_MOVES;
    if (!open_pipe(self)) return STOW_NO_DESCRIPTOR;
    return start_listener(self) ? STOW_DONE : STOW_NO_KERNEL_HELP;
}

static void begin_mine(struct stow_back *self) {
    uint32_t features = 0;
    self->uffd = uffd_open(UFFD_MOVES, &features);
    self->moves = self->uffd >= 0 && features & UFFD_MOVES;
}

uint32_t back_begin(struct stow_back *self, bool mine) {
    *self = (struct stow_back){.mine = mine, .uffd = -1, .pipe = {-1, -1}, .stop = -1};
    self->pagemap = stow_pages_open();
    uint32_t refusal = self->pagemap < 0 ? STOW_NO_DESCRIPTOR : take_room(self) ? STOW_DONE : STOW_ADDRESS_SPACE;
    if (!refusal && mine) begin_mine(self);
    if (!refusal && !mine) refusal = begin_in_use(self);
    if (refusal) back_end(self);
    return refusal;
}

void back_end(struct stow_back *self) {
    stop_listener(self);
    if (self->uffd >= 0) os_close(self->uffd);
    if (self->pagemap >= 0) os_close(self->pagemap);
    if (self->pipe[0] >= 0) os_close(self->pipe[0]), os_close(self->pipe[1]);
    if (self->room) os_unmap(self->room, self->room_length);
    if (self->text) os_unmap(self->text, STOW_AREA_TEXT);
    *self = (struct stow_back){.uffd = -1, .pagemap = -1, .pipe = {-1, -1}, .stop = -1};
}

/* The kernel reads no more at a time than the disk takes in one request, and forgets the rest. */
void back_expect(const struct stow_back *self, uint64_t start, uint64_t length) {
    for (uint64_t done = 0; !self->mine && done < length; done += AHEAD)
        os_call(SYS_madvise, start + done, length - done < AHEAD ? length - done : AHEAD, MADV_WILLNEED);
}

/* --- in use --- */

static uint32_t refusal_of(long error) {
    switch (error) {
    case -EFAULT:
    case -EIO:
    case -EHWPOISON:
        return STOW_DISK_ERROR;
    case -ENOMEM:
        return STOW_ADDRESS_SPACE;
    default:
        return STOW_NO_KERNEL_HELP;
    }
}

/* Before Linux 5.14 a write fault on each page does it; an error of the disk is then a SIGBUS. */
static uint32_t make_own(uint64_t start, uint64_t length) {
    long result;
    do result = os_call(SYS_madvise, start, length, MADV_POPULATE_WRITE);
    while (result == -EINTR || result == -EAGAIN);
    if (result != -EINVAL) return result < 0 ? refusal_of(result) : STOW_DONE;
    for (uint64_t at = start; at < start + length; at += OS_PAGE)
        __asm__ volatile("lock orb $0, %0" : "+m"(*(volatile char *)at));
    return STOW_DONE;
}

static uint32_t empty_pipe(struct stow_back *self, char *to, uint64_t length) {
    for (uint64_t done = 0; done < length;) {
        long got = os_call(SYS_read, self->pipe[0], to + done, (long)(length - done));
        if (got == -EINTR) continue;
        if (got <= 0) return STOW_NO_KERNEL_HELP;
        done += (uint64_t)got;
    }
    return STOW_DONE;
}

/* The pages themselves into the pipe. Less than all: what went in is taken out again. */
static uint32_t hold_pages(struct stow_back *self, uint64_t start, uint64_t length, char *waste) {
    uint64_t done = 0;
    while (done < length) {
        struct iovec part = {(void *)(start + done), length - done};
        long put = os_call(SYS_vmsplice, self->pipe[1], &part, 1, 0);
        if (put == -EINTR) continue;
        if (put <= 0) break;
        done += (uint64_t)put;
    }
    if (done == length) return STOW_DONE;
    empty_pipe(self, waste, done);
    return STOW_NO_KERNEL_HELP;
}

/* It must succeed: the pages are nowhere else by now. Those that have moved are not there to be copied. */
static void fill(struct stow_back *self, uint64_t start, uint64_t length, const char *from) {
    const struct timespec pause = {.tv_nsec = 1000000};
    uint64_t done = 0;
    if (self->moves) uffd_move(self->uffd, start, (uint64_t)from, length, &done);
    while (done < length) {
        long result = uffd_copy(self->uffd, start + done, (uint64_t)from + done, OS_PAGE);
        if (uffd_is_lost(result)) memcpy((void *)(start + done), from + done, OS_PAGE);
        if (result == 0 || result == -EEXIST || uffd_is_lost(result))
            done += OS_PAGE;
        else
            os_call(SYS_nanosleep, &pause, 0);
    }
}

static bool is_hole(uint64_t start) {
    unsigned char there;
    return os_call(SYS_mincore, start, OS_PAGE, &there) == -ENOMEM;
}

/* The kernel unmaps what was there first: should it then lack memory for the rest, it is asked again. */
static bool put_over(char *mapping, uint64_t start, uint64_t length) {
    long at;
    do at = os_call(SYS_mremap, mapping, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, start);
    while (at != (long)start && is_hole(start));
    return at == (long)start;
}

static uint32_t swap_held(struct stow_back *self, uint64_t start, uint64_t length, char *empty) {
    char *copy = self->room + start % HUGE;
    uint32_t refusal = make_own(start, length);
    if (!refusal) refusal = hold_pages(self, start, length, copy);
    if (refusal) return refusal;
    bool swapped = put_over(empty, start, length);
    empty_pipe(self, copy, length);
    if (!swapped) return STOW_ADDRESS_SPACE;
    fill(self, start, length, copy);
    uffd_wake(self->uffd, start, length);
    return STOW_DONE;
}

/* As programs map memory, so that it can become one mapping with what lies beside it. */
static long map_plain(uint64_t at, uint64_t length, int flags) {
    return os_call(SYS_mmap, at, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1);
}

/* Memory that lies to huge pages as the range does, and nothing beside it: parts of it go away, and what then comes to
 * lie there is somebody else's. */
static char *map_like(uint64_t start, uint64_t length) {
    long at = map_plain(0, length + 2 * HUGE, 0);
    if (at < 0 && at > -OS_PAGE) return NULL;
    char *mapped = (char *)at, *place = (char *)os_round_up((uintptr_t)mapped, HUGE) + start % HUGE;
    if (place > mapped) os_unmap(mapped, (size_t)(place - mapped));
    os_unmap(place + length, (size_t)(mapped + 2 * HUGE - place));
    return place;
}

/* What was one mapping is one again, or mremap would refuse to let it grow: new pages take over the anon_vma of a
 * neighbour that is in all like them, registered too. A page of each will do. Refused where that is no plain memory. */
static void register_neighbours(struct stow_back *self, uint64_t start, uint64_t end) {
    uffd_register(self->uffd, start - OS_PAGE, OS_PAGE);
    uffd_register(self->uffd, end, OS_PAGE);
}

static void unregister_with_neighbours(struct stow_back *self, uint64_t start, uint64_t end) {
    uffd_unregister(self->uffd, start, end - start);
    uffd_unregister(self->uffd, start - OS_PAGE, OS_PAGE);
    uffd_unregister(self->uffd, end, OS_PAGE);
}

/* The parts stay registered until all are back: beside each other they are one mapping only as long as they are alike.
 */
static uint32_t in_use(struct stow_back *self, uint64_t start, uint64_t length, uint64_t *done) {
    char *empty = map_like(start, length);
    if (!empty) return STOW_ADDRESS_SPACE;
    uint32_t refusal = uffd_register(self->uffd, (uint64_t)empty, length) < 0 ? STOW_NO_KERNEL_HELP : STOW_DONE;
    register_neighbours(self, start, start + length);
    while (!refusal && *done < length) {
        uint64_t part = length - *done < self->pipe_room ? length - *done : self->pipe_room;
        refusal = swap_held(self, start + *done, part, empty + *done);
        *done += refusal ? 0 : part;
    }
    unregister_with_neighbours(self, start, start + length);
    if (*done < length) os_unmap(empty + *done, length - *done);
    os_call(SYS_madvise, self->room, self->room_length, MADV_DONTNEED);
    return refusal;
}

/* --- nobody else uses it --- */

static char *hexadecimal(char *to, uint64_t n) {
    char digits[16];
    int count = 0;
    do digits[count++] = "0123456789abcdef"[n % 16];
    while (n /= 16);
    while (count) *to++ = digits[--count];
    *to = 0;
    return to;
}

/* The file behind a mapping; privileged, else -EPERM. */
static int open_behind(const struct stow_area *area) {
    char path[80] = "/proc/self/map_files/", *end = hexadecimal(path + strlen(path), area->start);
    *end++ = '-';
    hexadecimal(end, area->end);
    int fd = os_open(path, O_RDONLY | O_DIRECT, 0);
    return fd == -EINVAL ? os_open(path, O_RDONLY, 0) : fd;
}

static long read_file(int fd, char *to, uint64_t length, uint64_t offset) {
    for (uint64_t done = 0; done < length;) {
        long got = os_pread(fd, to + done, length - done, offset + done);
        if (got <= 0) return got ? got : -EIO;
        done += (uint64_t)got;
    }
    return 0;
}

/* What was written since it was stowed, until that is all in the copy: who says that nobody writes may be wrong. */
static uint32_t copy_own(struct stow_back *self, uint64_t start, uint64_t end, char *to) {
    for (int turn = 0; turn < TURNS; turn++) {
        uint64_t at = start, run_end, pages;
        bool same = true;
        for (; stow_pages_run(self->pagemap, &at, end, true, 1, &run_end, &pages); at = run_end) {
            if (!memcmp(to + (at - start), (void *)at, run_end - at)) continue;
            memcpy(to + (at - start), (void *)at, run_end - at);
            same = false;
        }
        if (same) return STOW_DONE;
    }
    return STOW_IN_USE;
}

static uint32_t read_through(uint64_t start, uint64_t length, char *to) {
    long result = os_call(SYS_madvise, start, length, MADV_POPULATE_READ);
    if (result < 0 && result != -EINVAL) return refusal_of(result);
    memcpy(to, (void *)start, length);
    return STOW_DONE;
}

static uint32_t read_whole(const struct stow_area *area, uint64_t start, uint64_t length, char *to) {
    int fd = open_behind(area);
    if (fd < 0) return read_through(start, length, to);
    long result = read_file(fd, to, length, area->offset + (start - area->start));
    os_call(SYS_fadvise64, fd, area->offset + (start - area->start), length, POSIX_FADV_DONTNEED);
    os_close(fd);
    return result < 0 ? STOW_DISK_ERROR : STOW_DONE;
}

static bool map_fresh(uint64_t start, uint64_t length) {
    long at;
    do at = map_plain(start, length, MAP_FIXED);
    while (at != (long)start && is_hole(start));
    return at == (long)start;
}

static void move_in(struct stow_back *self, uint64_t start, uint64_t length, const char *from) {
    if (self->uffd < 0 || uffd_register(self->uffd, start, length) < 0) {
        memcpy((void *)start, from, length);
        return;
    }
    register_neighbours(self, start, start + length);
    fill(self, start, length, from);
    unregister_with_neighbours(self, start, start + length);
}

static uint32_t undisturbed(struct stow_back *self, const struct stow_area *area, uint64_t start, uint64_t length) {
    char *copy = self->room + start % HUGE;
    uint32_t refusal = read_whole(area, start, length, copy);
    if (!refusal) refusal = copy_own(self, start, start + length, copy);
    if (!refusal && !map_fresh(start, length)) refusal = STOW_ADDRESS_SPACE;
    if (!refusal) move_in(self, start, length, copy);
    if (refusal || !self->moves) os_call(SYS_madvise, self->room, self->room_length, MADV_DONTNEED);
    return refusal;
}

/* What is read back, or copied, are other pages: who holds those of now, to write to them later, would write to pages
 * that nobody sees. Only the process's own pages can be held so. */
static bool may_be_held(struct stow_back *self, uint64_t start, uint64_t end) {
    uint64_t run_end, pages;
    return stow_pages_run(self->pagemap, &start, end, true, 1, &run_end, &pages) && stow_pages_are_pinned();
}

uint32_t back_in(struct stow_back *self, uint64_t start, uint64_t length, uint64_t *done) {
    struct stow_area area;
    *done = 0;
    if (!stow_area_at(start, self->text, &area) || area.shared || !area.file) return STOW_GONE;
    if (!area.read || !area.write) return STOW_NO_ACCESS;
    if (length > area.end - start) length = area.end - start;
    if (may_be_held(self, start, start + length)) return STOW_PINNED;
    if (!self->mine) return in_use(self, start, length, done);
    uint32_t refusal = undisturbed(self, &area, start, length);
    *done = refusal ? 0 : length;
    return refusal;
}
