/* shutdown_file.c — see shutdown_file.h. */
#include "preload/shutdown/shutdown_file.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "preload/shared/os.h"

bool shutdown_file_path(char *to, const char *name) {
    char folder[SHUTDOWN_PATH] = "/";
    size_t length = 0;
    if (name[0] != '/') {
        long got = os_call(SYS_readlink, "/proc/self/cwd", folder, sizeof folder - 1);
        length = got > 0 ? (size_t)got : 1;
        if (length > 1) folder[length++] = '/';
    }
    if (length + strlen(name) >= SHUTDOWN_PATH) return false;
    memcpy(to, folder, length);
    os_copy(to + length, SHUTDOWN_PATH - length, name);
    return true;
}

bool shutdown_file_may_grow(int fd, size_t by) {
    struct stat now;
    return os_stat_fd(fd, &now) == 0 && (uint64_t)now.st_size + by <= os_file_limit();
}
