/* deep FILE SITES SEED: writes a ledger file with this many sites. Each site has a call stack of some ninety frames,
 * as in a program with a large interpreter. Many stacks have the same outer frames, and branch further inside. The
 * branches use the same pieces of 5 to 15 frames again and again. */
#include <stdio.h>
#include <stdlib.h>

#include "../unit/builder.h"

enum { FRAMES = 100000, SEGMENTS = 200000, LEVELS = 9 };

static uint64_t state;

static uint32_t any(uint32_t below) {
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)((state >> 33) % below);
}

static void add_modules(struct builder *builder) {
    static const char strings[] = "\0/opt/deep/program";
    struct snap_module module = {.start = 0x10000, .end = 0x10000000, .path = 1};
    builder_section(builder, SNAP_STRINGS, 1, strings, sizeof strings, 0);
    builder_section(builder, SNAP_MODULE, sizeof module, &module, 1, 0);
}

static void add_frames(struct builder *builder) {
    struct snap_frame *frames = calloc(FRAMES, sizeof *frames);
    assert(frames);
    for (uint32_t i = 0; i < FRAMES; i++) frames[i] = (struct snap_frame){.address = 0x10000 + 16 * i, .module = 1};
    builder_section(builder, SNAP_FRAME, sizeof *frames, frames, FRAMES, 0);
    free(frames);
}

/* Adds SEGMENTS pieces of 5 to 15 frames. starts[i] becomes the place where piece `i` begins. */
static void add_segments(struct builder *builder, uint32_t *starts) {
    uint32_t *words = malloc(SEGMENTS * 16 * sizeof *words), used = 0;
    assert(words);
    for (uint32_t i = 0; i < SEGMENTS; i++) {
        uint32_t length = 5 + any(11);
        starts[i] = used;
        words[used++] = length;
        while (length--) words[used++] = any(FRAMES);
    }
    builder_section(builder, SNAP_SEGMENT, sizeof *words, words, used, 0);
    free(words);
}

/* Adds the nodes level by level, from the outside. Each level has more nodes than the level before it. The last nodes
 * are the sites. Returns the number of nodes. */
static uint32_t add_nodes(struct builder *builder, const uint32_t *starts, uint32_t sites) {
    static const double shares[LEVELS] = {0.00001, 0.0001, 0.001, 0.01, 0.03, 0.08, 0.15, 0.3, 0.73};
    struct snap_node *nodes = calloc(2 * (size_t)sites + LEVELS + 1, sizeof *nodes);
    assert(nodes);
    uint32_t outside = 0, outside_count = 1, used = 1;
    for (int level = 0; level < LEVELS; level++) {
        uint32_t first = used, count = (uint32_t)(shares[level] * sites) + 1;
        for (uint32_t i = 0; i < count; i++)
            nodes[used++] =
                (struct snap_node){.parent = outside + any(outside_count), .segment = starts[any(SEGMENTS)]};
        outside = first;
        outside_count = count;
    }
    builder_section(builder, SNAP_NODE, sizeof *nodes, nodes, used, 0);
    free(nodes);
    return used;
}

static void add_sites(struct builder *builder, uint32_t sites, uint32_t nodes) {
    struct snap_site *table = calloc(sites + SNAP_SITE_FIRST, sizeof *table);
    assert(table);
    for (uint32_t i = 0; i < sites; i++) table[SNAP_SITE_FIRST + i] = snap_site(0, nodes - sites + i, 1);
    builder_section(builder, SNAP_SITE, sizeof *table, table, sites + SNAP_SITE_FIRST, 0);
    free(table);
}

/* Every fourth site has wide counters. */
static void add_counters(struct builder *builder, uint32_t sites) {
    enum { ADDRESS = 1 << 30 };
    uint32_t count = (sites + SNAP_SITE_FIRST) / SNAP_CHUNK_SITES + 1;
    struct snap_chunk *chunks = calloc(count, sizeof *chunks);
    struct snap_counter *wide = calloc(sites + 1, sizeof *wide);
    assert(chunks && wide);
    wide[0].alloc_bytes = ADDRESS;
    for (uint32_t i = 0; i < count; i++) {
        chunks[i].thread = SNAP_THREAD_FIRST + 1;
        chunks[i].index = i;
    }
    for (uint32_t i = 0; i < sites; i++) {
        uint32_t site = SNAP_SITE_FIRST + i, bytes = 16 + any(5000);
        uint64_t *word = &chunks[site / SNAP_CHUNK_SITES].words[site % SNAP_CHUNK_SITES];
        *word = snap_narrow(bytes, 2, 1);
        if (i % 4) continue;
        wide[1 + i] = snap_narrow_counter(*word);
        *word = SNAP_WIDE_BIT | (ADDRESS + (1 + i) * sizeof *wide);
    }
    builder_section(builder, SNAP_COUNTERS, sizeof *chunks, chunks, count, 0);
    builder_section(builder, SNAP_WIDE, sizeof *wide, wide, sites + 1, 0);
    free(wide);
    free(chunks);
}

int main(int count, char **arguments) {
    static uint32_t starts[SEGMENTS];
    struct builder builder;
    if (count != 4) return 2;
    uint32_t sites = (uint32_t)atol(arguments[2]);
    builder_begin(&builder, SNAP_LEDGER);
    state = 1; /* the same stacks for each seed: the seed is for the counters */
    add_modules(&builder);
    add_frames(&builder);
    add_segments(&builder, starts);
    uint32_t nodes = add_nodes(&builder, starts, sites);
    add_sites(&builder, sites, nodes);
    state = (uint64_t)atol(arguments[3]);
    add_counters(&builder, sites);
    FILE *file = fopen(arguments[1], "wb");
    if (!file || fwrite(builder.bytes, 1, builder.size, file) != builder.size || fclose(file) != 0) return 1;
    builder_end(&builder);
    return 0;
}
