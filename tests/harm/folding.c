/* Threads allocate at ever new call stacks. There is not enough memory for all stacks, so stacks without live blocks
 * make room. A file tells other processes the sums so far: allocated blocks and kept bytes. The program never ends. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../prog/random_stacks.h"

enum { KEPT_SIZE = 10000, SIZE = 10 };

static struct { uint64_t allocated, kept; } * done;

__attribute__((noinline)) static void keep(void) {
    void *volatile block = malloc(KEPT_SIZE);
    (void)block;
    __atomic_fetch_add(&done->kept, KEPT_SIZE, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&done->allocated, 1, __ATOMIC_SEQ_CST);
}

static void *work(void *seed) {
    uint64_t state = first_state((uintptr_t)seed);
    for (unsigned n = 0;; n++) {
        free(allocate(&state, SIZE));
        __atomic_fetch_add(&done->allocated, 1, __ATOMIC_SEQ_CST);
        if (n % 5000 == 0) keep();
        if (n % 3000 == 0) usleep(1000);
    }
    return NULL;
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 1, fd = open(argv[2], O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, sizeof *done)) return 1;
    done = mmap(NULL, sizeof *done, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    for (intptr_t i = 1; i <= threads; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, work, (void *)i);
    }
    puts("begun");
    fflush(stdout);
    pause();
}
