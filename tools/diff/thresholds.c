/* thresholds.c — see thresholds.h. */
#include "tools/diff/thresholds.h"
#include "tools/base/size.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

struct thresholds thresholds_standard(void) {
    struct thresholds standard = {.pass_under = 1 << 20};
    limits_parse(&standard.limits, "5MiB,10%,owner:5MiB");
    return standard;
}

enum verdict thresholds_judge(const struct thresholds *thresholds, enum limit_scope scope, struct growth growth,
                              const struct limit **passed) {
    *passed = NULL;
    if (thresholds->pass_under && (growth.bytes < 0 || (uint64_t)growth.bytes < thresholds->pass_under))
        return VERDICT_FINE;
    *passed = limits_passed(&thresholds->limits, scope, growth);
    if (*passed) return VERDICT_FAILED;
    return thresholds->pass_under && limits_have(&thresholds->limits, scope) ? VERDICT_WARNING : VERDICT_FINE;
}
