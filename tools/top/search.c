/* search.c — see search.h. */
#include "tools/top/search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NOT_KNOWN, WITHOUT, WITH };
enum { NAME_WIDTH = 300, ROUTE_MOST = 1 << 16 };

static void search_forget(struct search *search) {
    free(search->frames);
    free(search->words);
    free(search->places);
    search->frames = NULL;
    search->words = NULL;
    search->places = NULL;
    search->frame_count = search->word_count = 0;
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

/* --- stacks --- */

static int stacks_load(struct search *search, struct names *names) {
    struct sampling *sampling = names->sampling;
    size_t words = (size_t)sampling_records(sampling, SNAP_RUN);
    if (search->frames && search->word_count == words && search->frame_count == sampling->image.frame_count) return 0;
    search_forget(search);
    search->frames = names_match(names, search->text);
    search->frame_count = sampling->image.frame_count;
    if (!search->frames || reader_table(&sampling->reader, SNAP_RUN, sizeof *search->words, (void **)&search->words,
                                        &search->word_count) < 0)
        return -1;
    search->places = calloc(search->word_count + 1, 1);
    return search->places ? 0 : -1;
}

static bool frame_has(const struct search *search, uint32_t place) {
    uint32_t frame = search->words[place] & SNAP_RUN_FRAME;
    return frame < search->frame_count && search->frames[frame];
}

/* Whether a frame of the stack has the text. Each place is walked once: what is found is noted on the way back. A
 * hostile file may lead in a circle, so the route is limited. */
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
        if (frame_has(search, place)) found = WITH;
        search->places[place] = found;
    }
    return found == WITH;
}

/* --- rows --- */

static bool row_has(struct search *search, struct names *names, const struct grouping *grouping, uint64_t key) {
    const struct image *image = &names->sampling->image;
    if (grouping->view != BY_SITE)
        return strcasestr(names_row(names, grouping->view, key, NAME_WIDTH).s, search->text) != NULL;
    if (strcasestr(names_owners(names, grouping_tag(key), NAME_WIDTH).s, search->text)) return true;
    uint32_t place = grouping_stack(key);
    if (place) return stack_has(search, place);
    return strstr(image_module_name(image, grouping_module(BY_SITE, key)), search->text) != NULL;
}

int search_apply(struct search *search, struct names *names, struct grouping *grouping) {
    if (!*search->text) return 0;
    if (search->turns != grouping->turns) search->done = 0;
    search->turns = grouping->turns;
    if (search->done == grouping->rows.count) return 0;
    if (grouping->view == BY_SITE && stacks_load(search, names) < 0) return -1;
    for (; search->done < grouping->rows.count; search->done++) {
        uint32_t row = (uint32_t)search->done;
        if (grouping->rows.kept[row])
            rows_keep(&grouping->rows, row, row_has(search, names, grouping, grouping->rows.keys[row]));
    }
    return 0;
}
