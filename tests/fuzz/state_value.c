/* state_value.c — fuzz target: any file of a loop's value is read or refused, and reads stay inside of it. The target
 * makes the checksum right, so that the code behind that check is reached. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "preload/state/state_bytes.c" /* for the layout of a file */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool condition) {
    if (!condition) abort();
}

/* Writes the fuzzer's bytes, padded to whole pages, to a file. state_bytes_from_file gets this file and its correct
 * checksum. It must refuse the file as damaged, or give a value whose type and parts can be read. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static _Alignas(8) char bytes[16 * OS_PAGE];
    struct state_bytes value;
    struct state_sum sum = {{0}};
    uint64_t length = os_round_up(size, OS_PAGE);
    if (!size || length > sizeof bytes) return 0;
    memset(bytes, 0, sizeof bytes);
    memcpy(bytes, data, size);
    state_sum_add(&sum, bytes, length);
    int fd = memfd_create("value", MFD_CLOEXEC);
    must(fd >= 0 && write(fd, bytes, length) == (ssize_t)length);
    int error = state_bytes_from_file(&value, fd, length, state_sum_value(&sum));
    must(error == 0 || error == -EUCLEAN);
    if (error) return 0;
    const struct state_header *header = (const struct state_header *)value.base;
    unsigned sum_of_parts = 0;
    for (uint32_t i = 0; i < header->parts; i++) {
        const char *part = value.base + header->part[i].start;
        if (header->part[i].length) sum_of_parts += (unsigned)part[0] + (unsigned)part[header->part[i].length - 1];
    }
    must(strlen(header->type) < MEMSTOW_STATE_TYPE && sum_of_parts != 1u << 31);
    state_bytes_drop(&value);
    return 0;
}
