// Remains of a header are not taken for a block. The header of a freed block lies inside of a live block, and glibc has
// written the size of a chunk over the size in this header. Assigning addresses behind the header is refused.
#include "abi.h"
#include "expect.h"

#include <stdint.h>

// The blocks are too large for the thread's cache, so freed blocks are merged, and the next block begins where FIRST
// did. FREED lies behind FIRST. LONGER is 16 bytes longer, so glibc's header of the chunk behind LONGER lies where
// FREED's header was.
enum { FIRST = 2000, FREED = 2993, LONGER = FIRST + 16, CHUNK = FREED / 16 * 16, BETWEEN = CHUNK - 40, WHOLE = 10000 };

static void *volatile kept; // the compiler keeps it, although it is never used

static char *allocate(size_t size) {
    kept = malloc(size);
    MUST(kept);
    return kept;
}

static void give_back(void *first, void *second) {
    free(second); // this block lies behind the first
    free(first);
}

int main(void) {
    abi_find();
    uint32_t owner = (uint32_t)CALL(1, memstow_owner_open, MEMSTOW_MODEL, "unet", "", 0, 0);
    char *first = allocate(FIRST), *freed = allocate(FREED);
    give_back(first, freed);
    char *longer = allocate(LONGER), *between = allocate(BETWEEN);
    MUST(longer == first); // at the same address
    give_back(longer, between);
    char *whole = allocate(WHOLE);
    MUST(whole == first && freed < whole + WHOLE - 64);
    // FREED's old header, with another size in it, is near these addresses. No block begins at any of them.
    for (char *inside = freed - 32; inside <= freed + 32; inside += 16)
        MUST(CALL(-1, memstow_assign, owner, inside, 4) < 0);
    MUST(CALL(0, memstow_assign, owner, whole, WHOLE) == 0);
    EXPECT("owners[kind=model].live_bytes", WHOLE);
    return 0;
}
