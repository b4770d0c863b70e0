// A mapped file, like a safetensors file, is assigned to a model. When the model is released or stowed, the kernel gets
// the clean pages of the file back. The pages are read again when they are used.
#include "abi.h"
#include "expect.h"

#include <fcntl.h>
#include <sys/mman.h>

enum { MIB = 1 << 20, LENGTH = 16 * MIB };

static size_t present(void *start) {
    char path[] = "/proc/self/smaps_rollup", text[4096] = "";
    (void)start;
    int fd = open(path, O_RDONLY);
    MUST(fd >= 0 && read(fd, text, sizeof text - 1) > 0);
    close(fd);
    return strtoul(strstr(text, "Rss:") + 4, NULL, 10) * 1024;
}

static unsigned long sum_of(const char *weights) {
    unsigned long sum = 0;
    for (size_t i = 0; i < LENGTH; i += 4096) sum += (unsigned char)weights[i];
    return sum;
}

/* Reads all pages, then gives them back. Returns the bytes that were given back. The kernel may drop a page by itself
 * between the two steps; then both steps are tried again. */
static int64_t given_back(int64_t (*give)(uint32_t), uint32_t model, const char *weights) {
    int64_t gone = 0;
    for (int tries = 0; tries < 10 && gone != LENGTH; tries++) {
        MUST(sum_of(weights) == LENGTH / 4096 * (unsigned long)'w');
        gone = give(model);
    }
    return gone;
}

int main(void) {
    abi_find();
    char name[] = "weights-XXXXXX";
    int fd = mkstemp(name);
    MUST(fd >= 0);
    static char part[MIB];
    memset(part, 'w', sizeof part);
    for (int i = 0; i < LENGTH / MIB; i++) MUST(write(fd, part, sizeof part) == sizeof part);
    MUST(fsync(fd) == 0);
    char *weights = mmap(NULL, LENGTH, PROT_READ, MAP_PRIVATE, fd, 0);
    MUST(weights != MAP_FAILED);
    close(fd);
    uint32_t model = (uint32_t)CALL(1, memstow_owner_open, MEMSTOW_MODEL, "model", "", 1, 0);
    MUST(CALL(0, memstow_assign, model, weights, LENGTH) == 0);
    MUST(sum_of(weights) == LENGTH / 4096 * (unsigned long)'w');
    size_t with = present(weights);
    if (has_memstow) {
        MUST(given_back(abi_memstow_release, model, weights) == LENGTH);
        MUST(present(weights) + LENGTH / 10 * 9 < with);
        MUST(given_back(abi_memstow_stow, model, weights) == LENGTH);
    }
    MUST(sum_of(weights) == LENGTH / 4096 * (unsigned long)'w');
    unlink(name);
    EXPECT("owners[name=model].live_bytes", 0);
    return 0;
}
