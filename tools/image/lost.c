/* lost.c — see lost.h. */
#include "tools/image/lost.h"

static const struct lost_kind kinds[] = {
    [SNAP_LOST_SITES] = {"sites", "events counted without their call site, for want of memory"},
    [SNAP_LOST_THREADS] = {"threads", "events counted without their thread, for want of memory"},
    [SNAP_LOST_MODULES] = {"modules", "call sites whose library could not be recorded"},
    [SNAP_LOST_LARGE] = {"large_blocks", "large blocks counted but not listed one by one"},
    [SNAP_LOST_MAPPINGS] = {"mappings", "mapping events not recorded"},
    [SNAP_LOST_BLOCKS] = {"blocks", "blocks served without being counted"},
    [SNAP_LOST_FILE] = {"file", "failures to create or grow the ledger file"},
    [SNAP_LOST_PEAK] = {"peak_sites", "sites missing from the picture of the peak"},
    [SNAP_LOST_STACKS] = {"stacks", "new call stacks counted at an outer one, for want of memory"},
    [SNAP_LOST_FRAMES] = {"frames", "call stacks that end early, at code whose caller cannot be found"},
    [SNAP_LOST_TAGS] = {"tags", "times that the owner of memory could not be noted: counted as untagged"},
    [SNAP_LOST_FOLDED] = {"folded", "dead call stacks counted at an outer one, to free memory"},
    [SNAP_LOST_TRACE] = {"trace", "lines of the trace of decisions that could not be written"},
    [SNAP_LOST_CUDA] = {"cuda", "blocks of CUDA memory not listed, or look-ups of unknown CUDA functions"},
    [SNAP_LOST_PYTHON] = {"python", "times that the Python functions of a call stack could not be found"},
};

const struct lost_kind *lost_kind(size_t kind) {
    return kind < sizeof kinds / sizeof *kinds && kinds[kind].key ? &kinds[kind] : NULL;
}

bool lost_any(const struct image *image) {
    for (size_t i = 0; i < SNAP_LOST_KINDS; i++)
        if (image->header.lost[i]) return true;
    return image->inexact != 0;
}
