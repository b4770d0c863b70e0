// memstow's mappings lie far from the program's mappings. So a write that misses a large block, before or behind it,
// does not reach the ledger.
#include "expect.h"

#include <stdint.h>

static uint64_t distance(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }

int main(void) {
    static char line[5000];
    uint64_t blocks[8], start, ledgers = 0;
    for (int i = 0; i < 8; i++) blocks[i] = (uintptr_t)malloc((size_t)1 << 20);
    FILE *maps = fopen("/proc/self/maps", "r");
    MUST(maps);
    while (fgets(line, sizeof line, maps)) {
        if (!strstr(line, ".mst") || sscanf(line, "%lx", &start) != 1) continue;
        ledgers++;
        for (int i = 0; i < 8; i++) MUST(distance(start, blocks[i]) >= (uint64_t)1 << 30);
    }
    MUST(ledgers || !getenv("MEMSTOW_OUT"));
    say("ok");
    return 0;
}
