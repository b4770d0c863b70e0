/* given_back.c — 256 MiB out and back; prints what the control group held before, after, and back: given_back FILE. */
#include "moving.h"

static long long group_bytes(const char *path) {
    char text[64] = {0};
    int fd = open(path, O_RDONLY);
    MUST(fd >= 0 && read(fd, text, sizeof text - 1) > 0);
    close(fd);
    return atoll(text);
}

int main(int argc, char **argv) {
    enum { LENGTH = 256 * MIB };
    MUST(argc == 2);
    find_engine();
    char *p = map_memory(LENGTH);
    fill(p, LENGTH, 1);
    const struct stow_options idle = {.idle = true};
    for (int i = 0; i < 2; i++) {
        long long before = group_bytes(argv[1]), resident = (long long)rss();
        MUST_BE(out(p, LENGTH, has_userfaultfd() ? NULL : &idle, NULL), LENGTH);
        printf("%lld %lld\n", (before - group_bytes(argv[1])) / MIB, (resident - (long long)rss()) / MIB);
        MUST(holds(p, LENGTH, 1)); /* the second time it has come back by use: clean, and nothing to write */
    }
    MUST_BE(in(p, LENGTH, NULL), LENGTH);
    MUST(holds(p, LENGTH, 1));
    return 0;
}
