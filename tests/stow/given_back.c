/* given_back.c — given_back FILE: moves 512 MiB out twice. FILE tells how many bytes the control group uses. Prints a
 * line for each move, in MiB: by how much the group's memory fell, by how much RSS fell, how much was written.
 *
 * The last line is about readings that were taken during the first move. Each reading compares two amounts: the bytes
 * moved so far, and the bytes by which the group's memory has fallen so far. The line has two numbers: the largest
 * excess of the first amount over the second, in MiB, and the number of readings. */
#include "moving.h"

#include <pthread.h>

static const char *group;

static long long group_bytes(void) {
    char text[64] = {0};
    int fd = open(group, O_RDONLY);
    MUST(fd >= 0 && read(fd, text, sizeof text - 1) > 0);
    close(fd);
    return atoll(text);
}

/* Returns how many bytes this process and its reaped children have written to disks. Bytes that the kernel has yet to
 * write count, too. */
static long long written_bytes(void) {
    char text[512] = {0};
    int fd = open("/proc/self/io", O_RDONLY);
    MUST(fd >= 0 && read(fd, text, sizeof text - 1) > 0);
    close(fd);
    const char *at = strstr(text, "\nwrite_bytes: ");
    MUST(at);
    return atoll(at + sizeof "\nwrite_bytes: " - 1);
}

/* What look() sees on another thread during the first move. */
static struct {
    /* before: the group's bytes before the move. most: the largest value of (group's bytes + moved bytes - before) */
    long long before, most;
    int samples; /* readings in the middle of the move */
    bool over;
} seen;

static void *look(void *unused) {
    while (!__atomic_load_n(&seen.over, __ATOMIC_ACQUIRE)) {
        struct stow_progress progress = stow_progress_();
        long long more = group_bytes() + (long long)progress.moved - seen.before;
        if (!progress.at_work || !progress.moved || progress.moved >= progress.wanted) continue;
        if (more > seen.most) seen.most = more;
        seen.samples++;
        usleep(200);
    }
    return unused;
}

int main(int argc, char **argv) {
    enum { LENGTH = 512 * MIB };
    MUST(argc == 2);
    group = argv[1];
    find_engine();
    char *p = map_memory(LENGTH);
    fill(p, LENGTH, 1);
    const struct stow_options idle = {.idle = true}, *options = has_userfaultfd() ? NULL : &idle;
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        seen.before = group_bytes();
        long long resident = (long long)rss(), written = written_bytes();
        if (i == 0) MUST_BE(pthread_create(&thread, NULL, look, NULL), 0);
        MUST_BE(out(p, LENGTH, options, NULL), LENGTH);
        __atomic_store_n(&seen.over, true, __ATOMIC_RELEASE);
        if (i == 0) pthread_join(thread, NULL);
        written = written_bytes() - written;
        printf("%lld %lld %lld\n", (seen.before - group_bytes()) / MIB, (resident - (long long)rss()) / MIB,
               written / MIB);
        MUST(holds(p, LENGTH, 1)); /* brings the memory back; nothing is changed, so the next move writes nothing */
    }
    printf("%lld %d\n", seen.most / MIB, seen.samples);
    MUST_BE(in(p, LENGTH, NULL), LENGTH);
    MUST(holds(p, LENGTH, 1));
    return 0;
}
