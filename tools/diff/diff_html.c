/* diff_html.c — a comparison as a page; see diff.h. docs/html-data.md has the format of its data.
 * In: rows of both files by site, on the host and on devices; blocks; traces of decisions. Out: the same groups of
 * columns as for a report, with the figures of each site before and after. */
#include "tools/base/complain.h"
#include "tools/base/list.h"
#include "tools/decisions/decisions.h"
#include "tools/diff/diff.h"
#include "tools/html/html_fit.h"
#include "tools/report/report.h"

#include <stdlib.h>
#include <string.h>

enum { DIFF_ROWS = 1000 };

/* A tag is the model, the node and the run that memory belongs to. For each of the three, the key has the number of its
 * name on the page (name_number); 0: none. */
struct tag_key {
    uint32_t model, node, run;
};
struct tag {
    UT_hash_handle hh;
    uint32_t number;
    struct tag_key key;
};

struct diff_page {
    struct diff *diff;
    struct html_lines lines;
    struct html_tree tree;
    struct html_fit packed; /* the columns of lines, stacks and sites */
    char *documents;        /* all documents but "page"; packed before the columns, which get the space that is left */
    size_t documents_size;
    struct tag *table, **tags;
    const struct row **rows; /* rows with memory in at least one of the files, those of the host first */
    size_t tag_count, tag_capacity, row_count, host_count;
    bool failed;
};

static const struct row *row_of(const struct diff_page *self, size_t index) { return self->rows[index]; }

static const struct groups *groups_of(const struct diff_page *self, size_t index) {
    return index < self->host_count ? &self->diff->groups : &self->diff->cuda;
}

/* ---- owners: the names of models, nodes and runs in rows of the host and of devices. On the page, the names for
 * devices are numbered after those for the host. */

static uint32_t name_number(const struct diff_page *self, size_t index, uint32_t name) {
    if (!name || index < self->host_count) return name;
    return name + self->diff->groups.name_count;
}

static uint32_t tag_of(struct diff_page *self, size_t index) {
    const struct row *row = row_of(self, index);
    struct tag_key key = {name_number(self, index, row->model), name_number(self, index, row->node),
                          name_number(self, index, row->run)};
    struct tag *tag;
    HASH_FIND(hh, self->table, &key, sizeof key, tag);
    if (tag) return tag->number;
    tag = calloc(1, sizeof *tag);
    if (!tag || !LIST_GROW(self->tags, self->tag_count, self->tag_capacity)) {
        free(tag);
        self->failed = true;
        return 0;
    }
    tag->key = key;
    tag->number = (uint32_t)self->tag_count;
    self->tags[self->tag_count++] = tag;
    HASH_ADD(hh, self->table, key, sizeof tag->key, tag);
    return tag->number;
}

static void json_name(struct json *json, const struct groups *groups, uint32_t name, uint32_t number) {
    char text[2048], words[4096];
    if (!groups_owner_words(groups, name, false, text, sizeof text)) return;
    groups_owner_words(groups, name, true, words, sizeof words);
    json_object(json, NULL);
    json_number(json, "id", number);
    json_string(json, "name", text);
    json_string(json, "words", words);
    json_end_object(json);
}

static int write_names(const struct diff_page *self, struct html_out *out) {
    static struct json json;
    const struct groups *host = &self->diff->groups, *cuda = &self->diff->cuda;
    FILE *to = html_document(out, "names");
    if (!to) return -1;
    json_begin(&json, to, "memstow-names");
    json_array(&json, "names");
    for (uint32_t i = 1; i < host->name_count; i++) json_name(&json, host, i, i);
    for (uint32_t i = 1; i < cuda->name_count; i++) json_name(&json, cuda, i, i + host->name_count);
    json_end_array(&json);
    json_finish(&json);
    return fclose(to) == 0 ? 0 : -1;
}

static void write_tag_column(const struct diff_page *self, struct html_out *out, const char *column, size_t offset) {
    html_column_begin(out, "tags", column, "numbers", self->tag_count);
    for (size_t i = 0; i < self->tag_count; i++) {
        uint32_t name;
        memcpy(&name, (const char *)&self->tags[i]->key + offset, sizeof name);
        html_column_put(out, name);
    }
    html_column_end(out);
}

/* ---- leaves of the page's tree (html_tree.h): one for each row */

static void add_rows(struct diff_page *self, const struct groups *groups) {
    for (size_t i = 0; i < groups->count; i++) {
        const struct row_side *side = groups->rows[i].side;
        if (side[0].live_bytes | side[0].live_blocks | side[1].live_bytes | side[1].live_blocks)
            self->rows[self->row_count++] = &groups->rows[i];
    }
}

static int find_rows(struct diff_page *self) {
    self->rows = calloc(self->diff->groups.count + self->diff->cuda.count + 1, sizeof *self->rows);
    if (!self->rows) return -1;
    add_rows(self, &self->diff->groups);
    self->host_count = self->row_count;
    add_rows(self, &self->diff->cuda);
    return 0;
}

static double diff_html_size_of(const struct row *row) {
    double a = (double)(int64_t)row->side[0].live_bytes, b = (double)(int64_t)row->side[1].live_bytes;
    return a > b ? a : b;
}

static unsigned bits_of(uint64_t number) { return number ? 64 - (unsigned)__builtin_clzll(number) : 0; }

static unsigned cost_of(const struct row *row) {
    unsigned cost = 12;
    for (int side = 0; side < 2; side++)
        cost += bits_of(row->side[side].live_bytes & INT64_MAX) + bits_of(row->side[side].live_blocks & INT64_MAX) / 2;
    return cost;
}

/* Sets the weights of leaves, which decide what the page shows singly. The weight is a leaf's share of all change, or
 * an eighth of its share of all memory, whichever is larger. */
static void diff_html_weigh(const struct diff_page *self, struct html_leaf *leaves, size_t first, size_t end) {
    double grown = 1, held = 1;
    for (size_t i = first; i < end; i++) {
        grown += (double)groups_row_change(row_of(self, i));
        held += diff_html_size_of(row_of(self, i));
    }
    for (size_t i = first; i < end; i++) {
        double change = (double)groups_row_change(row_of(self, i)) / grown,
               part = diff_html_size_of(row_of(self, i)) / held / 8;
        leaves[i].weight = (float)(change > part ? change : part > 0 ? part : 0);
    }
}

static uint32_t diff_html_line_of(struct diff_page *self, size_t index) {
    const char *member = groups_member(groups_of(self, index), row_of(self, index));
    return html_lines_module(&self->lines, *member ? member : NULL);
}

static struct html_leaf *make_leaves(struct diff_page *self) {
    struct html_leaf *leaves = calloc(self->row_count + 1, sizeof *leaves);
    for (size_t i = 0; leaves && i < self->row_count; i++) {
        const struct row *row = row_of(self, i);
        leaves[i] = (struct html_leaf){.stack = row->stack ? row->stack_node : 0,
                                       .line = row->stack ? 0 : diff_html_line_of(self, i),
                                       .tag = 2 * tag_of(self, i) + (i >= self->host_count),
                                       .cost = cost_of(row) & UINT16_MAX,
                                       .side = row->stack_side & 1};
    }
    if (leaves) diff_html_weigh(self, leaves, 0, self->host_count);
    if (leaves) diff_html_weigh(self, leaves, self->host_count, self->row_count);
    return leaves;
}

/* Finds for each side the image that has its call stacks. An image stays NULL if no row has a stack in it, or if its
 * file cannot be read again. */
static void find_images(const struct diff_page *self, const struct image *images[2]) {
    bool sought[2] = {false, false};
    for (size_t i = 0; i < self->row_count; i++) {
        const struct row *row = row_of(self, i);
        if (!row->stack || sought[row->stack_side]) continue;
        sought[row->stack_side] = true;
        images[row->stack_side] = diff_stacks(self->diff, row);
    }
}

static void diff_html_end(struct diff_page *self) {
    html_fit_end(&self->packed);
    html_tree_end(&self->tree);
    html_lines_end(&self->lines);
    HASH_CLEAR(hh, self->table);
    for (size_t i = 0; i < self->tag_count; i++) free(self->tags[i]);
    free(self->tags);
    free(self->rows);
    free(self->documents);
}

/* ---- columns of figures */

static int64_t figure_of(const struct diff_page *self, size_t entry, int side, bool blocks) {
    size_t count;
    const uint32_t *leaves = html_tree_entry(&self->tree, entry, &count);
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        const struct row_side *one = &row_of(self, leaves[i])->side[side];
        sum += blocks ? one->live_blocks : one->live_bytes;
    }
    return (int64_t)sum;
}

static void write_figures(const struct diff_page *self, struct html_out *out, int side, bool blocks) {
    static const char *const columns[2][2] = {{"before_bytes", "before_blocks"}, {"after_bytes", "after_blocks"}};
    const char *form = !side ? "signed" : blocks ? "over before_blocks" : "over before_bytes";
    html_column_begin(out, "sites", columns[side][blocks], form, self->tree.entry_count);
    for (size_t i = 0; i < self->tree.entry_count; i++)
        html_column_put_signed(out, figure_of(self, i, side, blocks) - (side ? figure_of(self, i, 0, blocks) : 0));
    html_column_end(out);
}

enum leaf_fact { FACT_TAG, FACT_DEVICE, FACT_FOLDED };

static void write_leaf_facts(const struct diff_page *self, struct html_out *out, enum leaf_fact what,
                             const char *column) {
    html_column_begin(out, "sites", column, "numbers", self->tree.entry_count);
    for (size_t i = 0, count; i < self->tree.entry_count; i++) {
        const struct html_leaf *leaf = &self->tree.leaves[html_tree_entry(&self->tree, i, &count)[0]];
        html_column_put(out, what == FACT_TAG      ? leaf->tag / 2
                             : what == FACT_DEVICE ? leaf->tag % 2
                                                   : leaf->folded * count);
    }
    html_column_end(out);
}

static void write_columns(const struct diff_page *self, struct html_out *out) {
    bool owned = self->tag_count > 1 ||
                 (self->tag_count && self->tags[0]->key.model + self->tags[0]->key.node + self->tags[0]->key.run);
    for (int side = 0; side < 2; side++)
        for (int blocks = 0; blocks < 2; blocks++) write_figures(self, out, side, blocks);
    if (owned) {
        write_leaf_facts(self, out, FACT_TAG, "tag");
        write_tag_column(self, out, "model", offsetof(struct tag_key, model));
        write_tag_column(self, out, "node", offsetof(struct tag_key, node));
        write_tag_column(self, out, "run", offsetof(struct tag_key, run));
    }
    if (self->row_count > self->host_count) write_leaf_facts(self, out, FACT_DEVICE, "device");
    if (self->tree.folded) write_leaf_facts(self, out, FACT_FOLDED, "folded");
}

static int write_packed(struct html_out *out, void *context) {
    const struct diff_page *self = context;
    if (html_lines_write(&self->lines, out) < 0 || html_tree_write(&self->tree, out) < 0) return -1;
    write_columns(self, out);
    return 0;
}

/* ---- the documents of the page */

static int write_about(const struct diff_page *self, struct html_out *out) {
    static struct json json;
    FILE *to = html_document(out, "page");
    if (!to) return -1;
    json_begin(&json, to, "memstow-page");
    json_string(&json, "command", "diff");
    json_string(&json, "memstow", MEMSTOW_VERSION_TEXT);
    json_string(&json, "measure", "change");
    json_bool(&json, "same_process", !self->diff->apart);
    json_bool(&json, "b_is_later", diff_blocks_later(&self->diff->blocks));
    json_null(&json, "match");
    json_number(&json, "sites_folded", self->tree.folded);
    json_number(&json, "blocks_omitted", self->diff->blocks.count - self->diff->blocks.shown);
    json_finish(&json);
    return fclose(to) == 0 ? 0 : -1;
}

static int write_diff(struct diff *diff, struct html_out *out) {
    FILE *to = html_document(out, "diff");
    if (!to) return -1;
    if (diff->top > DIFF_ROWS) diff->top = DIFF_ROWS;
    diff_json_to(diff, to);
    return fclose(to) == 0 ? 0 : -1;
}

/* Writes the curves of both sides. The totals were made first; then the files were read again, for the curves or for
 * call stacks. So the curve of a running process may end later than its totals. */
static int write_curves(struct diff *diff, struct html_out *out) {
    static struct json json;
    int result = 0;
    FILE *to = html_document(out, "curves");
    if (!to) return -1;
    json_begin(&json, to, "memstow-curves");
    for (int side = 0; side < 2; side++) {
        const struct image *image = diff_image(diff, side);
        json_object(&json, side ? "b" : "a");
        if (image && report_json_history(&json, image) < 0) result = -1;
        json_end_object(&json);
    }
    json_finish(&json);
    return fclose(to) == 0 ? result : -1;
}

/* Writes the trace of a side. If both traces are of one process, writes only what the other trace does not have.
 * Nothing is written for a trace without triggers. */
static int write_trace(struct diff *diff, const struct decisions traces[2], int side, struct html_out *out) {
    const struct decisions *trace = &traces[side];
    if (!trace->trigger_count) return 0;
    FILE *to = html_document(out, side ? "decisions_b" : "decisions_a");
    uint64_t after = diff->apart ? 0 : decisions_last_line(&traces[!side]);
    int result = to ? decisions_json_after(trace, diff_image(diff, side), after, to) : -1;
    if (to && fclose(to) != 0) result = -1;
    return result;
}

/* Writes both traces. The files were read again, so a trace may be newer than the totals (see write_curves). */
static int write_traces(struct diff *diff, struct html_out *out) {
    struct decisions traces[2] = {{0}, {0}};
    int result = 0;
    for (int side = 0; side < 2 && result == 0; side++)
        if (diff_image(diff, side)) result = decisions_load(&traces[side], diff_image(diff, side));
    for (int side = 0; side < 2 && result == 0; side++) result = write_trace(diff, traces, side, out);
    for (int side = 0; side < 2; side++) decisions_clear(&traces[side]);
    return result;
}

static int write_documents(struct html_out *out, void *context) {
    const struct diff_page *self = context;
    if (write_diff(self->diff, out) < 0 || write_names(self, out) < 0 || write_curves(self->diff, out) < 0) return -1;
    return write_traces(self->diff, out) < 0 || diff_blocks_write_sums(&self->diff->blocks, out) < 0 ? -1 : 0;
}

/* Returns an array with a number for each row of `groups`: 1 + the number of this row on the page, or 0 if the row is
 * not on the page. Returns NULL if there is no memory. entries[leaf]: the number of the leaf's row on the page. The
 * leaves of `groups` begin at `first` and end before `end`. */
static uint32_t *entries_of_rows(const struct diff_page *self, const struct groups *groups, const uint32_t *entries,
                                 size_t first, size_t end) {
    uint32_t *of_rows = calloc(groups->count + 1, sizeof *of_rows);
    for (size_t leaf = first; of_rows && leaf < end; leaf++)
        of_rows[self->rows[leaf] - groups->rows] = entries[leaf] + 1;
    return of_rows;
}

/* Writes the blocks, each with the row of its site on the page. */
static int write_blocks(const struct diff_page *self, struct html_out *out) {
    uint32_t *entries = html_tree_entries_of_leaves(&self->tree);
    if (!entries) return -1;
    uint32_t *host = entries_of_rows(self, &self->diff->groups, entries, 0, self->host_count);
    uint32_t *devices = entries_of_rows(self, &self->diff->cuda, entries, self->host_count, self->row_count);
    bool done = host && devices;
    if (done) diff_blocks_write(&self->diff->blocks, out, host, devices);
    free(entries);
    free(host);
    free(devices);
    return done ? 0 : -1;
}

static int write_data(struct html_out *out, void *context) {
    struct diff_page *self = context;
    if (write_about(self, out) < 0) return -1;
    html_out_text(out, self->documents, self->documents_size);
    html_out_text(out, self->packed.text, self->packed.size);
    return write_blocks(self, out);
}

static int diff_html_begin(struct diff_page *self, struct diff *diff) {
    const struct image *images[2] = {NULL, NULL};
    *self = (struct diff_page){.diff = diff};
    diff_blocks_match(&diff->blocks, !diff->apart);
    if (find_rows(self) < 0) return -1;
    html_lines_begin(&self->lines);
    html_lines_module(&self->lines, NULL); /* the line for a stack that cannot be read */
    find_images(self, images);
    struct html_leaf *leaves = make_leaves(self);
    if (html_tree_begin(&self->tree, &self->lines, images, diff->symbols, leaves, self->row_count) < 0 || self->failed)
        return -1;
    if (html_page_pack(&self->documents, &self->documents_size, write_documents, self) < 0) return -1;
    size_t others = html_page_parts() + HTML_ABOUT_MOST + self->documents_size;
    size_t limit = others < HTML_PAGE_MOST ? HTML_PAGE_MOST - others : 0;
    if (diff_blocks_fit(&diff->blocks, &limit) < 0) return -1;
    return html_fit_begin(&self->packed, &self->tree, diff->form_top, limit, write_packed, self);
}

int diff_html(struct diff *diff) {
    struct diff_page self;
    int code = EXIT_UNREADABLE;
    if (diff_html_begin(&self, diff) == 0)
        code = html_page_write(diff->page, write_data, &self);
    else
        complain("not enough memory");
    diff_html_end(&self);
    return code;
}
