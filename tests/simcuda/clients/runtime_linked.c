/* runtime_linked.c — route: the client is linked with the runtime, as a shared library or as an archive. For each way
 * of linking there is a client: runtime_versioned_12, runtime_versioned_13, runtime_unversioned, runtime_static. */
#include "runtime_client.h"

#define F(name, parameters) int name parameters;
RUNTIME_FUNCTIONS
#undef F

int main(void) {
#define F(name, parameters) rt.name = name;
    RUNTIME_FUNCTIONS
    runtime_work();
    return 0;
}
