// Mappings are counted exactly when they are cut, grow, move, are placed at a fixed address or lose their access
// rights. Mapped files and the program break are counted exactly, too.
#include "expect.h"

#include <fcntl.h>
#include <sys/mman.h>

enum { PAGE = 4096, MIB = 1 << 20 };

static char *map(size_t length, int protection) {
    char *p = mmap(NULL, length, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(p != MAP_FAILED);
    return p;
}

int main(void) {
    const int rw = PROT_READ | PROT_WRITE;
    size_t live = 0, reserved = 0;
    char *a = map(10 * MIB, rw);
    munmap(a + 2 * MIB, 3 * MIB); /* a hole */
    munmap(a + 9 * MIB, MIB);     /* the end */
    munmap(a, PAGE);              /* the beginning */
    live += 6 * MIB - PAGE;
    char *b = map(MIB, rw);
    b = mremap(b, MIB, 4 * MIB, MREMAP_MAYMOVE);
    MUST(b != MAP_FAILED);
    b = mremap(b, 4 * MIB, 3 * MIB, 0);
    char *c = map(8 * MIB, PROT_NONE);
    b = mremap(b, 3 * MIB, 3 * MIB, MREMAP_MAYMOVE | MREMAP_FIXED, c); /* over part of the reservation */
    MUST(b == c);
    live += 3 * MIB;
    reserved += 5 * MIB;
    mprotect(c + 4 * MIB, MIB, rw); /* commit */
    live += MIB, reserved -= MIB;
    mprotect(b, MIB, PROT_NONE); /* decommit */
    live -= MIB, reserved += MIB;
    mprotect(b + MIB, MIB, PROT_READ); /* still memory */
    MUST(mmap(c + 6 * MIB, MIB, rw, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == c + 6 * MIB);
    live += MIB, reserved -= MIB;
    MUST(mremap((void *)PAGE, PAGE, 2 * PAGE, 0) == MAP_FAILED);
    int fd = open("/proc/self/exe", O_RDONLY);
    MUST(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0) != MAP_FAILED);
    char *shared = mmap(NULL, MIB, rw, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    MUST(shared != MAP_FAILED);
    live += MIB;
    char *before = sbrk(0);
    MUST(sbrk(5 * PAGE) == before);
    MUST(brk(before + 3 * PAGE) == 0);
    live += 3 * PAGE;
    madvise(a + MIB, PAGE, MADV_DONTNEED);
    EXPECT("totals.mapped.live_bytes", live);
    EXPECT("totals.mapped.reserved_bytes", reserved);
    EXPECT("totals.mapped.file_bytes", PAGE);
    return 0;
}
