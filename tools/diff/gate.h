/* gate.h — judges whether runs of a program hold more than a baseline. Pure.
 * In: figures of the baseline, figures of the runs, limits, suppressions. Out: findings.
 *
 * The rule: growth is the distance from the highest figure of the baseline's runs to the lowest figure of the present
 * runs. So a limit is exceeded only if every present run exceeds it, and differences between runs of one program do not
 * count as growth. The rule has two consequences. First, one more run can only make the verdict milder, so no further
 * run is needed once the verdict is "pass". Second, a program that did not change seldom fails by chance. It fails
 * only if a figure is higher in each of N present runs than in each of N earlier runs. If the runs are independent, the
 * chance of this is at most 1 in C(2N, N): 1 in 252 for N = 5, 1 in 20 for N = 3. The distribution of the figure does
 * not matter. With many figures, it is more likely that one of them is higher.
 *
 * The highest possible growth of suppressed call sites is subtracted from their owners and from the total. Host memory
 * and memory of CUDA devices are judged separately. */
#ifndef MEMSTOW_GATE_H
#define MEMSTOW_GATE_H

#include "tools/symbols/figures.h"
#include "tools/diff/suppressions.h"
#include "tools/diff/thresholds.h"

struct finding {
    const struct figure *figure;    /* its kind and name */
    struct range before[2], now[2]; /* [0]: bytes; [1]: blocks */
    struct growth growth;           /* negative: the figure shrank; 0: the two ranges overlap or touch */
    int64_t suppressed_bytes;       /* subtracted from the growth */
    bool is_new;                    /* the name is not in the baseline */
    enum verdict verdict;
    const struct limit *limit;             /* the limit that the growth passed, or NULL */
    const struct limit *below_floor;       /* a limit that does not count, because growth is below the floor; or NULL */
    const struct suppression *suppression; /* the line that suppresses the growth, or NULL */
};

struct gate {
    const struct figures *before, *now;
    const struct thresholds *thresholds;
    struct suppressions *suppressions;
    bool owners_only; /* the call sites of the present runs are not known */
    /* First the totals (the host's before the devices'), then owners, then call sites that changed. Owners and call
     * sites are sorted: the worst verdict first, and for one verdict the largest growth first. */
    struct finding *list;
    size_t count, over, warnings, suppressed;
};

/* Judges gate->now, and fills the list of findings. It can be called again with more runs. Returns 0, or -1: no
 * memory. */
int gate_judge(struct gate *gate);
void gate_end(struct gate *gate);
/* Whether the present runs have memory of CUDA devices which is not judged, because the baseline has no figures for
 * devices. */
bool gate_leaves_out_cuda(const struct gate *gate);
/* Whether call sites that differ only in the origin of an owner were judged as one, because the baseline has no origins
 * for call sites. */
bool gate_leaves_out_origins(const struct gate *gate);
/* Whether the call site belongs to the owner: the site's name contains the owner's kind and name. If an origin stands
 * behind them in the site's name, it must be the owner's origin. */
bool gate_is_of(const struct figure *site, const struct figure *owner);

#endif
