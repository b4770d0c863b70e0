/* python_record.c — see python_record.h. It has four tables that are read without a lock: from code object to code id,
 * from the content of a code object to code id, from text of a file name to string, and from (code id, instruction) to
 * frame id.
 *
 * Code objects come and go. A program that compiles in a loop makes the same ones again and again. So a code id
 * identifies the content of a code object (names, first line, lines of its instructions): a new code object with the
 * same content gets the same id.
 * One thread at a time writes to the tables. If another thread is writing (or, in a signal handler, the thread itself),
 * a new record is not put into the tables. The next look-up of the same frame does not find it, and makes another. */
#include "preload/stacks/python_record.h"

#include <string.h>

#include "preload/base/lock.h"
#include "preload/ledger/ledger_strings.h"
#include "preload/ledger/series.h"
#include "preload/shared/os.h"
#include "preload/stacks/python.h"
#include "preload/stacks/python_code.h"
#include "preload/ledger/budget.h"
#include "preload/stacks/generation.h"
#include "preload/base/words.h"
#include "preload/base/forked.h"

enum { TEXT_SIZE = 1024, SPINS = 200 };

static struct words codes_by_object, codes_by_content, files, frames_by_place;
static struct series *frames;
static struct series codes = {
    .type = SNAP_CODE, .record_size = sizeof(struct snap_code), .first_bits = 8, .limit = 1 << 22};
static struct lock writing;
/* Whether codes_by_object lacks some recorded code objects. If so, each code object that dies may be one of these. */
static bool unlisted;

/* Contents of code objects are compared only by a hash of 64 bits. Only 63 of these bits vary, because hash_key always
 * sets one. The chance that any two of a million code objects are mixed up is 1 in 18 million. */
static uint64_t hash_more(uint64_t hash, const void *bytes, size_t length) {
    const uint8_t *at = bytes;
    uint64_t word;
    for (; length >= sizeof word; at += sizeof word, length -= sizeof word) {
        memcpy(&word, at, sizeof word);
        hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 32;
    }
    word = length;
    memcpy((char *)&word + 1, at, length);
    hash = (hash ^ word) * 0xD6E8FEB86659FD93u;
    return hash ^ hash >> 29;
}

static uint64_t hash_key(uint64_t hash) { return hash | 2; } /* words.h reserves 0 and 1 */

/* The content of a code object that is recorded. */
struct description {
    struct lines {
        uint32_t first;
        const uint8_t *table;
        size_t length;
    } lines;
    size_t name_length, file_length;
    char name[TEXT_SIZE], file[TEXT_SIZE];
};

static struct lines lines_of(const struct python_layout *layout, uintptr_t code) {
    uintptr_t table = python_word(code, layout->code_lines);
    struct lines lines = {.first = python_half(code, layout->code_first_line)};
    if (table) lines.table = (const uint8_t *)(table + layout->bytes_start);
    if (table) lines.length = python_word(table, layout->object_size);
    return lines;
}

static void python_record_describe(const struct python_layout *layout, uintptr_t code, struct description *out) {
    out->lines = lines_of(layout, code);
    out->name_length = python_code_text(layout, python_word(code, layout->code_name), out->name, sizeof out->name);
    out->file_length = python_code_text(layout, python_word(code, layout->code_file), out->file, sizeof out->file);
}

static uint64_t python_record_hash_of(const struct description *code) {
    uint64_t hash = hash_more(code->lines.first, code->name, code->name_length);
    hash = hash_more(hash, code->file, code->file_length);
    return hash_key(hash_more(hash, code->lines.table, code->lines.length));
}

/* The file name as a string of the ledger. Many functions share a few files, so the strings are looked up. */
static uint32_t file_string(const struct description *code, bool writer) {
    uint64_t key = hash_key(hash_more(1, code->file, code->file_length));
    uint32_t string = words_find(&files, key);
    if (string != WORDS_NONE) return string;
    string = ledger_string(code->file);
    if (writer && string) words_put(&files, key, string);
    return string;
}

static uint32_t add_code(const struct description *code, bool writer) {
    uint32_t id = series_take(&codes);
    struct snap_code *record = series_at(&codes, id);
    if (!record) return WORDS_NONE;
    *record = (struct snap_code){ledger_string(code->name), file_string(code, writer), code->lines.first, 0};
    return id;
}

/* Returns the id of a code object that is not in codes_by_object. If its content has an id already, returns that id,
 * otherwise a new id. `described` takes 2 KiB of stack. This function is not inlined, so that no other look-up
 * needs these 2 KiB. */
static __attribute__((noinline)) uint32_t code_of_new(const struct python_layout *layout, uintptr_t code, bool writer) {
    struct description described;
    python_record_describe(layout, code, &described);
    uint64_t content = python_record_hash_of(&described);
    uint32_t id = words_find(&codes_by_content, content);
    if (id == WORDS_NONE) {
        id = add_code(&described, writer);
        if (writer && id != WORDS_NONE) words_put(&codes_by_content, content, id);
    }
    return id;
}

/* The code object in which a line was last looked up (`code` is the id of its content), and the position in its line
 * table. Only the writer uses this variable. */
static struct {
    uint32_t code;
    struct python_cursor cursor;
} last_line = {.code = WORDS_NONE};

static uint32_t python_record_line_of(const struct python_layout *layout, uintptr_t code, uint32_t id, uint32_t offset,
                                      bool writer) {
    struct lines lines = lines_of(layout, code);
    uint32_t unit = offset / 2;
    if (!writer) return python_code_line(lines.table, lines.length, lines.first, unit);
    if (last_line.code != id || unit < last_line.cursor.covered || last_line.cursor.at > lines.length) {
        last_line.cursor = (struct python_cursor){.line = lines.first};
        last_line.code = id;
    }
    return python_code_line_from(lines.table, lines.length, &last_line.cursor, unit);
}

static uint32_t add_frame(const struct python_layout *layout, uintptr_t code, uint32_t id, uint32_t offset,
                          bool writer) {
    uint32_t frame = budget_is_full(BUDGET_FRAMES) ? WORDS_NONE : series_take(frames);
    struct snap_frame *record = series_at(frames, frame);
    if (!record) return WORDS_NONE;
    uint32_t line = python_record_line_of(layout, code, id, offset, writer);
    *record = (struct snap_frame){.address = offset, .line = line, .code = 1 + id};
    return frame;
}

/* The offset of the instruction in bytes. If the instruction pointer is outside of the code, the offset is that of the
 * function's first instruction. The pointer may be one unit in front of the code until the first instruction runs. In
 * free-threaded interpreters, it may be in a copy of the code. */
static uint32_t offset_of(const struct python_layout *layout, uintptr_t code, uintptr_t instruction) {
    uintptr_t start = code + layout->code_start, length = python_word(code, layout->object_size) * 2;
    return instruction - start < length ? (uint32_t)(instruction - start) : 0;
}

static uint64_t place_key(uint32_t code, uint32_t offset) { return (uint64_t)(code + 1) << 32 | offset; }

static bool begin_writing(void) {
    for (int i = 0; i < SPINS; i++) {
        if (lock_try(&writing)) return true;
        __builtin_ia32_pause();
    }
    return false;
}

static uint32_t known_code(const struct python_layout *layout, uintptr_t code_key, bool writer) {
    uint32_t id = words_find(&codes_by_object, code_key);
    if (id != WORDS_NONE) return id;
    id = code_of_new(layout, python_plain(code_key), writer);
    if (!writer || id == WORDS_NONE || !words_put(&codes_by_object, code_key, id)) unlisted = true;
    return id;
}

static __attribute__((noinline)) uint32_t record_new(const struct python_layout *layout, uintptr_t code_key,
                                                     uint32_t offset) {
    bool writer = begin_writing();
    uint32_t id = known_code(layout, code_key, writer), frame = WORDS_NONE;
    if (id != WORDS_NONE) frame = words_find(&frames_by_place, place_key(id, offset));
    if (id != WORDS_NONE && frame == WORDS_NONE) {
        frame = add_frame(layout, python_plain(code_key), id, offset, writer);
        if (writer && frame != WORDS_NONE) words_put(&frames_by_place, place_key(id, offset), frame);
    }
    if (writer) lock_let_go(&writing);
    return frame;
}

uint32_t python_record(const struct python_layout *layout, uintptr_t code_key, uintptr_t instruction) {
    if (!frames) return WORDS_NONE;
    uint32_t offset = offset_of(layout, python_plain(code_key), instruction);
    uint32_t id = words_find(&codes_by_object, code_key);
    uint32_t frame = id == WORDS_NONE ? WORDS_NONE : words_find(&frames_by_place, place_key(id, offset));
    return likely(frame != WORDS_NONE) ? frame : record_new(layout, code_key, offset);
}

const struct snap_code *python_record_code(uint32_t id) { return series_at(&codes, id); }

void python_record_dies(uintptr_t code_key) {
    if (words_take_out(&codes_by_object, code_key) || __atomic_load_n(&unlisted, __ATOMIC_RELAXED))
        generation_end_stacks();
}

void python_record_begin(struct series *of_frames) { frames = of_frames; }

/* Forgets all records, and resets the lock, which another thread of the parent may have held. */
void python_record_abandon(void) {
    words_clear(&codes_by_object);
    words_clear(&codes_by_content);
    words_clear(&files);
    words_clear(&frames_by_place);
    series_reset(&codes);
    last_line.code = WORDS_NONE;
    frames = NULL;
    writing = (struct lock){0};
    unlisted = false;
}
FORKED(python_record_abandon);
