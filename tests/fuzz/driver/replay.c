/* replay.c — libFuzzer's main without libFuzzer: runs a fuzz target once over each named file. In: file names. Out:
 * only the exit status. It never changes a file. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *name) {
    FILE *file = fopen(name, "rb");
    if (!file) {
        perror(name);
        return 1;
    }
    uint8_t *data = NULL;
    size_t size = 0, room = 0, got;
    do {
        if (size == room) data = realloc(data, room = room ? 2 * room : 1 << 16);
        if (!data) abort();
        got = fread(data + size, 1, room - size, file);
        size += got;
    } while (got);
    fclose(file);
    uint8_t *exact = malloc(size ? size : 1); /* a block of its own, so that a read beyond the end is noticed */
    if (!exact) abort();
    for (size_t i = 0; i < size; i++) exact[i] = data[i];
    free(data);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
    return 0;
}

int main(int argc, char **argv) {
    int failed = 0;
    for (int i = 1; i < argc; i++) failed |= replay(argv[i]);
    return failed;
}
