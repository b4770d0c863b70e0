// The peak is known within 1 MiB. When live bytes fall from a peak, the library takes a picture of it: the live bytes
// of each site near the peak.
#include "expect.h"

#include <pthread.h>

enum { MIB = 1 << 20, BLOCKS = 20000, SIZE = 2000 };
static void *blocks[BLOCKS];

static void *rise(void *part) {
    for (long i = (long)part; i < BLOCKS; i += 4) blocks[i] = malloc(SIZE);
    return NULL;
}

int main(void) {
    pthread_t threads[4];
    for (long i = 0; i < 4; i++) pthread_create(&threads[i], NULL, rise, (void *)i);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < BLOCKS; i++) free(blocks[i]);
    const long peak = (long)BLOCKS * SIZE;
    say("expect totals.peak_bytes >= %ld", peak - MIB);
    say("expect totals.peak_bytes <= %ld", peak + MIB);
    say("expect totals.host.live_bytes <= 10000");
    say("expect peak.picture_bytes >= %ld", peak - 2 * MIB);
    say("expect peak.picture_blocks >= %ld", BLOCKS - 2L * MIB / SIZE);
    say("expect peak.picture_bytes <= %ld", peak + MIB);
    return 0;
}
