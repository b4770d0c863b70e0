/* html_fit.c — see html_fit.h. */
#include "tools/html/html_fit.h"
#include "tools/html/html_choice.h"

#include <stdlib.h>

enum {
    MOST = 4600000,  /* bytes for columns. The rest of a page is much smaller than 400 kB, so a page has at most 5 MB */
    GUESS = 3000000, /* bytes that the first choice aims at, by the average cost of each item */
    AIM = MOST / 8 * 7,    /* bytes that later choices aim at, scaled by the size that the columns had before */
    ENOUGH = MOST / 4 * 3, /* fewer bytes are accepted only if all requested sites are in the page */
    ROUNDS = 4,            /* choices at most; the last one counts, whatever its size */
};

void html_fit_end(struct html_fit *fit) {
    free(fit->text);
    *fit = (struct html_fit){0};
}

static int write_columns(struct html_fit *fit, html_data *write, void *context) {
    struct html_out *out = malloc(sizeof *out);
    FILE *to = open_memstream(&fit->text, &fit->size);
    int result = out && to ? html_out_begin(out, to) : -1;
    if (result == 0) {
        result = write(out, context);
        if (html_out_end(out) < 0) result = -1;
    }
    if (to && fclose(to) != 0) result = -1;
    free(out);
    return result;
}

/* Whether the columns fit into MOST bytes, and either have all requested sites or fill at least ENOUGH bytes. */
static bool html_fit_fits(const struct html_fit *fit, const struct html_tree *tree, size_t most) {
    bool all = tree->leaf_count - tree->folded >= (most < tree->leaf_count ? most : tree->leaf_count);
    return fit->size <= MOST && (all || fit->size >= ENOUGH);
}

int html_fit_begin(struct html_fit *fit, struct html_tree *tree, size_t most, html_data *write, void *context) {
    size_t bytes = GUESS;
    *fit = (struct html_fit){0};
    for (int round = 0; round < ROUNDS; round++) {
        html_fit_end(fit);
        if (html_choice_make(tree, most, bytes) < 0 || html_tree_build(tree) < 0) return -1;
        if (write_columns(fit, write, context) < 0) return -1;
        if (html_fit_fits(fit, tree, most)) return 0;
        bytes = (size_t)((double)bytes * AIM / (double)fit->size);
    }
    return 0;
}
