// Queued writes to a file under bad conditions: the kernel has no queue, refuses a piece, writes a part of it or
// nothing, or is interrupted; the disk is full; the program closes the descriptor or ends the queue.
// build: -Wl,--wrap=os_call6
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/base/forked.h"
#include "preload/shared/os.h"
#include "preload/stow/stow.h"
#include "preload/stow/stow_queue.h"

enum { LENGTH = (16 << 20) + STOW_PIECE / 2, SHORT = 3 * OS_PAGE };

/* The errors that the test injects, and the calls that were made. */
static struct {
    long setup, submit, result, written; /* answers instead of the kernel's; 0: the kernel's */
    bool is_short, is_interrupted, is_not_direct;
    uint32_t submitted, waited, plain, flushed, queues;
} faults;

long __real_os_call6(long number, long a, long b, long c, long d, long e, long f);
long __wrap_os_call6(long number, long a, long b, long c, long d, long e, long f);

static long submit(long a, long b, struct iocb **pieces) {
    uint64_t length = pieces[0]->aio_nbytes;
    faults.submitted++;
    if (faults.submit) return faults.submit;
    if (faults.is_short && length > SHORT) pieces[0]->aio_nbytes = SHORT;
    long result = __real_os_call6(SYS_io_submit, a, b, (long)pieces, 0, 0, 0);
    pieces[0]->aio_nbytes = length;
    return result;
}

static long reap(long a, long b, long c, struct io_event *events, long e) {
    if (faults.is_interrupted && faults.waited++ % 2 == 0) return -EINTR;
    long count = __real_os_call6(SYS_io_getevents, a, b, c, (long)events, e, 0);
    for (long i = 0; i < count; i++)
        if (faults.result) events[i].res = faults.result;
    return count;
}

static long write_plainly(long a, long b, long c, long d) {
    faults.plain++;
    if (faults.written) return faults.written;
    if (faults.is_not_direct && fcntl((int)a, F_GETFL) & O_DIRECT) return -EINVAL;
    return __real_os_call6(SYS_pwrite64, a, b, c, d, 0, 0);
}

long __wrap_os_call6(long number, long a, long b, long c, long d, long e, long f) {
    if (number == SYS_io_submit) return submit(a, b, (struct iocb **)c);
    if (number == SYS_io_getevents) return reap(a, b, c, (struct io_event *)d, e);
    if (number == SYS_pwrite64) return write_plainly(a, b, c, d);
    if (number == SYS_io_setup && faults.setup) return faults.setup;
    faults.queues += number == SYS_io_setup;
    faults.queues -= number == SYS_io_destroy;
    faults.flushed += number == SYS_fdatasync;
    return __real_os_call6(number, a, b, c, d, e, f);
}

static struct stow_file file;
static struct stow_queue queue;

static void open_queue(uint64_t size) {
    static const char *const places[] = {".", "/var/tmp"};
    uint32_t refusal = STOW_NO_DIRECTORY;
    for (int i = 0; i < 2 && refusal; i++) refusal = stow_file_open(&file, places[i], size);
    if (refusal) cr_skip_test("this folder and /var/tmp are both in memory");
    if (!file.direct) cr_skip_test("this disk has no writes past the page cache");
    memset(&faults.submitted, 0, sizeof faults - offsetof(__typeof__(faults), submitted));
    cr_assert_eq(stow_queue_open(&queue, &file, size), STOW_DONE);
}

static void close_queue(void) {
    stow_queue_close(&queue);
    cr_expect_leq(faults.queues, 1, "one is kept for the next file");
    stow_file_close(&file);
}

static uint64_t word_at(uint64_t at) { return at * 0x9E3779B97F4A7C15u; }

/* Writes the file piece by piece. Of every three pieces, one lies in memory of the caller (`own`), and two lie in the
 * queue's buffers. */
static uint32_t write_everything(char *own) {
    uint32_t refusal = STOW_DONE;
    for (uint64_t at = 0; at < LENGTH && !refusal; at += STOW_PIECE) {
        uint64_t part = LENGTH - at < STOW_PIECE ? LENGTH - at : STOW_PIECE;
        char *pages = at / STOW_PIECE % 3 ? stow_queue_buffer(&queue) : own + at;
        if (!pages) return queue.refusal;
        for (uint64_t i = 0; i < part; i += 8) *(uint64_t *)(pages + i) = word_at(at + i);
        refusal = stow_queue_write(&queue, pages, part);
    }
    return refusal ? refusal : stow_queue_finish(&queue);
}

static uint32_t result_of(uint64_t size) {
    char *own = os_map(LENGTH);
    open_queue(size);
    uint32_t refusal = write_everything(own);
    if (!refusal) {
        file.used = 0;
        char *back = stow_file_map(&file, LENGTH);
        cr_assert(back);
        for (uint64_t i = 0; i < LENGTH; i += 8) cr_assert_eq(*(uint64_t *)(back + i), word_at(i), "at %zu", (size_t)i);
        os_unmap(back, LENGTH);
    }
    close_queue();
    os_unmap(own, LENGTH);
    return refusal;
}

Test(stow_queue, everything_arrives) {
    cr_expect_eq(result_of(LENGTH), STOW_DONE);
    cr_expect_eq(faults.submitted, 33);
    cr_expect_eq(faults.plain, 0, "the kernel's queue writes all of it");
    cr_expect_eq(faults.flushed, 1);
}

Test(stow_queue, little_has_no_queue) {
    faults.setup = -ENOSYS;
    cr_expect_eq(result_of(LENGTH), STOW_DONE);
    cr_expect_eq(faults.submitted, 0);
    faults.setup = 0;
    open_queue(2 * STOW_PIECE);
    cr_expect_eq(queue.context, 0);
    close_queue();
}

Test(stow_queue, one_is_kept) {
    struct stow_queue other;
    open_queue(LENGTH);
    aio_context_t first = queue.context;
    cr_assert_eq(stow_queue_open(&other, &file, LENGTH), STOW_DONE);
    cr_expect_neq(other.context, first, "each has its own");
    stow_queue_close(&other);
    close_queue();
    open_queue(LENGTH);
    cr_expect_eq(queue.context, first);
    cr_expect_eq(faults.queues, 0, "none is made");
    forked_forget();
    cr_assert_eq(stow_queue_open(&other, &file, LENGTH), STOW_DONE);
    cr_expect_eq(faults.queues, 1, "a child has none of its parent's");
    stow_queue_close(&other);
    close_queue();
}

Test(stow_queue, refused_pieces_are_written_at_once) {
    faults.submit = -EAGAIN;
    cr_expect_eq(result_of(LENGTH), STOW_DONE);
    cr_expect_eq(faults.plain, 33);
}

Test(stow_queue, the_rest_of_a_short_write) {
    faults.is_short = true;
    cr_expect_eq(result_of(LENGTH), STOW_DONE);
    cr_expect_eq(faults.plain, 33);
    faults.result = -EIO; /* nothing of it counts as written, and it is tried again */
    cr_expect_eq(result_of(LENGTH), STOW_DONE);
    cr_expect_eq(faults.plain, 33);
}

Test(stow_queue, interrupted_waits) {
    faults.is_interrupted = true;
    cr_expect_eq(result_of(LENGTH), STOW_DONE);
    cr_expect_eq(faults.plain, 0);
}

Test(stow_queue, a_file_that_takes_no_direct_writes_after_all) {
    faults.is_short = faults.is_not_direct = true;
    faults.result = -EINVAL;
    cr_expect_eq(result_of(LENGTH), STOW_DONE);
    cr_expect_not(file.direct);
    cr_expect_geq(faults.flushed, 3, "the page cache is not filled");
}

Test(stow_queue, a_full_disk) {
    faults.is_short = true;
    faults.written = -ENOSPC;
    cr_expect_eq(result_of(LENGTH), STOW_DISK_FULL);
    cr_expect_eq(faults.plain, 1, "nothing is written after a failure");
    faults.written = -EIO;
    cr_expect_eq(result_of(LENGTH), STOW_DISK_ERROR);
}

Test(stow_queue, a_closed_descriptor) {
    char *own = os_map(LENGTH);
    open_queue(LENGTH);
    cr_assert_eq(stow_queue_write(&queue, own, STOW_PIECE), STOW_DONE);
    int other = dup(0);
    dup2(other, file.fd);
    cr_expect_eq(write_everything(own), STOW_NO_DESCRIPTOR);
    cr_expect_null(stow_queue_buffer(&queue));
    cr_expect_eq(stow_queue_finish(&queue), STOW_NO_DESCRIPTOR);
    close_queue();
    cr_expect_neq(fcntl(file.fd, F_GETFD), -1, "it is the program's");
    close(file.fd);
    close(other);
    os_unmap(own, LENGTH);
}

Test(stow_queue, a_queue_that_the_program_has_ended) {
    char *own = os_map(LENGTH);
    open_queue(LENGTH);
    cr_assert_eq(stow_queue_write(&queue, own, STOW_PIECE), STOW_DONE);
    cr_assert_eq(syscall(SYS_io_destroy, queue.context), 0);
    cr_expect_eq(stow_queue_finish(&queue), STOW_DISK_ERROR);
    close_queue();
    os_unmap(own, LENGTH);
}
