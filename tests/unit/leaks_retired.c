/* leaks_retired.c — which retired owners leak, if several have one name. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "tools/leaks/leaks.h"

enum { MOST = 30, FIRST_RUN = 100 };
static const uint64_t MANY = 100 << 20, FEW = 10 << 10;

static char strings[] = "\0model\0run\0origin";

/* A process with some models of one name, and with one run for each model. Each model was retired in the run after its
 * own. The last model was retired after all runs. */
struct process {
    struct snap_owner owners[2 * MOST];
    struct snap_tag tags[MOST + 1];
    struct total totals[MOST];
    struct image image;
    struct leak_sites sites;
    struct leaks leaks;
};

/* Looks for leaks. Each owner has allocated MANY bytes and still has `left` of them; only the owner at index `other`
 * has `others` of them. */
static const struct leak_retired *look(struct process *self, uint32_t count, uint64_t left, uint32_t other,
                                       uint64_t others) {
    for (uint32_t i = 0; i < count; i++) {
        self->owners[i] = (struct snap_owner){.id = 1 + i,
                                              .kind = SNAP_OWNER_MODEL,
                                              .name = 1,
                                              .origin = 11,
                                              .state = SNAP_OWNER_RETIRED,
                                              .end_ns = 10 * i + 15};
        self->tags[1 + i] = (struct snap_tag){1 + i, 0, 0, 0};
        self->totals[i] = (struct total){.class = SNAP_HOST,
                                         .tag = 1 + i,
                                         .alloc_bytes = MANY,
                                         .alloc_blocks = 2,
                                         .free_bytes = MANY - (i == other ? others : left),
                                         .free_blocks = 1};
    }
    for (uint32_t i = 0; i < count; i++)
        self->owners[count + i] = (struct snap_owner){.id = FIRST_RUN + i,
                                                      .kind = SNAP_OWNER_RUN,
                                                      .name = 7,
                                                      .state = SNAP_OWNER_RETIRED,
                                                      .end_ns = 10 * (i + 1)};
    self->image = (struct image){.header = {.state = SNAP_RUNNING},
                                 .strings = strings,
                                 .strings_size = sizeof strings,
                                 .owners = self->owners,
                                 .owner_count = 2 * count,
                                 .tags = self->tags,
                                 .tag_count = 1 + count,
                                 .totals = self->totals,
                                 .total_count = count};
    leak_sites_begin(&self->sites);
    cr_assert_eq(leak_sites_read(&self->sites, &self->image), 0);
    cr_assert_eq(leaks_find(&self->leaks, &self->sites, &self->image, 1024), 0);
    cr_assert_eq(self->leaks.retired_count, 1);
    cr_assert_eq(self->leaks.retired[0].owners, count);
    return &self->leaks.retired[0];
}

static void end(struct process *self) {
    leaks_clear(&self->leaks);
    leak_sites_end(&self->sites);
    free(self);
}

static const struct {
    uint32_t count;
    uint64_t left, others;
    uint32_t other;
    bool is_leak;
    const char *what;
} groups[] = {
    {30, FEW, FEW, 0, false, "each left a little"},
    {30, MANY, MANY, 0, true, "each left all"},
    {30, FEW, MANY, 3, true, "one left all, and the others, which left a little, do not hide it"},
    {30, FEW, MANY, 28, true, "a run has ended since"},
    {30, FEW, MANY, 29, false, "what was retired after the last run may be about to go"},
    {10, FEW, MANY, 9, false, "the same, where it is much of what all of them had"},
    {30, MANY / 10, FEW, 29, true, "a tenth of each is left"},
};

Test(leaks_retired, owners_of_one_name) {
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        struct process *process = calloc(1, sizeof *process);
        cr_assert(process);
        const struct leak_retired *found =
            look(process, groups[i].count, groups[i].left, groups[i].other, groups[i].others);
        cr_expect_eq(found->is_leak, groups[i].is_leak, "%s", groups[i].what);
        cr_expect_eq(process->leaks.retired_leaks, groups[i].is_leak, "%s", groups[i].what);
        cr_expect_eq(found->runs_since, groups[i].count - 1, "the first was retired in the second run");
        end(process);
    }
}
