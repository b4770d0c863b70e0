/* state_sum.c — see state_sum.h. There are several sums (lanes), which the processor computes at the same time. Each
 * step of a lane is reversible, so no change of a single word is lost. In the end the lanes are joined. */
#include "preload/state/state_sum.h"

#include <string.h>

void state_sum_add(struct state_sum *self, const void *pages, uint64_t length) {
    const uint64_t *word = pages;
    uint64_t lanes[STATE_SUM_LANES];
    memcpy(lanes, self->lanes, sizeof lanes);
    for (uint64_t i = 0; i < length / sizeof *word; i += STATE_SUM_LANES)
        for (int lane = 0; lane < STATE_SUM_LANES; lane++) {
            uint64_t mixed = (lanes[lane] ^ word[i + lane]) * 0x9E3779B97F4A7C15u;
            lanes[lane] = mixed ^ mixed >> 29;
        }
    memcpy(self->lanes, lanes, sizeof lanes);
}

uint64_t state_sum_value(const struct state_sum *self) {
    uint64_t sum = 0;
    for (int lane = 0; lane < STATE_SUM_LANES; lane++)
        sum = (sum ^ self->lanes[lane]) * 0xD6E8FEB86659FD93u + (sum >> 32);
    return sum;
}
