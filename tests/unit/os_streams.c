// A descriptor of memstow's that can be written to never gets the number of a standard stream that the program has
// closed.
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "preload/shared/os.h"

/* What was seen while some of the descriptors 0 to 2 were closed. */
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

static unsigned got_a_stream;

static void *open_often(void *nothing) {
    enum { TIMES = 30000 };
    for (int i = 0; i < TIMES; i++) {
        int fd = os_open_memory("memory", 0);
        if (fd < 3) __atomic_fetch_add(&got_a_stream, 1, __ATOMIC_RELAXED);
        close(fd);
    }
    return nothing;
}

/* Thread A looks which descriptors are free while thread B holds descriptor 2. B closes descriptor 2 before A opens
 * its file. A's file must not get descriptor 2 either. */
Test(os_streams, numbers_stay_free_beside_another_thread, .timeout = 60) {
    pthread_t other;
    int saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
    close(STDERR_FILENO);
    pthread_create(&other, NULL, open_often, NULL);
    open_often(NULL);
    pthread_join(other, NULL);
    dup2(saved, STDERR_FILENO);
    cr_assert_eq(got_a_stream, 0, "%u times", got_a_stream);
}
