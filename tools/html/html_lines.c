/* html_lines.c — see html_lines.h. */
#include "tools/html/html_lines.h"
#include "tools/base/list.h"
#include "tools/symbols/innermost.h"
#include "tools/base/json.h"
#include "tools/base/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

enum { TEXT_MOST = 1000 /* bytes; longer names are cut, and are marked as cut */ };

struct html_text {
    UT_hash_handle hh;
    uint32_t number;
    char bytes[];
};

struct line_key {
    uint32_t function, file, module, line, kind;
};

struct html_line {
    UT_hash_handle hh;
    uint32_t number;
    struct line_key key;
};

void html_lines_begin(struct html_lines *lines) { *lines = (struct html_lines){0}; }

void html_lines_end(struct html_lines *lines) {
    HASH_CLEAR(hh, lines->texts);
    HASH_CLEAR(hh, lines->table);
    for (size_t i = 0; i < lines->text_count; i++) free(lines->listed[i]);
    for (size_t i = 0; i < lines->line_count; i++) free(lines->lines[i]);
    free(lines->listed);
    free(lines->lines);
    *lines = (struct html_lines){0};
}

/* ---- numbering texts */

static struct html_text *add_text(struct html_lines *lines, const char *bytes, size_t length) {
    struct html_text *text = malloc(sizeof *text + length + 1);
    if (!text || !LIST_GROW(lines->listed, lines->text_count, lines->text_capacity)) {
        free(text);
        lines->failed = true;
        return NULL;
    }
    memcpy(text->bytes, bytes, length);
    text->bytes[length] = 0;
    text->number = (uint32_t)lines->text_count;
    lines->listed[lines->text_count++] = text;
    HASH_ADD(hh, lines->texts, bytes, length, text);
    return text;
}

static uint32_t text_number(struct html_lines *lines, const char *bytes) {
    struct html_text *text;
    char cut[TEXT_MOST + 64];
    size_t length = strlen(bytes);
    if (length > TEXT_MOST) {
        length = (size_t)snprintf(cut, sizeof cut, "%.*s\xe2\x80\xa6 (%zu bytes)", TEXT_MOST, bytes, length);
        bytes = cut;
    }
    HASH_FIND(hh, lines->texts, bytes, length, text);
    if (!text) text = add_text(lines, bytes, length);
    return text ? text->number : 0;
}

/* ---- numbering lines */

static uint32_t line_number(struct html_lines *lines, struct line_key key) {
    struct html_line *line;
    HASH_FIND(hh, lines->table, &key, sizeof key, line);
    if (line) return line->number;
    line = malloc(sizeof *line);
    if (!line || !LIST_GROW(lines->lines, lines->line_count, lines->line_capacity)) {
        free(line);
        lines->failed = true;
        return 0;
    }
    line->key = key;
    line->number = (uint32_t)lines->line_count;
    lines->lines[lines->line_count++] = line;
    HASH_ADD(hh, lines->table, key, sizeof line->key, line);
    return line->number;
}

/* Whether the module is Python's program or library: python3.11, libpython3.11.so.1.0. */
static bool is_interpreter(const char *module) {
    const char *name = text_base_name(module);
    if (strncmp(name, "lib", 3) == 0) name += 3;
    return strncmp(name, "python", 6) == 0 && (!name[6] || (name[6] >= '0' && name[6] <= '9'));
}

static uint32_t html_lines_kind_of(const struct image *image, uint32_t id, const struct named_frame *frame,
                                   const struct symbol *symbol) {
    uint32_t kind = symbol->function ? 0 : HTML_LINE_UNNAMED;
    if (frame->python) kind |= HTML_LINE_PYTHON;
    if (frame->python && innermost_is_import(image, id)) kind |= HTML_LINE_IMPORT;
    if (frame->module && is_interpreter(frame->module)) kind |= HTML_LINE_INTERPRETER;
    if (innermost_is_allocator(symbol->function)) kind |= HTML_LINE_ALLOCATOR;
    return kind;
}

/* The text for an unknown function: the file name of the module, and the offset in the module. */
static void html_lines_place(char *to, size_t size, const struct named_frame *frame) {
    if (frame->module)
        snprintf(to, size, "%.300s+0x%" PRIx64, text_base_name(frame->module), frame->offset);
    else
        snprintf(to, size, "%s+0x%" PRIx64, frame->python ? "(unknown Python function)" : "(no module)", frame->offset);
}

static uint32_t add_symbol(struct html_lines *lines, const struct image *image, uint32_t id,
                           const struct named_frame *frame, const struct symbol *symbol) {
    char unnamed[400];
    if (!symbol->function) html_lines_place(unnamed, sizeof unnamed, frame);
    struct line_key key = {.function = text_number(lines, symbol->function ? symbol->function : unnamed),
                           .file = text_number(lines, symbol->file ? symbol->file : ""),
                           .module = text_number(lines, frame->module ? frame->module : ""),
                           .line = symbol->line,
                           .kind = html_lines_kind_of(image, id, frame, symbol)};
    return line_number(lines, key);
}

size_t html_lines_frame(struct html_lines *lines, const struct image *image, struct symbols *symbols, uint32_t id,
                        uint32_t *numbers, size_t most) {
    const struct named_frame *frame = symbols_frame(symbols, id);
    size_t count = 0;
    for (uint32_t i = frame->count; i-- && count < most;)
        numbers[count++] = add_symbol(lines, image, id, frame, &frame->symbols[i]);
    return count;
}

uint32_t html_lines_module(struct html_lines *lines, const char *module) {
    struct line_key key = {.function = text_number(lines, module ? text_base_name(module) : "(call stack unknown)"),
                           .file = text_number(lines, ""),
                           .module = text_number(lines, module ? module : ""),
                           .kind = HTML_LINE_UNNAMED};
    return line_number(lines, key);
}

/* ---- writing texts and lines */

static int write_texts(const struct html_lines *lines, struct html_out *out) {
    static struct json json;
    FILE *to = html_document(out, "texts");
    if (!to) return -1;
    json_begin(&json, to, "memstow-texts");
    json_array(&json, "texts");
    json.one_line = true;
    for (size_t i = 0; i < lines->text_count; i++) json_string(&json, NULL, lines->listed[i]->bytes);
    json_end_array(&json);
    json_finish(&json);
    return fclose(to) == 0 ? 0 : -1;
}

static void write_column(const struct html_lines *lines, struct html_out *out, const char *column, size_t offset) {
    html_column_begin(out, "lines", column, "numbers", lines->line_count);
    for (size_t i = 0; i < lines->line_count; i++) {
        uint32_t value;
        memcpy(&value, (const char *)&lines->lines[i]->key + offset, sizeof value);
        html_column_put(out, value);
    }
    html_column_end(out);
}

int html_lines_write(const struct html_lines *lines, struct html_out *out) {
    write_column(lines, out, "function", offsetof(struct line_key, function));
    write_column(lines, out, "file", offsetof(struct line_key, file));
    write_column(lines, out, "module", offsetof(struct line_key, module));
    write_column(lines, out, "line", offsetof(struct line_key, line));
    write_column(lines, out, "kind", offsetof(struct line_key, kind));
    return lines->failed ? -1 : write_texts(lines, out);
}
