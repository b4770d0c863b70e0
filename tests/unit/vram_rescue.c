// Rescues, over a device and moves that the test makes up: what another thread does between a refusal and the look at
// it.
#include <criterion/criterion.h>

#include "preload/cuda/cuda_captures.h"
#include "preload/cuda/cuda_device.h"
#include "preload/cuda/cuda_route.h"
#include "preload/vram/stow_cuda.h"
#include "preload/vram/vram_rescue.h"

enum { MIB = 1 << 20 };

/* --- what there is --- */

static uint64_t left, live, moving, total;
static uint64_t needed; /* of the last rescue */
static int rescues;
static int64_t rescue_gives;

struct cuda_place cuda_device_now(void) {
    return (struct cuda_place){0};
}
uint32_t cuda_device_of_stream(cuda_handle stream, uint32_t now) { return stream ? 1 : now; }
bool cuda_captures_any(void) { return false; }
bool cuda_route_has_exempt(void) { return false; }
uint64_t cuda_device_total(void) { return total; }
bool stow_cuda_is_on(void) { return true; }
uint64_t stow_cuda_left(void) { return left; }
struct stow_cuda_sums stow_cuda_sums(uint32_t owner, uint32_t device) {
    (void)owner, (void)device;
    return (struct stow_cuda_sums){.live = live};
}

/* Somebody's move, which is over by the time that it is waited for. */
bool stow_cuda_wait_move(uint32_t milliseconds) {
    bool was = moving;
    (void)milliseconds;
    left += moving, live -= moving, moving = 0;
    return was;
}

static int64_t run(uint64_t bytes, bool takes_kept, bool (*helps)(uint32_t owner)) {
    (void)takes_kept, (void)helps;
    rescues++;
    needed = bytes;
    if (rescue_gives > 0) left++, live = 0;
    return rescue_gives;
}

static void begin(void) {
    vram_rescue_run = run;
    live = 1;
    rescue_gives = 1;
}

/* --- tests --- */

Test(vram_rescue, who_is_refused_asks_once_more, .init = begin) {
    struct vram_rescue self = vram_rescue_begin(24 * MIB, true);
    cr_assert(vram_rescue(&self) && rescues == 1 && needed == 24 * MIB);
    cr_assert(!vram_rescue(&self) && rescues == 1, "and no more than that");
}

/* Another thread's rescue, or move, has begun and ended since the request was made: what it gave is there. */
Test(vram_rescue, what_left_since_the_request_was_made_counts, .init = begin) {
    struct vram_rescue first = vram_rescue_begin(24 * MIB, true), second = vram_rescue_begin(8 * MIB, true);
    cr_assert(vram_rescue(&first) && !live);
    cr_assert(vram_rescue(&second), "the other's gave enough for both");
    cr_assert(!vram_rescue(&second) && rescues == 1, "and nothing has left since");
}

Test(vram_rescue, a_move_that_is_on_is_waited_for, .init = begin) {
    struct vram_rescue self = vram_rescue_begin(24 * MIB, true);
    moving = 1;
    cr_assert(vram_rescue(&self) && !rescues);
    cr_assert(!vram_rescue(&self) && !rescues, "nothing else can leave");
}

/* Others give again and again, and it never suffices: that ends. */
Test(vram_rescue, not_for_ever, .init = begin) {
    struct vram_rescue self = vram_rescue_begin(24 * MIB, true);
    int asked = 0;
    while (vram_rescue(&self) && asked < 100) asked++, left++;
    cr_assert_leq(asked, 4);
    cr_assert_eq(rescues, 1);
}

/* What the device never had: a wrong size, or one that is read as a number without a sign. */
Test(vram_rescue, not_for_what_no_device_has, .init = begin) {
    total = 48 * MIB;
    struct vram_rescue all = vram_rescue_begin(48 * MIB, true), more = vram_rescue_begin(48 * MIB + 1, true);
    cr_assert(!vram_rescue(&more) && !rescues && live);
    cr_assert(vram_rescue(&all) && needed == 48 * MIB);
    total = 0; /* it cannot be told */
    live = 1;
    struct vram_rescue negative = vram_rescue_begin((uint64_t)-4096, true);
    cr_assert(!vram_rescue(&negative) && rescues == 1 && live, "rounded up that would be 0: all that there is");
}

Test(vram_rescue, plain_memory_is_asked_for_twice, .init = begin) {
    struct vram_rescue first = vram_rescue_begin(24 * MIB, false), again = vram_rescue_begin(24 * MIB, false);
    cr_assert(!vram_rescue(&first) && !rescues);
    cr_assert(vram_rescue(&again) && rescues == 1);
}

Test(vram_rescue, one_in_vain_is_not_made_again_at_once, .init = begin) {
    rescue_gives = 0;
    for (int i = 0; i < 10; i++) {
        struct vram_rescue self = vram_rescue_begin(24 * MIB, true);
        cr_assert(!vram_rescue(&self));
    }
    cr_assert_eq(rescues, 1);
}
