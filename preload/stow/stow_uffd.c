/* stow_uffd.c — see stow_uffd.h. */
#include "preload/stow/stow_uffd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "preload/shared/os.h"

/* The headers of Debian 12 lack these. */
#ifndef UFFDIO_MOVE
struct uffdio_move {
    uint64_t dst, src, len, mode;
    int64_t move;
};
#define UFFDIO_MOVE _IOWR(UFFDIO, 0x05, struct uffdio_move)
#define UFFDIO_MOVE_MODE_DONTWAKE ((uint64_t)1 << 0)
#define UFFDIO_MOVE_MODE_ALLOW_SRC_HOLES ((uint64_t)1 << 1)
#define UFFD_FEATURE_MOVE ((uint64_t)1 << 16)
#endif
#ifndef USERFAULTFD_IOC_NEW
#define USERFAULTFD_IOC_NEW _IO(0xAA, 0x00)
#endif

enum { RETRIES = 2000 };

static int open_descriptor(void) {
    long fd = os_call(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0) return (int)fd;
    int device = os_open("/dev/userfaultfd", O_RDWR, 0);
    if (device < 0) return (int)fd;
    fd = os_call(SYS_ioctl, device, USERFAULTFD_IOC_NEW, O_CLOEXEC | O_NONBLOCK);
    os_close(device);
    return (int)fd;
}

static int open_with(uint64_t features) {
    struct uffdio_api api = {.api = UFFD_API, .features = features};
    int fd = open_descriptor();
    if (fd < 0) return fd;
    long result = os_call(SYS_ioctl, fd, UFFDIO_API, &api);
    if (result < 0) os_close(fd);
    return result < 0 ? (int)result : fd;
}

int stow_uffd_open(uint32_t wanted, uint32_t *features) {
    const uint64_t asked = wanted & UFFD_MOVES     ? UFFD_FEATURE_MOVE
                           : wanted & UFFD_FOLLOWS ? UFFD_FEATURE_EVENT_REMAP
                                                   : 0;
    int fd = open_with(asked);
    *features = wanted;
    if (fd != -EINVAL || !asked) return fd;
    *features = 0;
    return open_with(0);
}

long stow_uffd_register(int fd, uint64_t start, uint64_t length) {
    struct uffdio_register request = {.range = {start, length}, .mode = UFFDIO_REGISTER_MODE_MISSING};
    return os_call(SYS_ioctl, fd, UFFDIO_REGISTER, &request);
}

void stow_uffd_unregister(int fd, uint64_t start, uint64_t length) {
    struct uffdio_range range = {start, length};
    os_call(SYS_ioctl, fd, UFFDIO_UNREGISTER, &range);
    stow_uffd_wake(fd, start, length);
}

void stow_uffd_wake(int fd, uint64_t start, uint64_t length) {
    struct uffdio_range range = {start, length};
    os_call(SYS_ioctl, fd, UFFDIO_WAKE, &range);
}

/* Whether to repeat a request that stopped halfway. The kernel stops (-EAGAIN) for many reasons that pass. *idle: how
 * many attempts in a row made no progress. */
static bool may_go_on(long result, int64_t done, int *idle) {
    *idle = done > 0 ? 0 : *idle + 1;
    if (done <= 0 && result == -EAGAIN) os_call(SYS_sched_yield);
    return result == -EAGAIN && *idle < RETRIES;
}

long stow_uffd_move(int fd, uint64_t to, uint64_t from, uint64_t length, uint64_t *done) {
    *done = 0;
    for (int idle = 0; *done < length;) {
        struct uffdio_move request = {.dst = to + *done,
                                      .src = from + *done,
                                      .len = length - *done,
                                      .mode = UFFDIO_MOVE_MODE_DONTWAKE | UFFDIO_MOVE_MODE_ALLOW_SRC_HOLES};
        long result = os_call(SYS_ioctl, fd, UFFDIO_MOVE, &request);
        if (result == 0) request.move = (int64_t)request.len;
        if (request.move > 0) *done += (uint64_t)request.move;
        if (result < 0 && !may_go_on(result, request.move, &idle)) return result;
    }
    return 0;
}

bool stow_uffd_is_lost(long result) { return result == -EBADF || result == -ENOTTY || result == -EPERM; }

long stow_uffd_copy(int fd, uint64_t to, uint64_t from, uint64_t length) {
    for (int idle = 0; length;) {
        struct uffdio_copy request = {.dst = to, .src = from, .len = length, .mode = UFFDIO_COPY_MODE_DONTWAKE};
        long result = os_call(SYS_ioctl, fd, UFFDIO_COPY, &request);
        if (result == 0) return 0;
        if (!may_go_on(result, request.copy, &idle)) return result;
        uint64_t done = request.copy > 0 ? (uint64_t)request.copy : 0;
        to += done, from += done, length -= done;
    }
    return 0;
}
