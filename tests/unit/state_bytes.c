// The file of a value: its length is on the disk before anything names the file. If fstat fails, the file is closed. A
// file in memory is not executable, if the kernel supports that.
// build: -Wl,--wrap=os_call6 -Wl,--wrap=os_stat_fd
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/shared/os.h"
#include "preload/state/state_bytes.h"

enum { SMALL = 100, NO_EXEC = 8 };

static bool length_is_set, length_is_flushed, cannot_be_asked;
static int memory_files; /* -EACCES: NO_EXEC is needed. -EINVAL: the kernel does not know NO_EXEC. 0: it takes both */

long __real_os_call6(long number, long a, long b, long c, long d, long e, long f);
long __wrap_os_call6(long number, long a, long b, long c, long d, long e, long f);
int __real_os_stat_fd(int fd, struct stat *out);
int __wrap_os_stat_fd(int fd, struct stat *out);

long __wrap_os_call6(long number, long a, long b, long c, long d, long e, long f) {
    if (number == SYS_ftruncate) length_is_set = true, length_is_flushed = false;
    if (number == SYS_fdatasync) length_is_flushed = length_is_set;
    if (number == SYS_memfd_create && memory_files == (b & NO_EXEC ? -EINVAL : -EACCES)) return memory_files;
    if (number == SYS_memfd_create) b &= ~NO_EXEC; /* the kernel of this test may be old */
    return __real_os_call6(number, a, b, c, d, e, f);
}

int __wrap_os_stat_fd(int fd, struct stat *out) { return cannot_be_asked ? -EIO : __real_os_stat_fd(fd, out); }

/* Puts a value on a disk, into a file without a name. */
static int put_small(struct state_bytes *out, const struct state_source *source) {
    static const char *const places[] = {".", "/var/tmp"};
    int error = -ENOENT;
    for (int i = 0; i < 2 && error; i++) {
        int folder = os_open(places[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
        error = state_bytes_in_folder(out, source, folder);
        os_close(folder);
    }
    return error;
}

/* More space is reserved than a small value needs. */
Test(state_bytes, the_length_is_flushed) {
    char bytes[SMALL] = "bytes";
    const struct memstow_state_part part = {(uint64_t)bytes, SMALL};
    struct state_header *header = calloc(1, sizeof *header + sizeof part);
    struct state_source source = {header, &part};
    struct state_bytes value;
    header->parts = 1;
    header->part[0].length = SMALL;
    cr_assert(state_header_lay_out(header));
    int error = put_small(&value, &source);
    if (error == -ENOTSUP) cr_skip_test("no disk here");
    cr_assert_eq(error, 0, "%d", error);
    cr_expect(length_is_set);
    cr_expect(length_is_flushed, "it is set after the last flush");
    cr_expect_eq(lseek(value.file.fd, 0, SEEK_END), (off_t)header->length);
    state_bytes_drop(&value);
    free(header);
}

Test(state_bytes, a_descriptor_that_cannot_be_asked_is_closed) {
    struct state_bytes value;
    int fd = os_open("/dev/null", O_RDONLY | O_CLOEXEC, 0);
    cannot_be_asked = true;
    cr_expect_eq(state_bytes_from_file(&value, fd, OS_PAGE, 0), -EIO);
    cannot_be_asked = false;
    cr_expect_eq(fcntl(fd, F_GETFD), -1);
    cr_expect_null(value.base);
}

static int put_in_memory(struct state_bytes *value, int files) {
    struct state_header header = {.type = "t", .length = OS_PAGE};
    const struct state_source source = {&header, NULL};
    memory_files = files;
    return state_bytes_in_memory(value, &source);
}

/* As with vm.memfd_noexec=2, and as before Linux 6.3. */
Test(state_bytes, a_file_in_memory_needs_no_execution) {
    static const int kernels[] = {-EACCES, -EINVAL};
    struct state_bytes value;
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(put_in_memory(&value, kernels[i]), 0, "%d", kernels[i]);
        state_bytes_drop(&value);
    }
}
