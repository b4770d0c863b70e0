// A program's memory falls once and then grows. The reported peak is the memory at its end, not the picture of the
// first peak.
#include "expect.h"

enum { MIB = 1 << 20 };

static void *touched(size_t size) {
    char *volatile block = malloc(size);
    *block = 1;
    return block;
}

int main(void) {
    void *first = touched(30 * MIB);
    free(first);
    for (int i = 0; i < 1000; i++) free(touched(100));
    for (int i = 0; i < 2000; i++) touched(50000);
    say("expect totals.peak_bytes >= %d", 100000000);
    say("expect peak.from == live");
    say("expect peak.distance_bytes <= %d", MIB);
    say("expect peak.picture_bytes >= %d", 100000000);
    say("expect modules[module=*peak_at_the_end].peak_bytes >= %d", 100000000);
    return 0;
}
