// Neither free nor a successful call changes errno, not even on a slow path. A refused call sets errno.
#include "expect.h"

#include <errno.h>
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>

int main(void) {
    errno = 1234;
    void *kept[64];
    for (int i = 0; i < 64; i++) kept[i] = i % 4 ? malloc((size_t)i * 5000) : memalign(4096, 100);
    for (int i = 0; i < 64; i++) free(kept[i]);
    void *map = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(map, 4096, MADV_DONTNEED);
    munmap(map, 1 << 20);
    MUST(errno == 1234);
    MUST(munmap((void *)1, 4096) == -1 && errno == EINVAL);
    MUST(mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED && errno == EINVAL);
    MUST(madvise(NULL, 4096, 12345) == -1 && errno == EINVAL);
    static char stack[16384] __attribute__((aligned(16)));
    int (*volatile nothing)(void *) = NULL;
    MUST(clone(nothing, stack + sizeof stack, SIGCHLD, NULL) == -1 && errno == EINVAL);
    EXPECT("totals.host.live_blocks", 0);
    EXPECT("totals.mapped.live_bytes", 0);
    return 0;
}
