/* Each run copies weights on the device to put them back later, but never puts them back. It frees its working memory.
 * The CUDA driver is simulated, a test double. */
#include "_device.h"
#include "_runs.h"

static device_address allocate(size_t bytes) {
    device_address at;
    if (cuMemAlloc_v2(&at, bytes)) exit(1);
    return at;
}

__attribute__((noinline)) static void back_up_on_device(void) { allocate(96 << 10); }

__attribute__((noinline)) static void sample(int run) {
    static device_address weights;
    if (!weights) weights = allocate(4 << 20);
    device_address scratch = allocate((size_t)(1 + run % 3) << 20);
    if (cuMemFree_v2(scratch)) exit(1);
}

static void leaky(int run) {
    enter("Leaky");
    sample(run);
    back_up_on_device();
    leave();
}

int main(int count, char **arguments) {
    begin_device();
    return do_runs(count, arguments, leaky);
}
