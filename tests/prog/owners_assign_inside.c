// What glibc leaves in free memory is not taken for a block: the header of a freed one, over whose size glibc wrote
// that of a chunk, lies in a live block, and that place is assigned. run: --stacks=none run: --stacks=full
#include "abi.h"
#include "expect.h"

#include <stdint.h>

// Larger than what glibc keeps for the thread, so that what is freed at the end of the heap is one with what lies
// behind it. The chunk of FIRST ends 16 bytes before FREED's header, that of LONGER where it begins, and CHUNK follows
// there.
enum { FIRST = 2000, FREED = 2993, LONGER = FIRST + 16, CHUNK = FREED / 16 * 16, BETWEEN = CHUNK - 40, WHOLE = 10000 };

static void *volatile kept; // the compiler keeps what is never used

static char *allocate(size_t size) {
    kept = malloc(size);
    MUST(kept);
    return kept;
}

static void give_back(void *first, void *second) {
    free(second); // the one behind
    free(first);
}

int main(void) {
    abi_find();
    uint32_t owner = (uint32_t)CALL(1, memstow_owner_open, MEMSTOW_MODEL, "unet", "", 0, 0);
    char *first = allocate(FIRST), *freed = allocate(FREED);
    give_back(first, freed);
    char *longer = allocate(LONGER), *between = allocate(BETWEEN);
    MUST(longer == first); // the same place
    give_back(longer, between);
    char *whole = allocate(WHOLE);
    MUST(whole == first && freed < whole + WHOLE - 64);
    // Where a header of CHUNK's chunk would be: FREED's with another size.
    for (char *inside = freed - 32; inside <= freed + 32; inside += 16)
        MUST(CALL(-1, memstow_assign, owner, inside, 4) < 0);
    MUST(CALL(0, memstow_assign, owner, whole, WHOLE) == 0);
    EXPECT("owners[kind=model].live_bytes", WHOLE);
    return 0;
}
