/* frameprint.c — see frameprint.h. */
#include "tools/symbols/frameprint.h"

#include <string.h>

static uint64_t frameprint_mix(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

static uint64_t frameprint_bytes(uint64_t hash, const void *bytes, size_t size) {
    const uint8_t *at = bytes;
    uint64_t word;
    for (; size >= sizeof word; at += sizeof word, size -= sizeof word) {
        memcpy(&word, at, sizeof word);
        hash = frameprint_mix(hash, word);
    }
    for (; size; size--) hash = frameprint_mix(hash, *at++);
    return hash;
}

/* Adds to the hash the module's fields on which the names of its code depend. The module's flags change, so they are
 * left out. */
static uint64_t frameprint_module(uint64_t hash, const struct snap_module *module) {
    hash = frameprint_mix(frameprint_mix(hash, module->bias), module->path);
    return frameprint_bytes(hash, module->build_id, sizeof module->build_id);
}

static uint64_t frameprint_hash(const struct frameprint *print, const struct image *image) {
    uint64_t hash = frameprint_bytes(1, image->frames, print->frames * sizeof *image->frames);
    hash = frameprint_bytes(hash, image->codes, print->codes * sizeof *image->codes);
    for (size_t i = 0; i < print->modules; i++) hash = frameprint_module(hash, &image->modules[i]);
    return hash;
}

struct frameprint frameprint_of(const struct image *image) {
    struct frameprint print = {image->frame_count, image->code_count, image->module_count, 0};
    print.hash = frameprint_hash(&print, image);
    return print;
}

bool frameprint_fits(const struct frameprint *print, const struct image *image) {
    return image->frame_count >= print->frames && image->code_count >= print->codes &&
           image->module_count >= print->modules && frameprint_hash(print, image) == print->hash;
}
