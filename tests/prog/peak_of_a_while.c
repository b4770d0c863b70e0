// The peak of an interval: the most that was live since the interval began, whatever was live before.
// run:
// run: --stacks=none
#include "expect.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { MIB = 1 << 20, SLACK = 64 << 10 };

static int64_t (*peak)(uint32_t);

static int64_t begin(void) {
    peak(1);
    return peak(0);
}

static void take_and_free(size_t size) {
    char *volatile block = malloc(size);
    MUST(block);
    free(block);
}

static void *in_thread(void *size) {
    take_and_free((size_t)(uintptr_t)size);
    return NULL;
}

static void within(int64_t value, int64_t wanted) { MUST(value >= wanted - SLACK && value <= wanted + SLACK); }

int main(void) {
    peak = (int64_t(*)(uint32_t))dlsym(RTLD_DEFAULT, "memstow_peak");
    if (peak) {
        take_and_free(64 * MIB);
        int64_t live = begin();
        MUST(live < 2 * MIB);
        within(peak(0), live);
        take_and_free(8 * MIB);
        take_and_free(5 * MIB);
        within(peak(0) - live, 8 * MIB);
        within(peak(1) - live, 8 * MIB); // the interval that ends is reported
        within(peak(0), live);
        for (int i = 0; i < 1000; i++)
            take_and_free(100); // a thread holds small events back; they are reported nevertheless
        within(peak(0), live);
        void *map = mmap(NULL, 16 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        MUST(map != MAP_FAILED && munmap(map, 16 * MIB) == 0);
        within(peak(0) - live, 16 * MIB);
        live = begin();
        pthread_t thread;
        MUST(pthread_create(&thread, NULL, in_thread, (void *)(uintptr_t)(24 * MIB)) == 0);
        pthread_join(thread, NULL);
        within(peak(0) - live, 24 * MIB);
        errno = 77;
        peak(1);
        MUST(errno == 77);
    }
    puts("ok");
}
