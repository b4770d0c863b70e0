/* tracked.c — see tracked.h. */
#include "preload/base/tracked.h"

struct tracked_page tracked_page __attribute__((aligned(OS_PAGE)));
uint32_t tracked_mark;
