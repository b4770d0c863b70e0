/* words.c — see words.h. The table uses open addressing. When a word is taken out, its slot becomes GONE, and searches
 * for other words go on past that slot. */
#include "preload/base/words.h"

#include <string.h>

#include "preload/base/arena.h"
#include "preload/shared/os.h"

enum { EMPTY = 0, GONE = 1, FIRST_BITS = 10 };

struct words_table {
    uint32_t bits;
    uint32_t used;     /* slots that are not EMPTY; only the writer uses it */
    uint32_t *numbers; /* by slot: the number of the word there */
    uint64_t words[];  /* by slot, 1 << bits of them: a word, EMPTY or GONE */
};

static uint32_t words_size_of(const struct words_table *table) { return 1u << table->bits; }

static uint32_t first_slot(const struct words_table *table, uint64_t word) {
    return (uint32_t)((word ^ word >> 32) * 0x9E3779B97F4A7C15u >> (64 - table->bits));
}

static uint64_t words_word_at(const struct words_table *table, uint32_t slot) {
    return __atomic_load_n(&table->words[slot], __ATOMIC_ACQUIRE);
}

static uint32_t slot_of(const struct words_table *table, uint64_t word) {
    uint32_t mask = words_size_of(table) - 1, slot = first_slot(table, word);
    for (;; slot = (slot + 1) & mask) {
        uint64_t seen = words_word_at(table, slot);
        if (likely(seen == word)) return slot;
        if (seen == EMPTY) return WORDS_NONE;
    }
}

/* After the slot was found, another word may have taken it. Then the number belongs to that word. So the word is read
 * once more, after the number. */
uint32_t words_find(const struct words *self, uint64_t word) {
    const struct words_table *table = __atomic_load_n(&self->table, __ATOMIC_ACQUIRE);
    uint32_t slot = table ? slot_of(table, word) : WORDS_NONE;
    if (slot == WORDS_NONE) return WORDS_NONE;
    uint32_t number = __atomic_load_n(&table->numbers[slot], __ATOMIC_ACQUIRE);
    return likely(words_word_at(table, slot) == word) ? number : WORDS_NONE;
}

/* The number is written before the word, so a reader that finds the word finds its number. Another reader may still
 * look for the word that was in this slot before. If it sees the new number, it also sees that its own word is gone. */
static void words_insert(struct words_table *table, uint64_t word, uint32_t number) {
    uint32_t mask = words_size_of(table) - 1, slot = first_slot(table, word);
    while (words_word_at(table, slot) > GONE) slot = (slot + 1) & mask;
    table->used += words_word_at(table, slot) == EMPTY;
    __atomic_store_n(&table->numbers[slot], number, __ATOMIC_RELEASE);
    __atomic_store_n(&table->words[slot], word, __ATOMIC_RELEASE);
}

/* Makes a slot that is GONE empty if the next slot is empty: a search that passes the first slot ends at the next one
 * anyway. Returns how many words are left. */
static uint32_t words_sweep(struct words_table *table) {
    uint32_t mask = words_size_of(table) - 1, live = 0;
    for (uint32_t slot = 0; slot <= mask; slot++) live += words_word_at(table, slot) > GONE;
    for (uint32_t slot = 2 * mask + 1; slot-- > 0;) /* twice over the table: searches wrap from its end to its start */
        if (words_word_at(table, slot & mask) == GONE && words_word_at(table, (slot + 1) & mask) == EMPTY) {
            __atomic_store_n(&table->words[slot & mask], EMPTY, __ATOMIC_RELEASE);
            table->used--;
        }
    return live;
}

static struct words_table *new_table(uint32_t bits) {
    size_t size = (size_t)1 << bits;
    struct words_table *table = arena_take(sizeof *table + size * (sizeof(uint64_t) + sizeof(uint32_t)));
    if (!table) return NULL;
    table->bits = bits;
    table->numbers = (uint32_t *)(table->words + size);
    return table;
}

static bool take_out(struct words_table *table, uint64_t word) {
    uint32_t slot = slot_of(table, word);
    return slot != WORDS_NONE &&
           __atomic_compare_exchange_n(&table->words[slot], &word, GONE, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

/* Replaces the table. A word may be taken out of the old table during the copy, and must then not stay in the new one.
 * So after the new table is published, each of its words that the old table lacks is taken out. Threads that take words
 * out later find the new table. False: there is no memory. */
static bool words_grow(struct words *self, uint32_t bits) {
    struct words_table *old = self->table, *table = new_table(bits);
    if (!table) return false;
    for (uint32_t slot = 0; old && slot < words_size_of(old); slot++) {
        uint64_t word = words_word_at(old, slot);
        if (word > GONE) words_insert(table, word, old->numbers[slot]);
    }
    __atomic_store_n(&self->table, table, __ATOMIC_SEQ_CST);
    for (uint32_t slot = 0; old && slot < words_size_of(table); slot++) {
        uint64_t word = words_word_at(table, slot);
        if (word > GONE && slot_of(old, word) == WORDS_NONE) take_out(table, word);
    }
    return true;
}

static bool is_full(const struct words_table *table) { return table->used >= words_size_of(table) / 4 * 3; }

bool words_put(struct words *self, uint64_t word, uint32_t number) {
    struct words_table *table = self->table;
    if (!table && !words_grow(self, FIRST_BITS)) return false;
    if (table && is_full(table)) {
        bool crowded = words_sweep(table) >= words_size_of(table) / 2;
        if ((crowded || is_full(table)) && (table->bits == 30 || !words_grow(self, table->bits + 1))) return false;
    }
    words_insert(self->table, word, number);
    return true;
}

bool words_take_out(struct words *self, uint64_t word) {
    bool was_there = false;
    struct words_table *seen = NULL, *now = __atomic_load_n(&self->table, __ATOMIC_SEQ_CST);
    while (now != seen) {
        was_there |= take_out(now, word);
        seen = now;
        now = __atomic_load_n(&self->table, __ATOMIC_SEQ_CST);
    }
    return was_there;
}

void words_clear(struct words *self) {
    struct words_table *table = self->table;
    if (!table) return;
    memset(table->words, 0, words_size_of(table) * sizeof *table->words);
    table->used = 0;
}
