/* register.c — the entry points of memstow.h. */
#include "memstow.h"

#include "process.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT uint32_t memstow_abi_version(void) { return MEMSTOW_ABI_VERSION; }

EXPORT int32_t memstow_is_tracking(void) { return process_tracked(); }
