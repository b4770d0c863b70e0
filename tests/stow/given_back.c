/* given_back.c — given_back FILE: moves 512 MiB out and back. Prints the memory of the control group before, after, and
 * when it is back, and during the moves. */
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

/* The other thread reads this during the whole move: moved bytes, and memory of the control group. */
static struct {
    long long before, most; /* most: bytes of the group beside the memory that has not moved yet */
    int samples;            /* readings in the middle of the move */
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
        long long resident = (long long)rss();
        if (i == 0) MUST_BE(pthread_create(&thread, NULL, look, NULL), 0);
        MUST_BE(out(p, LENGTH, options, NULL), LENGTH);
        __atomic_store_n(&seen.over, true, __ATOMIC_RELEASE);
        if (i == 0) pthread_join(thread, NULL);
        printf("%lld %lld\n", (seen.before - group_bytes()) / MIB, (resident - (long long)rss()) / MIB);
        MUST(holds(p, LENGTH, 1)); /* then it came back by use: clean, and nothing to write */
    }
    printf("%lld %d\n", seen.most / MIB, seen.samples);
    MUST_BE(in(p, LENGTH, NULL), LENGTH);
    MUST(holds(p, LENGTH, 1));
    return 0;
}
