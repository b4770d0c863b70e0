// A program asks for snapshots of itself, and the memstow command writes them. The program does not notice the command:
// it gets no SIGCHLD, wait finds no child, no descriptor is added, and errno does not change. This holds if the program
// ignores SIGCHLD, has a handler for SIGCHLD, or has a thread that waits for children.
#include "expect.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/wait.h>

static int32_t (*snapshot)(const char *path);
static volatile sig_atomic_t children_ended;
static volatile int stop;

static void count(int number) {
    (void)number;
    children_ended++;
}

static int descriptors(void) {
    int n = 0;
    DIR *directory = opendir("/proc/self/fd");
    while (readdir(directory)) n++;
    closedir(directory);
    return n;
}

static void *wait_for_any(void *nothing) {
    while (!stop) {
        MUST(waitpid(-1, NULL, 0) == -1 && errno == ECHILD);
        usleep(100);
    }
    return nothing;
}

static int is_snapshot(const char *path) {
    char magic[8] = "";
    int fd = open(path, O_RDONLY);
    long n = read(fd, magic, 8);
    close(fd);
    return n == 8 && !memcmp(magic, "MEMSTOW\n", 8);
}

static void take(const char *path) {
    errno = 1234;
    MUST(snapshot(path) == 0);
    MUST(errno == 1234);
    MUST(is_snapshot(path));
}

static void refuse(void) {
    close(open("precious", O_CREAT | O_WRONLY, 0600));
    MUST(snapshot("precious") == -EEXIST);
    struct stat status;
    MUST(stat("precious", &status) == 0 && status.st_size == 0);
    MUST(snapshot("no/such/folder.mst") == -ENOENT);
    MUST(snapshot("") == -EINVAL);
    MUST(snapshot(NULL) == -EINVAL);
    MUST(snapshot((const char *)16) == -EFAULT);
    unlink("precious");
}

int main(void) {
    pthread_t waiting;
    snapshot = (int32_t(*)(const char *))dlsym(RTLD_DEFAULT, "memstow_snapshot");
    signal(SIGCHLD, count);
    pthread_create(&waiting, NULL, wait_for_any, NULL);
    int before = descriptors();
    if (snapshot) {
        take("itself.mst");
        take("itself.mst"); /* the earlier one is replaced */
        signal(SIGCHLD, SIG_IGN);
        take("ignored.mst");
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, NULL);
        take("-o"); /* a name like any other */
        refuse();
    }
    stop = 1;
    pthread_join(waiting, NULL);
    MUST(children_ended == 0);
    MUST(descriptors() == before);
    sigset_t pending;
    sigpending(&pending);
    MUST(!sigismember(&pending, SIGCHLD));
    say("ok");
    return 0;
}
