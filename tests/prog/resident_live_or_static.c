// The report does not count the allocator's overhead for live blocks as freed memory, or static data as a file.
#include "expect.h"

enum { MIB = 1 << 20, BLOCKS = 1000000 };
static volatile char zeroed[20 * MIB], initialized[10 * MIB] = {1};

int main(void) {
    for (size_t i = 0; i < sizeof zeroed; i += 4096) zeroed[i] = 1;
    for (size_t i = 0; i < sizeof initialized; i += 4096) initialized[i]++;
    for (int i = 0; i < BLOCKS; i++) {
        char *volatile block = malloc(16);
        *block = 1;
    }
    say("expect residency.live_bytes >= %d", 16 * BLOCKS);
    say("expect residency.memstow_header_bytes >= %d", 16 * BLOCKS);
    say("expect residency.overhead_bytes >= %d", 15 * BLOCKS);
    say("expect residency.overhead_bytes <= %d", 17 * BLOCKS);
    say("expect residency.retained_bytes <= %d", MIB / 4);
    say("expect residency.advice == null");
    say("expect residency.program_data_bytes >= %d", 30 * MIB);
    say("expect residency.mapped_file_bytes <= %d", 10 * MIB);
    say("expect residency.rest_bytes <= %d", MIB);
    return 0;
}
