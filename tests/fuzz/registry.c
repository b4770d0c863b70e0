/* registry.c — fuzz target: any process registry is read, or refused with a place inside of it. */
#include <stdlib.h>
#include <string.h>

#include "tools/watch/registry.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct registry registry;
    char *text = malloc(size + 1); /* a sanitizer notices each byte beyond the end */
    if (!text) return 0;
    memcpy(text, data, size);
    int result = registry_parse(&registry, "fuzz", text, size);
    if ((result < 0) != (registry.error[0] != 0)) abort();
    for (size_t i = 0; result == 0 && i < registry.count; i++)
        if (registry.processes[i].pid < 2) abort();
    registry_clear(&registry);
    free(text);
    return 0;
}
