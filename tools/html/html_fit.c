/* html_fit.c — see html_fit.h. */
#include "tools/html/html_fit.h"
#include "tools/html/html_choice.h"

#include <stdlib.h>

enum { ROUNDS = 4 /* choices at most; the last one counts, whatever its size */ };

/* Parts of the room. guess: the aim of the first choice, by the average cost of each item. aim: the aim of later
 * choices, by the size of the columns so far. enough: what must be filled if requested sites are left out. */
static size_t guess_of(size_t room) { return room / 3 * 2; }
static size_t aim_of(size_t room) { return room / 8 * 7; }
static size_t enough_of(size_t room) { return room / 4 * 3; }

void html_fit_end(struct html_fit *fit) {
    free(fit->text);
    *fit = (struct html_fit){0};
}

/* Whether the columns fit into the room, and either have all requested sites or fill enough of it. */
static bool html_fit_fits(const struct html_fit *fit, const struct html_tree *tree, size_t most, size_t room) {
    bool all = tree->leaf_count - tree->folded >= (most < tree->leaf_count ? most : tree->leaf_count);
    return fit->size <= room && (all || fit->size >= enough_of(room));
}

int html_fit_begin(struct html_fit *fit, struct html_tree *tree, size_t most, size_t room, html_data *write,
                   void *context) {
    size_t bytes = guess_of(room);
    *fit = (struct html_fit){0};
    for (int round = 0; round < ROUNDS; round++) {
        html_fit_end(fit);
        if (html_choice_make(tree, most, bytes) < 0 || html_tree_build(tree) < 0) return -1;
        if (html_page_pack(&fit->text, &fit->size, write, context) < 0) return -1;
        if (html_fit_fits(fit, tree, most, room)) return 0;
        bytes = (size_t)((double)bytes * (double)aim_of(room) / (double)fit->size);
    }
    return 0;
}
