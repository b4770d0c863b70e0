// Rescues over a device and moves that the test invents: other threads act between a refusal and the rescue for it.
#include <criterion/criterion.h>

#include "preload/cuda/cuda_captures.h"
#include "preload/cuda/cuda_device.h"
#include "preload/cuda/cuda_route.h"
#include "preload/copies/vram_driver.h"
#include "preload/vram/vram_move.h"
#include "preload/vram/vram_sums.h"
#include "preload/serve/rescue.h"

enum { MIB = 1 << 20 };

/* --- the device's memory, as the test sets it --- */

static uint64_t left, live, moving, total;
static uint64_t needed; /* what the last rescue asked for */
static int rescues;
static int64_t rescue_gives;

struct cuda_target cuda_device_now(void) {
    return (struct cuda_target){0};
}
uint32_t cuda_device_of_stream(cuda_handle stream, uint32_t now) { return stream ? 1 : now; }
bool cuda_captures_any(void) { return false; }
bool cuda_route_has_exempt(void) { return false; }
uint64_t cuda_device_total(void) { return total; }
bool vram_driver_is_on(void) { return true; }
uint64_t vram_move_left(void) { return left; }
struct vram_sums vram_sums(uint32_t owner, uint32_t device) {
    (void)owner, (void)device;
    return (struct vram_sums){.live = live};
}

/* Another thread's move. It is over after this wait. */
bool vram_move_wait(uint32_t milliseconds) {
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
    rescue_run = run;
    live = 1;
    rescue_gives = 1;
}

/* --- tests --- */

Test(rescue, who_is_refused_asks_once_more, .init = begin) {
    struct rescue self = rescue_begin(24 * MIB, true);
    cr_assert(rescue_try(&self) && rescues == 1 && needed == 24 * MIB);
    cr_assert(!rescue_try(&self) && rescues == 1, "and no more than that");
}

/* Another thread's rescue or move has begun and ended after the request was made. The memory that it freed is
 * available, so no new rescue is needed. */
Test(rescue, what_left_since_the_request_was_made_counts, .init = begin) {
    struct rescue first = rescue_begin(24 * MIB, true), second = rescue_begin(8 * MIB, true);
    cr_assert(rescue_try(&first) && !live);
    cr_assert(rescue_try(&second), "the other's gave enough for both");
    cr_assert(!rescue_try(&second) && rescues == 1, "and nothing has left since");
}

Test(rescue, a_move_that_is_on_is_waited_for, .init = begin) {
    struct rescue self = rescue_begin(24 * MIB, true);
    moving = 1;
    cr_assert(rescue_try(&self) && !rescues);
    cr_assert(!rescue_try(&self) && !rescues, "nothing else can leave");
}

/* Others free memory again and again, and it is never enough: the rescue gives up in the end. */
Test(rescue, not_for_ever, .init = begin) {
    struct rescue self = rescue_begin(24 * MIB, true);
    int asked = 0;
    while (rescue_try(&self) && asked < 100) asked++, left++;
    cr_assert_leq(asked, 4);
    cr_assert_eq(rescues, 1);
}

/* A request may ask for more memory than the device has in all, because its size is wrong, or because a negative
 * number is read as unsigned. No rescue is made for such a request. */
Test(rescue, not_for_what_no_device_has, .init = begin) {
    total = 48 * MIB;
    struct rescue all = rescue_begin(48 * MIB, true), more = rescue_begin(48 * MIB + 1, true);
    cr_assert(!rescue_try(&more) && !rescues && live);
    cr_assert(rescue_try(&all) && needed == 48 * MIB);
    total = 0; /* unknown */
    live = 1;
    struct rescue negative = rescue_begin((uint64_t)-4096, true);
    cr_assert(!rescue_try(&negative) && rescues == 1 && live, "rounded up that would be 0: all that there is");
}

Test(rescue, plain_memory_is_asked_for_twice, .init = begin) {
    struct rescue first = rescue_begin(24 * MIB, false), again = rescue_begin(24 * MIB, false);
    cr_assert(!rescue_try(&first) && !rescues);
    cr_assert(rescue_try(&again) && rescues == 1);
}

Test(rescue, one_in_vain_is_not_made_again_at_once, .init = begin) {
    rescue_gives = 0;
    for (int i = 0; i < 10; i++) {
        struct rescue self = rescue_begin(24 * MIB, true);
        cr_assert(!rescue_try(&self));
    }
    cr_assert_eq(rescues, 1);
}
