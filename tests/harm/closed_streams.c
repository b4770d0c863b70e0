/* closed_streams.c NUMBER — closes the standard stream with this descriptor number. Then the main thread makes the
 * ledger grow, while two threads write to the closed number as fast as they can. Prints how many writes succeeded. A
 * write succeeds only if a file that can be written to, such as the ledger, has got the number. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCKS = 30000 };

static int closed;
static volatile int over;
static unsigned long written;

static void *log_lines(void *nothing) {
    static const char line[] = "a line for a log that nobody reads any more\n";
    while (!over)
        if (write(closed, line, sizeof line - 1) > 0) __atomic_fetch_add(&written, 1, __ATOMIC_RELAXED);
    return nothing;
}

int main(int count, char **arguments) {
    static void *volatile blocks[BLOCKS];
    pthread_t threads[2];
    int report = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 10);
    closed = count > 1 ? atoi(arguments[1]) : STDERR_FILENO;
    close(closed);
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, log_lines, NULL);
    for (int i = 0; i < BLOCKS; i++) blocks[i] = malloc(70000);
    over = 1;
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    dprintf(report, "%lu\n", written);
    return 0;
}
