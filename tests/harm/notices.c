/* notices.c HOW — damages memstow's header in front of a block, in a way that does no harm without memstow, and frees
 * the block. memstow then prints a line. HOW says what descriptor 2 is at that time:
 *   usual: what the program began with
 *   limit: what the program began with, a file that has reached RLIMIT_FSIZE
 *   file: a file of the program's
 *   log: a file that is opened to append
 *   unread: a pipe without a reader
 *   full: a full pipe that nobody reads
 * Ends with status 5, and leaves the files "data" and "log". */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static void put(int fd) {
    if (fd < 0 || dup2(fd, STDERR_FILENO) != STDERR_FILENO) _exit(90);
    if (fd != STDERR_FILENO) close(fd);
}

static void put_pipe(int keeps_reader) {
    int ends[2];
    char bytes[4096] = {0};
    if (pipe(ends)) _exit(91);
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    while (keeps_reader && write(ends[1], bytes, sizeof bytes) > 0) continue;
    fcntl(ends[1], F_SETFL, 0);
    put(ends[1]);
    if (!keeps_reader) close(ends[0]);
}

int main(int count, char **arguments) {
    const char *how = count > 1 ? arguments[1] : "";
    if (!strcmp(how, "file")) put(open("data", O_RDWR | O_CREAT | O_TRUNC, 0600));
    if (!strcmp(how, "log")) put(open("log", O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600));
    if (!strcmp(how, "unread")) put_pipe(0);
    if (!strcmp(how, "full")) put_pipe(1);
    if (!strcmp(how, "limit")) {
        struct stat status;
        if (fstat(STDERR_FILENO, &status)) _exit(92);
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){(rlim_t)status.st_size, RLIM_INFINITY});
    }
    char *volatile block = malloc(100);
    block[-16] ^= 1;
    free(block);
    return 5;
}
