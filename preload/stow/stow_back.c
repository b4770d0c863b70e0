/* stow_back.c — see stow_back.h.
 *
 * If other threads may use the range, neither usual way works: a private file mapping cannot be registered with
 * userfaultfd, and if mremap moved its pages out, other threads would see the file's old bytes or a hole. So the
 * content comes back in these steps, each time as much as the pipes hold:
 *   1. A thread that runs ahead (stow_ahead.c) makes every page the process's own, as a write would
 *   (MADV_POPULATE_WRITE).
 *   2. vmsplice puts the pages themselves, not copies, into pipes. The pipes hold them, including later writes.
 *   3. mremap replaces the mapping with an empty range that is registered with userfaultfd, in one step. From now on
 *   nobody can write. A thread that touches the range waits.
 *   4. The content of the pages is read from the pipes, through a buffer that stays in the processor's cache, and
 *   copied into the range. Each page is new, and the kernel need not clear it. Waiting threads are woken.
 *
 * mremap keeps a range registered only if the userfaultfd descriptor gets events. Then mremap waits until its event was
 * read, and a debugger cannot stop a thread in that wait. If the debugger has stopped the thread that reads events, the
 * debugger and mremap would wait for each other for ever. Therefore events have two readers during a move: a thread of
 * ours, and a process, which no debugger stops. One reader is enough, but somebody may kill the process, or the system
 * may refuse to start it.
 *
 * If nobody else uses the range (realloc, idle owners), it comes back in other steps:
 *   1. Threads that run ahead read the file into memory of ours, without the page cache (stow_read.c). This needs the
 *   privilege CAP_CHECKPOINT_RESTORE; without it, the steps are those above.
 *   2. Pages that were written since they were stowed are copied over that memory. A later write would be lost.
 *   3. An empty range takes the mapping's place, and the content is copied into it. A thread that reads the range
 *   waits meanwhile.
 * Without userfaultfd, fresh memory takes the mapping's place, and the content is copied into it. */
#include "preload/stow/stow_back.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>

#include "preload/shared/os.h"
#include "preload/stow/stow.h"
#include "preload/stow/stow_ahead.h"
#include "preload/stow/stow_area.h"
#include "preload/stow/stow_pages.h"
#include "preload/stow/stow_thread.h"
#include "preload/stow/stow_uffd.h"

enum {
    BUFFER_MAPPED = BACK_BUFFER + 2 * OS_HUGE_PAGE,
    SMALLEST = 1 << 20,
    PIPE_WANTED = 1 << 20,
    POURED = 256 << 10,
    TURNS = 4,
    LONGEST_PAUSE = 13 /* 2^13 microseconds */
};
enum { EVENTS = 16, EVENT_SIZE = 32 };

/* --- readers of events --- */

static void stow_back_listen(void *context) {
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

static bool start_listeners(struct stow_back *self) {
    self->stop = (int)os_call(SYS_eventfd2, 0, EFD_CLOEXEC);
    self->listeners[0] = self->stop < 0 ? NULL : stow_thread_start(stow_back_listen, self, NULL);
    self->listeners[1] = self->listeners[0] ? stow_thread_start_apart(stow_back_listen, self) : NULL;
    return self->listeners[0] != NULL;
}

static void stop_listeners(struct stow_back *self) {
    const uint64_t one = 1;
    if (self->listeners[0]) os_write(self->stop, &one, sizeof one);
    for (int i = 0; i < BACK_LISTENERS; i++) {
        if (self->listeners[i]) stow_thread_join(self->listeners[i]);
        self->listeners[i] = NULL;
    }
    if (self->stop >= 0) os_close(self->stop);
}

/* --- beginning and ending a move back --- */

/* Maps the buffer, and asks for huge pages. With huge pages a disk reads as much as it can in one request, and takes a
 * third of the time. The buffer leaves out the first and the last page of the mapping. If the mapping lies next to a
 * range that comes back, register_neighbours registers one of these pages, and a thread that touched the page would
 * wait. A forked child does not need this memory, and must not share it during a read. */
static char *map_buffer(struct stow_back *self) {
    self->buffer_mapped = os_map(BUFFER_MAPPED);
    if (!self->buffer_mapped) return NULL;
    os_call(SYS_madvise, self->buffer_mapped, BUFFER_MAPPED, MADV_HUGEPAGE);
    os_call(SYS_madvise, self->buffer_mapped, BUFFER_MAPPED, MADV_DONTFORK);
    return (char *)os_round_up((uintptr_t)self->buffer_mapped + OS_PAGE, OS_HUGE_PAGE);
}

static bool map_buffers(struct stow_back *self) {
    self->text = os_map(STOW_AREA_TEXT);
    self->buffer = map_buffer(self);
    return self->buffer && self->text;
}

static bool open_pipe(struct stow_back *self) {
    struct back_pipe *pipe = &self->pipes[self->pipe_count];
    if (os_call(SYS_pipe2, pipe->ends, O_CLOEXEC | O_NONBLOCK) < 0) return false;
    self->pipe_count++;
    long capacity = os_call(SYS_fcntl, pipe->ends[0], F_SETPIPE_SZ, PIPE_WANTED);
    if (capacity < 0) capacity = os_call(SYS_fcntl, pipe->ends[0], F_GETPIPE_SZ);
    pipe->capacity = capacity > 0 ? (uint64_t)capacity : 0;
    self->pipes_capacity += pipe->capacity;
    return capacity > 0;
}

/* Opens up to BACK_PIPES pipes. False: no pipe could be opened. One pipe is enough; more pipes mean fewer steps. */
static bool open_pipes(struct stow_back *self) {
    while (self->pipe_count < BACK_PIPES && open_pipe(self)) continue;
    return self->pipes_capacity > 0;
}

static uint32_t begin_with_faults(struct stow_back *self) {
    uint32_t features = 0;
    self->uffd = stow_uffd_open(UFFD_FOLLOWS, &features);
    if (self->uffd < 0 || !(features & UFFD_FOLLOWS)) return STOW_NOT_IDLE;
    if (!open_pipes(self)) return STOW_NO_DESCRIPTOR;
    return start_listeners(self) ? STOW_DONE : STOW_NO_KERNEL_HELP;
}

static void end_with_faults(struct stow_back *self) {
    stop_listeners(self);
    if (self->uffd >= 0) os_close(self->uffd);
    for (uint32_t i = 0; i < self->pipe_count; i++) os_close(self->pipes[i].ends[0]), os_close(self->pipes[i].ends[1]);
    self->uffd = self->stop = -1;
    self->pipe_count = 0;
}

uint32_t stow_back_begin(struct stow_back *self, bool mine, bool own_files) {
    *self = (struct stow_back){.mine = mine, .own_files = own_files, .uffd = -1, .stop = -1};
    self->pagemap = stow_pages_open();
    uint32_t refusal = self->pagemap < 0 ? STOW_NO_DESCRIPTOR : map_buffers(self) ? STOW_DONE : STOW_ADDRESS_SPACE;
    if (!refusal) {
        refusal = begin_with_faults(self);
        if (refusal) end_with_faults(self);
        if (mine) refusal = STOW_DONE;
    }
    if (refusal) stow_back_end(self);
    return refusal;
}

static void stop_reading(struct stow_back *self) {
    if (self->reads) stow_read_end(&self->reading);
    self->reads = false;
}

void stow_back_end(struct stow_back *self) {
    stop_reading(self);
    end_with_faults(self);
    if (self->pagemap >= 0) os_close(self->pagemap);
    for (uint32_t i = 0; i < self->file_count && !self->own_files; i++) os_close(self->files[i].fd);
    if (self->buffer_mapped) os_unmap(self->buffer_mapped, BUFFER_MAPPED);
    if (self->text) os_unmap(self->text, STOW_AREA_TEXT);
    *self = (struct stow_back){.uffd = -1, .pagemap = -1, .stop = -1};
}

void stow_back_expect(struct stow_back *self, uint64_t until) {
    self->until = until;
    self->expected = 0;
}

/* --- the file behind a mapping --- */

/* Opens the file behind a mapping. Without the privilege for that (CAP_CHECKPOINT_RESTORE) it returns -EPERM. */
static int open_behind(const struct stow_area *area) {
    char path[80] = "/proc/self/map_files/", *end = os_hexadecimal(path + strlen(path), area->start);
    *end++ = '-';
    os_hexadecimal(end, area->end);
    int fd = os_open(path, O_RDONLY | O_DIRECT, 0);
    return fd == -EINVAL ? os_open(path, O_RDONLY, 0) : fd;
}

/* Returns the descriptor of the file behind a mapping. Opens the file if it is not open yet. Descriptors of up to
 * BACK_FILES files stay open until the move ends. But if the thread has a descriptor table of its own, they stay open
 * until the thread ends. Then nobody waits for the closing, which may take long: when the last part of a file is back,
 * the file system frees the file's blocks. */
static int file_behind(struct stow_back *self, const struct stow_area *area) {
    for (uint32_t i = 0; i < self->file_count; i++)
        if (self->files[i].inode == area->inode && self->files[i].device == area->device) return self->files[i].fd;
    stop_reading(self);
    int fd = open_behind(area);
    if (fd < 0) return fd;
    if (self->file_count == BACK_FILES) os_close(self->files[--self->file_count].fd);
    self->files[self->file_count++] = (struct back_file){fd, area->device, area->inode};
    return fd;
}

/* --- bringing back, while threads that touch the range wait --- */

static uint32_t empty_pipe(const struct back_pipe *pipe, char *to, uint64_t length) {
    for (uint64_t done = 0; done < length;) {
        long got = os_call(SYS_read, pipe->ends[0], to + done, (long)(length - done));
        if (got == -EINTR) continue;
        if (got <= 0) return STOW_NO_KERNEL_HELP;
        done += (uint64_t)got;
    }
    return STOW_DONE;
}

/* Reads the content of the pipes, in the order in which it was put in. */
static void empty_pipes(struct stow_back *self, char *to, uint64_t length) {
    for (uint32_t i = 0; length; i++) {
        uint64_t part = length < self->pipes[i].capacity ? length : self->pipes[i].capacity;
        empty_pipe(&self->pipes[i], to, part);
        to += part, length -= part;
    }
}

static uint64_t hold_in(const struct back_pipe *pipe, uint64_t start, uint64_t length) {
    uint64_t done = 0;
    while (done < length) {
        struct iovec part = {(void *)(start + done), length - done};
        long put = os_call(SYS_vmsplice, pipe->ends[1], &part, 1, 0);
        if (put == -EINTR) continue;
        if (put <= 0) break;
        done += (uint64_t)put;
    }
    return done;
}

/* Puts the pages themselves, not copies, into the pipes. If not all pages fit, the pages that are already in the pipes
 * are read out again, into `waste`. */
static uint32_t hold_pages(struct stow_back *self, uint64_t start, uint64_t length, char *waste) {
    uint64_t done = 0, put = 0;
    for (uint32_t i = 0; done < length; i++, done += put) {
        uint64_t part = length - done < self->pipes[i].capacity ? length - done : self->pipes[i].capacity;
        put = hold_in(&self->pipes[i], start + done, part);
        if (put == part) continue;
        empty_pipes(self, waste, done + put);
        return STOW_NO_KERNEL_HELP;
    }
    return STOW_DONE;
}

/* Waits before the next try of a step that must succeed: at first for a moment, later for some milliseconds. So a lack
 * of memory in the kernel costs no processor time. */
static void wait_for_kernel(int turn) {
    const struct timespec pause = {.tv_nsec = 1000 << (turn < LONGEST_PAUSE ? turn : LONGEST_PAUSE)};
    os_call(SYS_nanosleep, &pause, 0);
}

/* Copies content into the empty range. This must succeed, because the content is nowhere else by now. */
static void copy_in(struct stow_back *self, uint64_t start, uint64_t length, const char *from) {
    uint64_t done = stow_uffd_copy(self->uffd, start, (uint64_t)from, length) == 0 ? length : 0;
    for (int turn = 0; done < length;) {
        long result = stow_uffd_copy(self->uffd, start + done, (uint64_t)from + done, OS_PAGE);
        if (stow_uffd_is_lost(result)) memcpy((void *)(start + done), from + done, OS_PAGE);
        if (result == 0 || result == -EEXIST || stow_uffd_is_lost(result))
            done += OS_PAGE, turn = 0;
        else
            wait_for_kernel(turn++);
    }
}

static bool is_hole(uint64_t start) {
    unsigned char there;
    return os_call(SYS_mincore, start, OS_PAGE, &there) == -ENOMEM;
}

/* Moves a mapping over the range. The kernel unmaps the range's old mapping first. If the kernel then has no memory for
 * the new one, the call is repeated until it succeeds: the content is in the pipes or in a copy, and can go nowhere
 * else. False: the kernel refused at once, and the old mapping is still there. */
static bool put_over(char *mapping, uint64_t start, uint64_t length) {
    for (int turn = 0;; turn++) {
        long at = os_call(SYS_mremap, mapping, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, start);
        if (at == (long)start || !is_hole(start)) return at == (long)start;
        wait_for_kernel(turn);
    }
}

static void stow_back_pour(struct stow_back *self, uint64_t start, uint64_t length) {
    for (uint32_t i = 0; length; i++) {
        uint64_t rest = length < self->pipes[i].capacity ? length : self->pipes[i].capacity;
        for (uint64_t part; rest; start += part, length -= part, rest -= part) {
            part = rest < POURED ? rest : POURED;
            empty_pipe(&self->pipes[i], self->buffer, part);
            copy_in(self, start, part, self->buffer);
        }
    }
}

static uint32_t swap_held(struct stow_back *self, struct stow_ahead *ahead, uint64_t start, uint64_t length,
                          char *empty) {
    uint32_t refusal = hold_pages(self, start, length, self->buffer);
    if (refusal) return refusal;
    stow_ahead_pause(ahead);
    bool over = put_over(empty, start, length);
    stow_ahead_resume(ahead);
    if (!over) {
        empty_pipes(self, self->buffer, length);
        return STOW_ADDRESS_SPACE;
    }
    stow_back_pour(self, start, length);
    stow_uffd_wake(self->uffd, start, length);
    return STOW_DONE;
}

/* Copies pages that were written since they were stowed. Repeats this until a comparison finds nothing new, because the
 * caller may be wrong when it says that nobody writes. STOW_IN_USE: somebody still writes. */
static uint32_t copy_own(struct stow_back *self, uint64_t start, uint64_t end, char *to) {
    for (int turn = 0; turn < TURNS; turn++) {
        uint64_t at = start, run_end, pages;
        bool same = true;
        for (; stow_pages_run(self->pagemap, &at, end, STOW_PAGES_OWN, 1, &run_end, &pages); at = run_end) {
            if (!memcmp(to + (at - start), (void *)at, run_end - at)) continue;
            memcpy(to + (at - start), (void *)at, run_end - at);
            same = false;
        }
        if (same) return STOW_DONE;
    }
    return STOW_IN_USE;
}

static uint32_t swap_read(struct stow_back *self, uint64_t start, uint64_t length, char *empty, char *copy) {
    uint32_t refusal = copy_own(self, start, start + length, copy);
    if (refusal) return refusal;
    if (!put_over(empty, start, length)) return STOW_ADDRESS_SPACE;
    copy_in(self, start, length, copy);
    stow_uffd_wake(self->uffd, start, length);
    return STOW_DONE;
}

/* Maps memory as programs do, so that the mapping can merge with its neighbours. */
static long map_plain(uint64_t at, uint64_t length, int flags) {
    return os_call(SYS_mmap, at, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1);
}

/* Maps an empty range of this length. The range has the same offset in a huge page as `start`. For this, more is mapped
 * at first, and what is before and behind the range is unmapped again. put_over moves parts of the range away later.
 * After that, any thread may map something else at their addresses, so the caller must not unmap these. */
static char *map_like(uint64_t start, uint64_t length) {
    long at = map_plain(0, length + 2 * OS_HUGE_PAGE, 0);
    if (at < 0 && at > -OS_PAGE) return NULL;
    char *mapped = (char *)at, *range = (char *)os_round_up((uintptr_t)mapped, OS_HUGE_PAGE) + start % OS_HUGE_PAGE;
    if (range > mapped) os_unmap(mapped, (size_t)(range - mapped));
    os_unmap(range + length, (size_t)(mapped + 2 * OS_HUGE_PAGE - range));
    return range;
}

/* Registers one page on each side of the range with userfaultfd, so that the range can become one mapping with its
 * neighbours again. This matters, because the program's mremap can make only a single mapping grow.
 * - The kernel merges two mappings with pages only if they have the same anon_vma.
 * - A mapping takes over a neighbour's anon_vma with its first page, but only if both have the same attributes.
 * - Whether a mapping is registered is one of these attributes.
 * If a neighbour is not plain memory, the kernel refuses to register it, and there is nothing to merge with. */
static void register_neighbours(struct stow_back *self, uint64_t start, uint64_t end) {
    stow_uffd_register(self->uffd, start - OS_PAGE, OS_PAGE);
    stow_uffd_register(self->uffd, end, OS_PAGE);
}

static void unregister_with_neighbours(struct stow_back *self, uint64_t start, uint64_t end) {
    stow_uffd_unregister(self->uffd, start, end - start);
    stow_uffd_unregister(self->uffd, start - OS_PAGE, OS_PAGE);
    stow_uffd_unregister(self->uffd, end, OS_PAGE);
}

/* As map_like. If there is too little address space, it maps less, and sets *length to the shorter length. */
static char *map_some_like(uint64_t start, uint64_t *length) {
    char *range;
    while (!(range = map_like(start, *length)) && *length > SMALLEST) *length = os_round_up(*length / 2, OS_PAGE);
    return range;
}

/* The file behind a range. fd < 0: it cannot be opened. */
struct source {
    int fd;
    uint64_t offset;
};

/* Drops pages from the page cache, because nobody reads them again. */
static void drop_cached(const struct source *source, uint64_t from, uint64_t length) {
    if (source->fd >= 0) os_call(SYS_fadvise64, source->fd, source->offset + from, length, POSIX_FADV_DONTNEED);
}

/* Gives the process pages of its own in place of the file's pages, at the same addresses. */
static uint32_t swap_in_place(struct stow_back *self, const struct source *source, uint64_t start, uint64_t length,
                              char *empty, uint64_t *done) {
    struct stow_ahead ahead;
    uint32_t refusal = STOW_DONE;
    stow_ahead_begin(&ahead, start, length, self->until, self->expected, source->fd >= 0);
    while (!refusal && *done < length) {
        uint64_t part = length - *done < self->pipes_capacity ? length - *done : self->pipes_capacity;
        part = stow_ahead_wait(&ahead, *done, part);
        refusal = part ? swap_held(self, &ahead, start + *done, part, empty + *done) : ahead.refusal;
        if (refusal) break;
        drop_cached(source, *done, part);
        *done += part;
    }
    stow_ahead_end(&ahead);
    self->expected = ahead.expected;
    return refusal;
}

/* Whether a read of this file is in progress whose next byte is at source->offset. */
static bool reads_on(const struct stow_back *self, const struct source *source) {
    const struct stow_read *reading = &self->reading;
    return self->reads && !reading->refusal && reading->fd == source->fd && reading->taken < reading->length &&
           reading->offset + reading->taken == source->offset;
}

/* Begins to read the file for this range, and for the rest of the move as far as the rest lies in the same mapping.
 * But if a read in progress comes to this range next, that read goes on, and no new read begins. */
static void read_from(struct stow_back *self, const struct stow_area *area, const struct source *source,
                      uint64_t length) {
    if (reads_on(self, source)) return;
    stop_reading(self);
    uint64_t start = area->start + (source->offset - area->offset);
    uint64_t end = self->until < area->end ? self->until : area->end;
    if (end < start + length) end = start + length;
    stow_read_begin(&self->reading, source->fd, source->offset, end - start, self->buffer, BACK_BUFFER / READ_PIECE);
    self->reads = true;
}

static uint32_t swap_read_ahead(struct stow_back *self, const struct source *source, uint64_t start, uint64_t length,
                                char *empty, uint64_t *done) {
    uint32_t refusal = STOW_DONE;
    while (!refusal && *done < length) {
        char *copy;
        uint64_t part = stow_read_wait(&self->reading, &copy);
        if (part > length - *done) part = length - *done;
        refusal = part ? swap_read(self, start + *done, part, empty + *done, copy) : self->reading.refusal;
        if (refusal) break;
        stow_read_take(&self->reading, part);
        *done += part;
    }
    drop_cached(source, 0, length);
    return refusal;
}

/* Brings a range back, while threads that touch it wait. All of the range stays registered until all of it is back, so
 * that its parts become one mapping: the kernel would not merge a registered part with one that is not registered any
 * more (register_neighbours). */
static uint32_t with_faults(struct stow_back *self, const struct stow_area *area, uint64_t start, uint64_t length,
                            uint64_t *done) {
    struct source source = {file_behind(self, area), area->offset + (start - area->start)};
    char *empty = map_some_like(start, &length);
    if (!empty) return STOW_ADDRESS_SPACE;
    uint32_t refusal = stow_uffd_register(self->uffd, (uint64_t)empty, length) < 0 ? STOW_NO_KERNEL_HELP : STOW_DONE;
    register_neighbours(self, start, start + length);
    if (!refusal && self->mine && source.fd >= 0) {
        read_from(self, area, &source, length);
        refusal = swap_read_ahead(self, &source, start, length, empty, done);
    } else if (!refusal) {
        refusal = swap_in_place(self, &source, start, length, empty, done);
    }
    unregister_with_neighbours(self, start, start + length);
    if (*done < length) os_unmap(empty + *done, length - *done);
    return refusal;
}

/* --- nobody else uses the range, and there is no userfaultfd --- */

static long read_file(int fd, char *to, uint64_t length, uint64_t offset) {
    for (uint64_t done = 0; done < length;) {
        long got = os_pread(fd, to + done, length - done, offset + done);
        if (got <= 0) return got ? got : -EIO;
        done += (uint64_t)got;
    }
    return 0;
}

static uint32_t read_through(uint64_t start, uint64_t length, char *to) {
    bool known;
    uint32_t refusal = stow_ahead_populate(start, length, false, &known);
    if (!refusal) memcpy(to, (void *)start, length);
    return refusal;
}

static uint32_t read_whole(struct stow_back *self, const struct stow_area *area, uint64_t start, uint64_t length,
                           char *to) {
    int fd = file_behind(self, area);
    if (fd < 0) return read_through(start, length, to);
    long result = read_file(fd, to, length, area->offset + (start - area->start));
    os_call(SYS_fadvise64, fd, area->offset + (start - area->start), length, POSIX_FADV_DONTNEED);
    return result < 0 ? STOW_DISK_ERROR : STOW_DONE;
}

static bool map_fresh(uint64_t start, uint64_t length) {
    for (int turn = 0;; turn++) {
        long at = map_plain(start, length, MAP_FIXED);
        if (at == (long)start || !is_hole(start)) return at == (long)start;
        wait_for_kernel(turn);
    }
}

static uint32_t stow_back_undisturbed(struct stow_back *self, const struct stow_area *area, uint64_t start,
                                      uint64_t length) {
    uint32_t refusal = read_whole(self, area, start, length, self->buffer);
    if (!refusal) refusal = copy_own(self, start, start + length, self->buffer);
    if (!refusal && !map_fresh(start, length)) refusal = STOW_ADDRESS_SPACE;
    if (!refusal) memcpy((void *)start, self->buffer, length);
    return refusal;
}

/* Returns a refusal if a device may hold pages of the range, otherwise STOW_DONE. Such a range must not come back,
 * because memory that comes back has new pages: if the device wrote to the old pages later, nobody would see what it
 * wrote. A device can hold only pages that are the process's own. */
static uint32_t why_held(struct stow_back *self, uint64_t start, uint64_t end) {
    uint64_t run_end, pages;
    if (!stow_pages_run(self->pagemap, &start, end, STOW_PAGES_OWN, 1, &run_end, &pages)) return STOW_DONE;
    if (self->held_unseen) return STOW_HELD_UNSEEN;
    return stow_pages_are_pinned() ? STOW_PINNED : STOW_DONE;
}

uint32_t stow_back_in(struct stow_back *self, uint64_t start, uint64_t length, uint64_t *done) {
    struct stow_area area;
    *done = 0;
    if (!stow_area_at(start, self->text, &area) || area.shared || !area.file) return STOW_GONE;
    if (!area.read || !area.write) return STOW_NO_ACCESS;
    if (length > area.end - start) length = area.end - start;
    uint32_t refusal = why_held(self, start, start + length);
    if (refusal) return refusal;
    if (self->uffd >= 0) return with_faults(self, &area, start, length, done);
    if (length > BACK_BUFFER) length = BACK_BUFFER;
    refusal = stow_back_undisturbed(self, &area, start, length);
    *done = refusal ? 0 : length;
    return refusal;
}
