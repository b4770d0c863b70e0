/* full.c — full [MIB [DIRECTORY]]: moves memory to the directory that the environment names, and prints the answer.
 * This directory may be unable to take the memory. The memory must stay whole. Then it must move to DIRECTORY. */
#include "moving.h"

int main(int argc, char **argv) {
    size_t length = (argc > 1 ? strtoul(argv[1], NULL, 10) : 32) * MIB;
    const struct stow_options idle = {.idle = true};
    uint32_t why;
    find_engine();
    char *p = map_memory(length);
    fill(p, length, 1);
    int64_t moved = out(p, length, &idle, &why);
    MUST(holds(p, length, 1));
    MUST(stow_bytes_(0) == (moved > 0 ? (uint64_t)moved : 0));
    printf("%lld %u %s\n", (long long)(moved < 0 ? moved : moved / MIB), why, stow_text_(why));
    fill(p, length, 2);
    MUST(holds(p, length, 2));
    if (argc > 2) {
        struct stow_options other = {.idle = true, .directory = argv[2]};
        MUST(out(p, length, &other, NULL) == (int64_t)length);
        MUST(holds(p, length, 2));
    }
    return 0;
}
