/* driver_entry_point.c — route: the client is linked with the runtime, and finds functions by its
 * cudaGetDriverEntryPoint, as PyTorch does for virtual memory management. */
#include "driver_client.h"

int cudaGetDriverEntryPoint(const char *name, void **out, unsigned long long flags, int *status);

int main(void) {
    int status;
#define F(member, name, symbol, version, parameters)                                                                   \
    CHECK(cudaGetDriverEntryPoint(#name, (void **)&cu.member, 0, &status));
    DRIVER_FUNCTIONS
    driver_work();
    return 0;
}
