/* control_bound.c FOLDER CHILDREN — another process holds the folder's lock for long, and removes sockets that look
 * like those of processes that are gone. Meanwhile children open owners. Prints how many of the children's sockets are
 * there in the end. */
#define _GNU_SOURCE
#include "../prog/abi.h"
#include "../prog/expect.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

static const char *folder;

/* Returns the errno of a failed connection to the socket, or 0 if somebody listens there. */
static int connect_to(const char *name) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s/%s", folder, name);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
    int error = connect(fd, (struct sockaddr *)&address, sizeof address) ? errno : 0;
    close(fd);
    return error;
}

/* Again and again removes the sockets of processes that seem to be gone. memstow does this in each process, by the same
 * rule. */
static void remove_stale(void) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (DIR *all = opendir(folder);; rewinddir(all))
        for (struct dirent *entry; (entry = readdir(all));)
            if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9' && connect_to(entry->d_name) == ECONNREFUSED)
                unlinkat(dirfd(all), entry->d_name, 0);
}

static void own_name(char name[300]) {
    char text[1024] = "", *at;
    int fd = open("/proc/self/stat", O_RDONLY), field = 2;
    MUST(read(fd, text, sizeof text - 1) > 0);
    close(fd);
    for (at = strrchr(text, ')'); field < 22; field++) at = strchr(at + 1, ' ');
    snprintf(name, 300, "%s/%d.%llu", folder, getpid(), strtoull(at, NULL, 10));
}

static void be_child(void) {
    char name[300];
    own_name(name);
    MUST(CALL(1, memstow_owner_open, MEMSTOW_NODE, "first", "", 1, 0) > 0);
    for (int i = 0; i < 200 && access(name, F_OK); i++) usleep(10000); /* the thread waits half a second for the lock */
    usleep(20000);
    _exit(access(name, F_OK) != 0);
}

int main(int count, char **arguments) {
    int children = atoi(arguments[2]), there = 0, status;
    folder = arguments[1];
    abi_find();
    MUST(mkdir(folder, 0700) == 0 && flock(open(folder, O_RDONLY | O_DIRECTORY), LOCK_EX) == 0);
    pid_t remover = fork();
    if (!remover) remove_stale();
    for (int i = 0; i < children; i++)
        if (!fork()) be_child();
    for (int i = 0; i < children; i++) {
        MUST(wait(&status) > 0);
        there += status == 0;
    }
    kill(remover, SIGKILL);
    printf("%d of %d\n", there, children);
    return 0;
}
