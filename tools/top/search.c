/* search.c — see search.h. */
#include "tools/top/search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NOT_KNOWN, WITHOUT, WITH };
enum { NAME_WIDTH = 300, ROUTE_MOST = 1 << 16, FEW_ROWS = 256 };

static void stacks_forget(struct search *search) {
    free(search->words);
    free(search->places);
    search->words = NULL;
    search->places = NULL;
    search->word_count = 0;
}

static void search_forget(struct search *search) {
    stacks_forget(search);
    free(search->frames);
    search->frames = NULL;
    search->frame_count = 0;
}

void search_begin(struct search *search, const char *text) {
    search_forget(search);
    search->done = 0;
    search->turns = 0;
    snprintf(search->text, sizeof search->text, "%s", text);
}

void search_end(struct search *search) {
    search_forget(search);
    *search = (struct search){0};
}

/* --- searching stacks --- */

static int frames_load(struct search *search, struct names *names) {
    const struct image *image = &names->sampling->image;
    if (sampling_load_names(names->sampling) < 0) return -1;
    if (search->frames && search->frame_count == image->frame_count) return 0;
    free(search->frames);
    search->frames = names_match(names, search->text);
    search->frame_count = search->frames ? image->frame_count : 0;
    return search->frames ? 0 : -1;
}

static int stacks_load(struct search *search, struct names *names) {
    if (reader_table(&names->sampling->reader, SNAP_RUN, sizeof *search->words, (void **)&search->words,
                     &search->word_count) < 0)
        return -1;
    search->places = calloc(search->word_count + 1, 1);
    return search->places ? 0 : -1;
}

static bool frame_has(const struct search *search, uint32_t frame) {
    return frame < search->frame_count && search->frames[frame];
}

/* Like stack_has, but reads this one stack from the ledger, without the table of all stacks. */
static bool one_stack_has(const struct search *search, const struct names *names, uint32_t place) {
    uint32_t frames[NAMES_FRAMES_MOST];
    size_t count = sampling_stack(names->sampling, place, frames, NAMES_FRAMES_MOST), i = 0;
    while (i < count && !frame_has(search, frames[i])) i++;
    return i < count;
}

/* Whether a frame of the stack that begins at `place` and goes outwards has the text. The result is noted for each
 * place on the way, so that no place is walked twice. A hostile file may lead in a circle, so the length of the way is
 * limited. */
static bool stack_has(struct search *search, uint32_t place) {
    static uint32_t route[ROUTE_MOST];
    size_t length = 0;
    uint8_t found = WITHOUT;
    while (place >= SNAP_RUN_HEAD && place < search->word_count && length < ROUTE_MOST) {
        if (search->places[place]) {
            found = search->places[place];
            break;
        }
        route[length++] = place;
        place =
            search->words[place] & SNAP_RUN_FIRST ? search->words[place - SNAP_RUN_HEAD + SNAP_RUN_OUTER] : place - 1;
    }
    while (length) {
        place = route[--length];
        if (frame_has(search, search->words[place] & SNAP_RUN_FRAME)) found = WITH;
        search->places[place] = found;
    }
    return found == WITH;
}

/* --- searching rows --- */

static bool row_has(struct search *search, struct names *names, const struct grouping *grouping, uint64_t key) {
    const struct image *image = &names->sampling->image;
    if (grouping->view != BY_SITE)
        return strcasestr(names_row(names, grouping->view, key, NAME_WIDTH).s, search->text) != NULL;
    if (strcasestr(names_owners(names, grouping_tag(key), NAME_WIDTH).s, search->text)) return true;
    uint32_t place = grouping_stack(key);
    if (place) return search->places ? stack_has(search, place) : one_stack_has(search, names, place);
    return strcasestr(image_module_name(image, grouping_module(BY_SITE, key)), search->text) != NULL;
}

static void rows_settle_matched(struct search *search, struct names *names, struct grouping *grouping) {
    for (; search->done < grouping->rows.count; search->done++) {
        uint32_t row = (uint32_t)search->done;
        if (grouping->rows.matched[row])
            rows_keep(&grouping->rows, row, row_has(search, names, grouping, grouping->rows.keys[row]));
    }
}

/* Decides about the rows that are not decided yet. For many rows, the table of all stacks is read first. The table is
 * forgotten at the end of each call, because until the next call the process may give a place in the ledger to another
 * stack. */
int search_apply(struct search *search, struct names *names, struct grouping *grouping) {
    if (!*search->text) return 0;
    if (search->turns != grouping->turns) search->done = 0;
    search->turns = grouping->turns;
    if (search->done == grouping->rows.count) return 0;
    if (grouping->view == BY_SITE && frames_load(search, names) < 0) return -1;
    bool many = grouping->view == BY_SITE && grouping->rows.count - search->done > FEW_ROWS;
    int result = many ? stacks_load(search, names) : 0;
    if (result == 0) rows_settle_matched(search, names, grouping);
    stacks_forget(search);
    return result;
}
