/* driver_linked.c — route: the client is linked with libcuda.so.1, and calls its exported symbols. */
#include "driver_client.h"

#define F(member, name, symbol, version, parameters) CUresult symbol parameters;
DRIVER_FUNCTIONS
#undef F

int main(void) {
#define F(member, name, symbol, version, parameters) cu.member = symbol;
    DRIVER_FUNCTIONS
    driver_work();
    return 0;
}
