/* moment.c — see moment.h. */
#include "tools/push/moment.h"
#include "tools/base/complain.h"
#include "tools/base/text.h"
#include "tools/export/pprof.h"
#include "tools/subject/subject.h"
#include "tools/views/estimate.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static uint64_t moment_wall(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static void moment_put(struct moment *moment, struct pprof *pprof, const struct image *image,
                       const struct total *total) {
    struct churn_entry grown = churn_take(&moment->churn, image, total);
    const struct snap_tag *tag = image_tag(image, total->tag);
    const char *path = image_module(image, total->module);
    char model[2048];
    struct pprof_sample sample = {.stack = total->stack, .module = total->module};
    sample.nowhere = path ? text_base_name(path) : "(call stack unknown)";
    sample.labels[PPROF_MODEL] = image_owner_words(image, tag->model, model, sizeof model);
    sample.labels[PPROF_NODE] = image_owner_name(image, tag->node);
    sample.labels[PPROF_RUN] = image_owner_name(image, tag->run);
    sample.values[0] = (int64_t)grown.grown_blocks;
    sample.values[1] = (int64_t)grown.grown_bytes;
    sample.values[2] = (int64_t)total_live_blocks(total);
    sample.values[3] = (int64_t)total_live_bytes(total);
    if (sample.values[0] || sample.values[1] || sample.values[2] || sample.values[3]) pprof_put(pprof, &sample);
}

/* Writes a profile that is dated now and covers the time since the last look. */
static int moment_write(struct moment *moment, const struct image *image, struct symbols *symbols, FILE *to) {
    static const struct pprof_type types[PPROF_VALUES] = {
        {"alloc_objects", "count"}, {"alloc_space", "bytes"}, {"inuse_objects", "count"}, {"inuse_space", "bytes"}};
    static struct pprof pprof;
    struct snap_header header = image->header;
    uint64_t now = image_now(image);
    header.start_wall_ns = moment_wall();
    if (moment->looked_ns) header.start_ns = moment->looked_ns;
    struct pprof_head head = {.header = &header,
                              .now = now,
                              .images = {image},
                              .symbols = {symbols},
                              .types = types,
                              .type_count = PPROF_VALUES,
                              .chosen = 3,
                              .to = to};
    moment->looked_ns = now;
    int result = pprof_begin(&pprof, &head);
    for (size_t i = 0; result == 0 && i < image->total_count; i++)
        if (!(image->totals[i].flags & (TOTAL_INHERITED | TOTAL_REMAINDER)))
            moment_put(moment, &pprof, image, &image->totals[i]);
    return pprof_end(&pprof) < 0 ? -1 : result;
}

static struct symbols *moment_symbols(struct moment *moment, const struct image *image) {
    if (moment->symbols && symbols_follow(moment->symbols, image)) return moment->symbols;
    symbols_end(moment->symbols);
    return moment->symbols = symbols_begin(image, moment->pid);
}

static int moment_compress(struct moment *moment, const struct image *image) {
    struct symbols *symbols = moment_symbols(moment, image);
    FILE *to = symbols ? open_memstream(&moment->profile, &moment->length) : NULL;
    int result = to && churn_look(&moment->churn, image) == 0 ? moment_write(moment, image, symbols, to) : -1;
    churn_done(&moment->churn);
    if (to && fclose(to) != 0) result = -1;
    if (symbols) symbols_rest(symbols);
    return result;
}

void moment_clear(struct moment *moment) {
    churn_clear(&moment->churn);
    symbols_end(moment->symbols);
    moment->symbols = NULL;
}

/* Forgets earlier looks if they were at another ledger: the process became another program, or a new process has its
 * pid. */
static void moment_follow(struct moment *moment, const struct image *image) {
    if (moment->start_ns != image->header.start_ns) {
        moment_clear(moment);
        moment->looked_ns = 0;
    }
    moment->start_ns = image->header.start_ns;
    snprintf(moment->name, sizeof moment->name, "%.31s", image->header.name);
}

int moment_take(struct moment *moment) {
    static struct subject subject;
    moment->profile = NULL;
    moment->length = 0;
    int code = subject_open_pid(&subject, moment->pid, false);
    if (code != EXIT_FINE) return code;
    moment_follow(moment, &subject.image);
    int result = estimate_stacks(&subject.image);
    if (result == 0) result = moment_compress(moment, &subject.image);
    subject_close(&subject);
    if (result == 0) return EXIT_FINE;
    complain("not enough memory");
    free(moment->profile);
    moment->profile = NULL;
    return EXIT_UNREADABLE;
}
