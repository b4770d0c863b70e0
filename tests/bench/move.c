/* move.c — move MIB: prints how many seconds it takes to move this many MiB out, to bring them all back for an idle
 * owner, and to bring them all back for an owner that is not idle. */
#include "../stow/moving.h"

#include <time.h>

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static double timed(int64_t (*move)(void *, size_t, const struct stow_options *), void *p, size_t length,
                    const struct stow_options *options) {
    double start = now();
    MUST(move(p, length, options) == (int64_t)length);
    return now() - start;
}

static int64_t out_(void *p, size_t length, const struct stow_options *options) {
    return out(p, length, options, NULL);
}

int main(int argc, char **argv) {
    size_t length = (argc > 1 ? strtoul(argv[1], NULL, 10) : 256) * MIB;
    const struct stow_options idle = {.idle = true};
    find_engine();
    char *p = map_memory(length);
    fill(p, length, 1);
    double out_seconds = timed(out_, p, length, &idle), idle_seconds = timed(in, p, length, &idle);
    MUST(holds(p, length, 1));
    timed(out_, p, length, &idle);
    double used_seconds = timed(in, p, length, NULL);
    MUST(holds(p, length, 1));
    printf("%f %f %f\n", out_seconds, idle_seconds, used_seconds);
    return 0;
}
