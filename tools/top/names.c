/* names.c — see names.h. */
#include "tools/top/names.h"
#include "tools/symbols/innermost.h"
#include "tools/views/roster.h"
#include "tools/views/thread_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void names_begin(struct names *names, struct sampling *sampling) {
    memset(names, 0, sizeof *names);
    names->sampling = sampling;
}

void names_end(struct names *names) {
    symbols_end(names->symbols);
    names->symbols = NULL;
}

/* The symbols of the image. The image may have grown since the last call, or be of another program now. NULL: no
 * memory. */
static struct symbols *names_symbols(struct names *names) {
    struct sampling *sampling = names->sampling;
    if (sampling_load_names(sampling) < 0) return NULL;
    if (names->symbols && names->execs != sampling->execs) names_end(names);
    names->execs = sampling->execs;
    if (!names->symbols)
        names->symbols = symbols_begin(&sampling->image, sampling->state == SAMPLING_RUNS ? sampling->pid : 0);
    else if (!symbols_grow(names->symbols))
        names_end(names);
    return names->symbols;
}

/* --- names of owners --- */

static struct text_line owner_words(const struct image *image, uint32_t id, int width) {
    struct text_line words;
    if (!image_owner_words(image, id, words.s, sizeof words.s)) snprintf(words.s, sizeof words.s, "owner %u", id);
    return text_fit(words.s, width);
}

static void state_add(char *to, size_t size, const char *word) {
    size_t used = strlen(to);
    snprintf(to + used, size - used, "%s%s", used ? ", " : "", word);
}

/* The words about an owner beside its name: "stow, 1.2 GiB stowed, retired". */
static void owner_state(const struct image *image, const struct snap_owner *owner, char *to, size_t size) {
    char words[80];
    *to = 0;
    if (roster_policy(owner)) state_add(to, size, roster_policy(owner));
    if (owner->stowed_bytes) {
        snprintf(words, sizeof words, "%s stowed", text_size(owner->stowed_bytes).s);
        state_add(to, size, words);
    }
    if (image->header.moving_owner == owner->id) {
        snprintf(words, sizeof words, "%s, %s done", image->header.moving == SNAP_MOVING_OUT ? "stowing" : "restoring",
                 text_size(image->header.moved_bytes).s);
        state_add(to, size, words);
    }
    if (owner->kind != SNAP_OWNER_RUN && roster_is_retired(owner)) state_add(to, size, "retired");
}

static struct text_line names_owner_name(const struct image *image, uint32_t id, int width) {
    struct text_line line;
    char state[200] = "";
    if (!id) return (struct text_line){"untagged"};
    const struct snap_owner *owner = image_owner(image, id);
    if (owner) owner_state(image, owner, state, sizeof state);
    int rest = *state ? text_columns(state) + 4 : 0;
    snprintf(line.s, sizeof line.s, *state ? "%.700s  [%.200s]" : "%.700s",
             owner_words(image, id, width - rest > 8 ? width - rest : 8).s, state);
    return text_fit(line.s, width);
}

struct text_line names_owners(const struct names *names, uint32_t tag, int width) {
    static const char *const kinds[] = {"model", "node", "run"};
    const struct image *image = &names->sampling->image;
    const struct snap_tag *tags = image_tag(image, tag);
    const uint32_t ids[] = {tags->model, tags->node, tags->run};
    struct text_line line = {""};
    for (int i = 0; i < 3; i++) {
        size_t used = strlen(line.s);
        if (ids[i])
            snprintf(line.s + used, sizeof line.s - used, "%s%s %.200s", used ? ", " : "", kinds[i],
                     owner_words(image, ids[i], 80).s);
    }
    return text_fit(line.s, width);
}

/* --- lines of stacks --- */

/* Reads a stack from the ledger, and makes it node 1 of the image, for functions that read stacks from an image.
 * `place`: where the stack's innermost frame is in the ledger. */
static void stack_lend(struct names *names, uint32_t place) {
    struct image *image = &names->sampling->image;
    uint32_t *frames = names->words + 1;
    size_t count = sampling_stack(names->sampling, place, frames, NAMES_FRAMES_MOST);
    for (size_t i = 0; i < count / 2; i++) {
        uint32_t frame = frames[i];
        frames[i] = frames[count - 1 - i];
        frames[count - 1 - i] = frame;
    }
    names->words[0] = (uint32_t)count;
    names->nodes[0] = (struct snap_node){.segment = UINT32_MAX};
    names->nodes[1] = (struct snap_node){.parent = 0, .segment = 0};
    image->words = names->words;
    image->word_count = count + 1;
    image->nodes = names->nodes;
    image->node_count = 2;
}

static void stack_take_back(struct names *names) {
    struct image *image = &names->sampling->image;
    image->words = NULL;
    image->nodes = NULL;
    image->word_count = image->node_count = 0;
}

static bool stack_line(struct names *names, uint32_t place, int width, struct text_line *line) {
    struct innermost_line caller;
    struct symbols *symbols = names_symbols(names);
    if (!symbols) return false;
    stack_lend(names, place);
    bool found = innermost_caller(&caller, &names->sampling->image, symbols, 1);
    if (found) *line = text_fit(innermost_text(&caller, width).s, width);
    stack_take_back(names);
    return found;
}

static struct text_line site_name(struct names *names, enum view view, uint64_t key, int width) {
    const struct image *image = &names->sampling->image;
    struct text_line owners = names_owners(names, grouping_tag(key), width), name, line;
    int half = width / 2, wanted = *owners.s ? text_columns(owners.s) + 4 : 0;
    int rest = wanted < half ? width - wanted : half; /* the owners get the width that the stack leaves */
    uint32_t place = grouping_stack(key);
    if (!place || !stack_line(names, place, rest, &name))
        name = text_fit(place ? "(unknown stack)" : image_module_name(image, grouping_module(view, key)), rest);
    owners = text_fit(owners.s, width - text_columns(name.s) - 4);
    snprintf(line.s, sizeof line.s, *owners.s ? "%.600s  [%.400s]" : "%.600s", name.s, owners.s);
    return line;
}

size_t names_stack(struct names *names, uint64_t key, struct text_line *lines, size_t most, int width) {
    struct symbols *symbols = names_symbols(names);
    uint32_t frames[NAMES_FRAMES_MOST];
    size_t count = symbols ? sampling_stack(names->sampling, grouping_stack(key), frames, NAMES_FRAMES_MOST) : 0,
           made = 0;
    for (size_t i = 0; i < count; i++) {
        const struct named_frame *frame = symbols_frame(symbols, frames[i]);
        for (uint32_t k = 0; k < frame->count && made < most; k++)
            lines[made++] = innermost_text(&(struct innermost_line){frame, &frame->symbols[k]}, width);
    }
    if (!made && most)
        lines[made++] = text_fit(image_module_name(&names->sampling->image, grouping_module(BY_SITE, key)), width);
    return made;
}

uint8_t *names_match(struct names *names, const char *text) {
    struct symbols *symbols = names_symbols(names);
    return symbols ? symbols_match(symbols, text, true) : NULL;
}

struct text_line names_row(struct names *names, enum view view, uint64_t key, int width) {
    const struct image *image = &names->sampling->image;
    switch (view) {
    case BY_MODEL:
    case BY_NODE:
    case BY_RUN:
        return names_owner_name(image, grouping_owner(key), width);
    case BY_MODULE:
        return text_fit_path(image_module_name(image, grouping_module(view, key)), width);
    case BY_THREAD:
        if (key >= image->thread_count) return (struct text_line){"(unnamed)"};
        return text_fit(thread_name(image, (size_t)key, true).text, width);
    default:
        return site_name(names, view, key, width);
    }
}
