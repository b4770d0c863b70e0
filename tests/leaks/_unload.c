/* Each run puts weights on a device, copies them to the host, and frees them on the device ("unload"). The copy of the
 * previous run is freed, unless KEEP is given. The CUDA driver is simulated, a test double. */
#include "_device.h"
#include "_runs.h"

#include <stdbool.h>

enum { WEIGHTS = 1 << 20 };
int cuMemcpyDtoH_v2(void *, device_address, size_t);

static bool keep;

__attribute__((noinline)) static void *copy_out(device_address weights) {
    void *copy = malloc(WEIGHTS);
    if (!copy || cuMemcpyDtoH_v2(copy, weights, WEIGHTS)) exit(1);
    return copy;
}

static void unload(int run) {
    static void *copy;
    device_address weights;
    (void)run;
    enter("Leaky");
    if (cuMemAlloc_v2(&weights, WEIGHTS)) exit(1);
    if (!keep) free(copy);
    copy = copy_out(weights);
    if (cuMemFree_v2(weights)) exit(1);
    leave();
}

int main(int count, char **arguments) {
    keep = count > 3;
    begin_device();
    return do_runs(count, arguments, unload);
}
