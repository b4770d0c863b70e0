/* cfi.c — fuzz target: for any unwind tables, the CFI reader reads only inside the tables, and its rules are valid. An
 * input is the requested address (4 bytes, relative to the header), the position of the header in the tables (4 bytes),
 * and the tables. Addresses from the first rows of the index are requested, too. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "preload/stacks/cfi.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { NAMED = 8 };

static void ask(const struct cfi_object *object, uintptr_t pc) {
    errno = 0;
    struct cfi_rule rule = cfi_find(object, pc);
    int moved = rule.kind == CFI_SP || rule.kind == CFI_BP || rule.kind == CFI_BP_DEREF;
    if (rule.kind > CFI_END || rule.why >= CFI_WHYS || (rule.kind == CFI_UNKNOWN) != (rule.why != CFI_KNOWN) || errno)
        abort();
    if (moved ? rule.cfa % 8 || (rule.bp != CFI_SAME && rule.bp % 8) : rule.cfa || rule.bp != CFI_SAME || rule.bp_at_bp)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint32_t at;
    int32_t distance;
    if (size < 8) return 0;
    memcpy(&distance, data, 4);
    memcpy(&at, data + 4, 4);
    uintptr_t start = (uintptr_t)data + 8;
    struct cfi_object object = {.header = start + at % (size - 7), .start = start, .end = (uintptr_t)data + size};
    ask(&object, object.header + (uintptr_t)(intptr_t)distance);
    for (size_t row = object.header + 12, n = 0; n < NAMED && object.end - row >= 8 && row < object.end;
         row += 8, n++) {
        memcpy(&distance, (const void *)row, 4);
        ask(&object, object.header + (uintptr_t)(intptr_t)distance + n);
    }
    return 0;
}
