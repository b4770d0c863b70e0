/* html_fit.c — see html_fit.h. */
#include "tools/html/html_fit.h"
#include "tools/html/html_choice.h"

#include <stdlib.h>

enum {
    ROUNDS = 4,      /* how many choices of sites are tried at most; the last choice is used, whatever its size is */
    SITE_LETTERS = 4 /* the most letters that the page has for the site of a block: three bytes in base64 */
};

/* Shares of the limit, in bytes. A cost is an estimate from averages; a size is what the columns really take.
 * - all: the first choice is all sites if they cost at most this. This is more than the limit, because figures and call
 *   stacks of most programs compress better than the estimate.
 * - guess: if the first choice leaves out sites, it may cost at most this. This is so little that even the most random
 *   program that we know (tests/cost/deep.c) fits at once.
 * - aim: the size that every later choice aims at. The size of the previous choice tells how much the next may cost.
 * - enough: the least size of a choice that leaves out requested sites. */
static size_t all_of(size_t limit) { return limit / 2 * 3; }
static size_t guess_of(size_t limit) { return limit / 8 * 5; }
static size_t aim_of(size_t limit) { return limit / 8 * 7; }
static size_t enough_of(size_t limit) { return limit / 4 * 3; }

void html_fit_end(struct html_fit *fit) {
    free(fit->text);
    *fit = (struct html_fit){0};
}

/* Whether the columns are within the limit, and have all requested sites or fill enough of the limit. */
static bool html_fit_fits(const struct html_fit *fit, const struct html_tree *tree, size_t most, size_t limit) {
    bool all = tree->leaf_count - tree->folded >= (most < tree->leaf_count ? most : tree->leaf_count);
    return fit->size <= limit && (all || fit->size >= enough_of(limit));
}

/* Makes the first choice. Sets *bytes to the largest estimated cost that this choice may have. Returns 0, or -1: no
 * memory. */
static int choose_first(struct html_tree *tree, size_t most, size_t limit, size_t *bytes) {
    *bytes = all_of(limit);
    int all = most < tree->leaf_count ? 0 : html_choice_all(tree, *bytes);
    if (all) return all < 0 ? -1 : 0;
    *bytes = guess_of(limit);
    return html_choice_make(tree, most, *bytes);
}

int html_fit_begin(struct html_fit *fit, struct html_tree *tree, size_t most, size_t limit, html_data *write,
                   void *context) {
    size_t bytes;
    *fit = (struct html_fit){0};
    if (choose_first(tree, most, limit, &bytes) < 0) return -1;
    for (int round = 1;; round++) {
        if (html_tree_build(tree) < 0 || html_page_pack(&fit->text, &fit->size, write, context) < 0) return -1;
        if (round == ROUNDS || html_fit_fits(fit, tree, most, limit)) return 0;
        bytes = (size_t)((double)bytes * (double)aim_of(limit) / (double)fit->size);
        html_fit_end(fit);
        if (html_choice_make(tree, most, bytes) < 0) return -1;
    }
}

int html_fit_blocks(size_t *count, size_t *limit, html_data *write, void *context) {
    for (size_t size = 0;; *count /= 2) {
        char *text;
        int result = html_page_pack(&text, &size, write, context);
        free(text);
        if (result < 0) return -1;
        size += *count * SITE_LETTERS;
        if (size > *limit / 3 && *count) continue;
        *limit -= size < *limit ? size : *limit;
        return 0;
    }
}
