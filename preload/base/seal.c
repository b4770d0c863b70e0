/* seal.c — see seal.h. */
#include "preload/base/seal.h"

static bool sealed;

void seal_set(void) { __atomic_store_n(&sealed, true, __ATOMIC_SEQ_CST); }

void seal_lift(void) { __atomic_store_n(&sealed, false, __ATOMIC_SEQ_CST); }

bool seal_is_set(void) { return __atomic_load_n(&sealed, __ATOMIC_RELAXED); }
