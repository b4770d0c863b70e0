// A file of ours that can be written to never gets the number of a standard stream that the program has closed.
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "preload/shared/os.h"

/* What was seen while some of the numbers 0 to 2 were closed. */
struct seen {
    int file, in_folder, memory, missing;
    bool closed_again;
};

static void look(unsigned closed, struct seen *seen) {
    int saved[3], folder = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int fd = 0; fd < 3; fd++) saved[fd] = fcntl(fd, F_DUPFD_CLOEXEC, 10);
    for (int fd = 0; fd < 3; fd++)
        if (closed >> fd & 1) close(fd);
    seen->file = os_open("file", O_RDWR | O_CREAT, 0600);
    seen->in_folder = os_open_in(folder, "file", O_WRONLY, 0);
    seen->memory = os_open_memory("memory", 0);
    seen->missing = os_open("nowhere", O_RDWR, 0);
    seen->closed_again = true;
    for (int fd = 0; fd < 3; fd++)
        if (closed >> fd & 1) seen->closed_again &= fcntl(fd, F_GETFD) == -1;
    for (int fd = 0; fd < 3; fd++) {
        if (saved[fd] < 0) continue;
        dup2(saved[fd], fd);
        close(saved[fd]);
    }
    close(folder);
}

Test(os_streams, numbers_stay_free) {
    for (unsigned closed = 0; closed < 8; closed++) {
        struct seen seen;
        look(closed, &seen);
        cr_assert(seen.file > 2 && seen.in_folder > 2 && seen.memory > 2, "%u: %d %d %d", closed, seen.file,
                  seen.in_folder, seen.memory);
        cr_assert_eq(seen.missing, -ENOENT);
        cr_assert(seen.closed_again, "%u", closed);
        close(seen.file), close(seen.in_folder), close(seen.memory);
    }
}
