/* gate.h — whether runs of a program hold more than a baseline says. Pure.
 * In: figures of the baseline, figures of the runs, limits, suppressions. Out: findings.
 *
 * The rule: what something grew by is the distance from the highest that the baseline's runs had to the lowest that the
 * present runs had. So a limit counts as passed only if every one of the present runs passes it, and a growth within
 * what runs of one program differ by is none. Two consequences: one more run can only acquit, so that runs may end as
 * soon as nothing is over a limit; and if nothing changed, N runs are all above N earlier ones, by whatever amount,
 * once in C(2N, N) times at most (5: 252; 3: 20), whatever their distribution, if they are independent. That is for one
 * figure; of many one is above more often.
 *
 * What suppressed call sites grew by is taken off their owners, and the total, at its highest. Host memory and memory
 * of CUDA devices are judged each by itself. */
#ifndef MEMSTOW_GATE_H
#define MEMSTOW_GATE_H

#include "tools/symbols/figures.h"
#include "tools/diff/suppressions.h"
#include "tools/diff/thresholds.h"

struct finding {
    const struct figure *figure;    /* its kind and name */
    struct range before[2], now[2]; /* bytes, blocks */
    struct growth growth;           /* negative: it shrank; 0: no more than runs differ by */
    int64_t suppressed_bytes;       /* taken off the growth */
    bool is_new;                    /* the baseline has nothing of it */
    enum verdict verdict;
    const struct limit *limit;             /* that was passed, or NULL */
    const struct limit *spared;            /* that was passed, but by so little that it is fine; or NULL */
    const struct suppression *suppression; /* that lets it pass, or NULL */
};

struct gate {
    const struct figures *before, *now;
    const struct thresholds *thresholds;
    struct suppressions *suppressions;
    bool owners_only;     /* call sites of the present runs are not known */
    struct finding *list; /* totals, the host's first; owners, call sites that changed: of each what grew most first */
    size_t count, over, warnings, suppressed;
};

/* 0, or -1: no memory. It may be judged again when there are more runs. */
int gate_judge(struct gate *gate);
void gate_end(struct gate *gate);
/* The present runs have memory of CUDA devices, and the baseline says nothing of any: that is not judged. */
bool gate_leaves_out_cuda(const struct gate *gate);
/* Whether the call site is the owner's. */
bool gate_is_of(const struct figure *site, const struct figure *owner);

#endif
