/* runtime_linked.c — route: a runtime that is DT_NEEDED, or is in the program itself. The kind of link is the route:
 * runtime_versioned_12, runtime_versioned_13, runtime_unversioned, runtime_static. */
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
