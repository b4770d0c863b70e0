/* growth.c — see growth.h. */
#include "tools/watch/growth.h"
#include "tools/base/duration.h"
#include "tools/views/estimate.h"
#include "tools/image/image.h"
#include "tools/symbols/innermost.h"
#include "tools/subject/live.h"
#include "tools/reader/image_load.h"
#include "tools/base/text.h"

#include <string.h>

/* WORTH_TELLING: call stacks that grow by fewer bytes a second are not shown. */
enum { WORTH_TELLING = 1024, NAME_SIZE = 128 };

static int growth_load(struct image *image, pid_t pid) {
    static struct live live;
    char error[256];
    if (live_open(&live, pid, error, sizeof error) < 0 || source_map(&live.source) < 0) return -1;
    int result = image_load(image, &live.source, true);
    source_close(&live.source);
    if (result == 0) result = estimate_stacks(image);
    if (result < 0) image_clear(image);
    return result;
}

static uint64_t growth_live_bytes(const struct image *image) {
    return image->host.live_bytes + image->mapped.live_bytes;
}

int growth_begin(struct growth_look *growth, pid_t pid) {
    struct image image;
    *growth = (struct growth_look){.pid = pid};
    if (growth_load(&image, pid) < 0) return -1;
    growth->since_ns = duration_now();
    growth->live_bytes = growth_live_bytes(&image);
    growth->header = image.header;
    groups_begin(&growth->groups, BY_SITE, 2);
    int result = groups_add(&growth->groups, &image, 0);
    image_clear(&image);
    if (result < 0) growth_end(growth);
    return result;
}

void growth_end(struct growth_look *growth) {
    groups_end(&growth->groups);
    growth->pid = 0;
}

static void growth_add_owner(const struct groups *groups, const char *kind, uint32_t id, char *line, size_t size) {
    char copy[NAME_SIZE];
    size_t used = strlen(line);
    if (used >= size || !groups_owner_words(groups, id, true, copy, sizeof copy)) return;
    snprintf(line + used, size - used, "%s%s %.127s", used ? ", " : "", kind, text_fit(copy, 60).s);
}

static void print_stack(FILE *to, int indent, const struct image *image, struct symbols *symbols, uint32_t node) {
    struct innermost stack;
    innermost_of(&stack, image, symbols, node);
    innermost_print(&stack, to, indent);
}

static void growth_print_row(const struct growth_look *growth, const struct row *row, double seconds, FILE *to,
                             int indent, const struct image *image, struct symbols *symbols) {
    char owners[4 * NAME_SIZE] = "";
    growth_add_owner(&growth->groups, "model", row->model, owners, sizeof owners);
    growth_add_owner(&growth->groups, "node", row->node, owners, sizeof owners);
    growth_add_owner(&growth->groups, "run", row->run, owners, sizeof owners);
    const char *member = groups_member(&growth->groups, row);
    fprintf(to, "%*s%s/s, %s%s%s\n", indent, "", text_size((uint64_t)((double)groups_row_growth(row) / seconds)).s,
            *owners ? owners : "no owner", row->stack || !*member ? "" : ", in ",
            row->stack || !*member ? "" : text_fit_path(member, 60).s);
    if (row->stack) print_stack(to, indent + 2, image, symbols, row->stack_node);
}

static void print_rows(const struct growth_look *growth, double seconds, FILE *to, int indent, size_t most,
                       const struct image *image) {
    struct symbols *symbols = symbols_begin(image, growth->pid);
    for (size_t i = 0; symbols && i < growth->groups.ordered && i < most; i++) {
        const struct row *row = groups_row(&growth->groups, i);
        if ((double)groups_row_growth(row) / seconds < WORTH_TELLING) break;
        growth_print_row(growth, row, seconds, to, indent, image, symbols);
    }
    symbols_end(symbols);
}

double growth_tell(struct growth_look *growth, FILE *to, int indent, size_t most) {
    struct image image;
    double rate = 0;
    if (!growth->pid || growth_load(&image, growth->pid) < 0) return 0;
    double seconds = (double)(duration_now() - growth->since_ns) / 1e9;
    bool same =
        image.header.start_ns == growth->header.start_ns && image.header.start_ticks == growth->header.start_ticks;
    if (same && seconds > 0.5 && groups_add(&growth->groups, &image, 1) == 0 &&
        groups_sort_by_growth(&growth->groups, most) == 0) {
        rate = ((double)growth_live_bytes(&image) - (double)growth->live_bytes) / seconds;
        image_drop_totals(&image);
        print_rows(growth, seconds, to, indent, most, &image);
    }
    image_clear(&image);
    growth_end(growth);
    return rate;
}
