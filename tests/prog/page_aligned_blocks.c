// Page-aligned blocks have no header and are found by address. The test frees thousands of them in another order than
// that of their allocation.
// run:
// run: --allocator=mimalloc
#include "expect.h"

#include <malloc.h>
#include <stdint.h>

enum { COUNT = 20000 };
static unsigned char *blocks[COUNT];

int main(void) {
    size_t live = 0;
    for (int i = 0; i < COUNT; i++) {
        size_t size = (size_t)(i % 3000) + 1, alignment = (size_t)4096 << i % 3;
        blocks[i] = memalign(alignment, size);
        MUST(blocks[i] && (uintptr_t)blocks[i] % alignment == 0);
        memset(blocks[i], i & 0xff, size);
        live += size;
    }
    for (int k = 0; k < COUNT; k += 2) {
        int i = (int)((unsigned)k * 7919u % COUNT) & ~1;
        if (!blocks[i]) continue;
        size_t size = (size_t)(i % 3000) + 1;
        MUST(blocks[i][0] == (i & 0xff) && blocks[i][size - 1] == (i & 0xff));
        free(blocks[i]);
        blocks[i] = NULL;
        live -= size;
    }
    size_t left = 0;
    for (int i = 0; i < COUNT; i++) left += blocks[i] != NULL;
    EXPECT("totals.host.live_bytes", live);
    EXPECT("totals.host.live_blocks", left);
    return 0;
}
