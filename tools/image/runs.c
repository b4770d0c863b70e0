/* runs.c — see runs.h. A running process stores its call stacks in runs: pieces of stacks (snapshot.h), not runs of the
 * program. Its number for a stack is called a place: the index of the word of the stack's innermost frame.
 * - A place gets a node if a stack ends there, or if a stack enters the place's run there from an inner run.
 * - The node has the frames from this place outwards, up to the next place that has a node.
 * - No node is made for a run without frames. Its only place refers to the node of the place outside of the run. */
#include "tools/image/runs.h"

#include <stdlib.h>

/* Markers in `nodes`. NOTHING: the place gets no node. END: the place's node is not made yet. ON_THE_ROUTE:
 * make_nodes() is about to make the place's node. */
enum { NOTHING = 0, END = UINT32_MAX, ON_THE_ROUTE = UINT32_MAX - 1 };

struct unfolding {
    const uint32_t *from;
    size_t count, ends;
    uint32_t *nodes; /* node of each place */
    struct image_place *places;
    uint32_t *route;
    struct snap_node *made;
    uint32_t *words;
    uint32_t next_node, next_word, next_place;
};

static bool is_place(const struct unfolding *self, uint32_t place) { return place && place < self->count; }

/* Returns the next place outwards for which `nodes` has a node, END or ON_THE_ROUTE. If the rest of the run has no such
 * place, returns the place outside of the run. Returns 0 if nothing is outside of the run, or if the run is damaged.
 * *frames: the number of frames from `place`, which counts, to the returned place, which does not count. */
static uint32_t runs_outwards(const struct unfolding *self, uint32_t place, uint32_t *frames) {
    for (*frames = 1; place >= SNAP_RUN_HEAD && *frames <= SNAP_RUN_MOST; place--, ++*frames) {
        if (self->from[place] & SNAP_RUN_FIRST) return self->from[place - SNAP_RUN_HEAD + SNAP_RUN_OUTER];
        if (self->nodes[place - 1]) return place - 1;
    }
    return 0;
}

/* Writes END into `nodes` for the place and for all places outwards of it that get a node. */
static void mark_ends(struct unfolding *self, uint32_t place) {
    uint32_t frames;
    for (; is_place(self, place) && !self->nodes[place]; place = runs_outwards(self, place, &frames)) {
        self->nodes[place] = END;
        self->ends++;
    }
}

static void make_node(struct unfolding *self, uint32_t place) {
    uint32_t frames, outer = runs_outwards(self, place, &frames);
    uint32_t parent = is_place(self, outer) ? self->nodes[outer] : 0;
    if (parent == END || parent == ON_THE_ROUTE) parent = 0; /* a circle */
    if ((self->from[place] & SNAP_RUN_FRAME) == SNAP_RUN_FRAME) {
        self->nodes[place] = parent;
        return;
    }
    self->made[self->next_node] = (struct snap_node){.parent = parent, .segment = self->next_word};
    self->words[self->next_word++] = frames;
    for (uint32_t i = frames; i > 0; i--) self->words[self->next_word++] = self->from[place - i + 1] & SNAP_RUN_FRAME;
    self->nodes[place] = self->next_node++;
}

/* Makes the node of a place. Before that, makes the missing nodes of the places outwards of it. */
static void make_nodes(struct unfolding *self, uint32_t place) {
    size_t length = 0;
    uint32_t frames;
    for (; is_place(self, place) && self->nodes[place] == END; place = runs_outwards(self, place, &frames)) {
        self->nodes[place] = ON_THE_ROUTE;
        self->route[length++] = place;
    }
    while (length) {
        uint32_t inner = self->route[--length];
        make_node(self, inner);
        self->places[self->next_place++] = (struct image_place){inner, self->nodes[inner]};
    }
}

static void totals_unfold(struct unfolding *self, struct image *image) {
    self->made[0] = (struct snap_node){.segment = UINT32_MAX};
    for (size_t i = 0; i < image->total_count; i++) {
        uint32_t *stack = &image->totals[i].stack;
        make_nodes(self, *stack);
        *stack = is_place(self, *stack) ? self->nodes[*stack] : 0;
    }
    free(image->words);
    free(image->nodes);
    free(image->places);
    image->places = self->places;
    image->place_count = self->next_place;
    image->words = self->words;
    image->word_count = self->next_word;
    image->nodes = self->made;
    image->node_count = self->next_node;
}

int runs_unfold(struct image *image) {
    struct unfolding self = {.from = image->words, .count = image->word_count, .next_node = 1};
    self.nodes = calloc(self.count + 1, sizeof *self.nodes);
    if (!self.nodes) return -1;
    for (size_t i = 0; i < image->total_count; i++) mark_ends(&self, image->totals[i].stack);
    self.route = malloc((self.ends + 1) * sizeof *self.route);
    self.made = malloc((self.ends + 1) * sizeof *self.made);
    self.places = malloc((self.ends + 1) * sizeof *self.places);
    self.words = malloc((self.count + self.ends + 1) * sizeof *self.words);
    bool done = self.route && self.made && self.places && self.words;
    if (done) {
        totals_unfold(&self, image);
    } else {
        free(self.made);
        free(self.places);
        free(self.words);
    }
    free(self.route);
    free(self.nodes);
    return done ? 0 : -1;
}
