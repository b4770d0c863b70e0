// The old header of a freed block is not taken for the header of a block. In this test, the old header lies inside of a
// live block, and glibc has written the size of a chunk over the size in the old header. memstow_assign refuses the
// addresses behind the old header.
#include "abi.h"
#include "expect.h"

#include <stdint.h>

// The sizes of the blocks, in the order of their allocation:
// 1. FIRST, and FREED behind it. Both are freed. They are too large for the thread's cache, so glibc merges them.
// 2. LONGER where FIRST was, and BETWEEN behind it. LONGER is 16 bytes longer than FIRST. So glibc's header of BETWEEN
//    is written where memstow's header of FREED was. Both blocks are freed.
// 3. WHOLE where FIRST was. It covers all these addresses.
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
