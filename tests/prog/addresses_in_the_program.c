// build: -no-pie -fno-pic
// In a program at a fixed address, a function of libc's has the address of a jump in the program itself. memstow gets
// such addresses, too, even for the functions by which it finds libc itself.
#include "expect.h"

#include <gnu/libc-version.h>
#include <link.h>
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>

extern const char __executable_start, etext;

static void is_here(void *volatile function) {
    MUST((const char *)function > &__executable_start && (const char *)function < &etext);
}

int main(void) {
    is_here((void *)gnu_get_libc_version);
    is_here((void *)malloc);
    is_here((void *)free);
    is_here((void *)mmap);
    is_here((void *)munmap);
    is_here((void *)strcmp);
    is_here((void *)clock_gettime);
    is_here((void *)dl_iterate_phdr);
    is_here((void *)pthread_key_create);
    void *p = malloc(1000), *mapped = mmap(NULL, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(p && mapped != MAP_FAILED && munmap(mapped, 1 << 19) == 0);
    EXPECT("totals.host.live_bytes", 1000);
    EXPECT("totals.mapped.live_bytes", 1 << 19);
    EXPECT("process.notes.length", 0);
    say("expect process.foreign_allocator == false");
    return 0;
}
