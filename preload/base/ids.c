/* ids.c — see ids.h. Each bit of the summary belongs to one 64-bit word of the set. If the bit is set, the word may
 * have ids, but may also be empty. If the bit is not set, the word is empty, unless a thread is just changing the
 * word. */
#include "preload/base/ids.h"

#include <string.h>

#include "preload/base/arena.h"
#include "preload/shared/os.h"

struct ids *ids_new(void) {
    return arena_take(sizeof(struct ids));
}

struct ids *ids_known(struct ids **set) {
    return __atomic_load_n(set, __ATOMIC_ACQUIRE);
}

/* If two threads make the set at once, one of the two sets is abandoned. The abandoned set costs no memory, because
 * none of its pages was touched. */
struct ids *ids_made(struct ids **set) {
    struct ids *known = ids_known(set), *made = known ? NULL : ids_new();
    if (made && __atomic_compare_exchange_n(set, &known, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return made;
    return known;
}

static uint64_t ids_bit(uint32_t n) { return (uint64_t)1 << n % 64; }

static void note_lowest(struct ids *self, uint32_t word) {
    uint32_t lowest = __atomic_load_n(&self->lowest, __ATOMIC_RELAXED);
    while (word < lowest &&
           !__atomic_compare_exchange_n(&self->lowest, &lowest, word, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

bool ids_add(struct ids *self, uint32_t id) {
    uint32_t word = id / 64;
    if (__atomic_fetch_or(&self->words[word], ids_bit(id), __ATOMIC_SEQ_CST) & ids_bit(id)) return false;
    __atomic_fetch_or(&self->summary[word / 64], ids_bit(word), __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&self->count, 1, __ATOMIC_RELAXED);
    note_lowest(self, word);
    return true;
}

bool ids_mark(struct ids *self, uint32_t id) {
    uint32_t word = id / 64;
    if (self->words[word] & ids_bit(id)) return false;
    self->words[word] |= ids_bit(id);
    self->summary[word / 64] |= ids_bit(word);
    return true;
}

/* Clears the summary's bit of an empty word. Another thread may add an id to the word meanwhile: it writes the id to
 * the word first, and sets the summary's bit then. If it sets that bit before this thread clears it, this thread finds
 * the id in the word, and sets the bit again. */
static void clear_summary(struct ids *self, uint32_t word) {
    __atomic_fetch_and(&self->summary[word / 64], ~ids_bit(word), __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&self->words[word], __ATOMIC_SEQ_CST))
        __atomic_fetch_or(&self->summary[word / 64], ids_bit(word), __ATOMIC_SEQ_CST);
}

bool ids_remove(struct ids *self, uint32_t id) {
    uint32_t word = id / 64;
    uint64_t before = __atomic_fetch_and(&self->words[word], ~ids_bit(id), __ATOMIC_SEQ_CST);
    if (!(before & ids_bit(id))) return false;
    if (before == ids_bit(id)) clear_summary(self, word);
    __atomic_fetch_sub(&self->count, 1, __ATOMIC_RELAXED);
    return true;
}

bool ids_has(const struct ids *self, uint32_t id) {
    return __atomic_load_n(&self->words[id / 64], __ATOMIC_ACQUIRE) & ids_bit(id);
}

/* The index of the first bit that is set, from `from` on, or IDS_NONE. */
static uint32_t first_bit(const uint64_t *words, uint32_t from, uint32_t limit) {
    if (from >= limit) return IDS_NONE;
    uint32_t i = from / 64;
    uint64_t word = __atomic_load_n(&words[i], __ATOMIC_ACQUIRE) & (~(uint64_t)0 << from % 64);
    while (!word) {
        if (++i >= limit / 64) return IDS_NONE;
        word = __atomic_load_n(&words[i], __ATOMIC_ACQUIRE);
    }
    return i * 64 + (uint32_t)__builtin_ctzll(word);
}

uint32_t ids_next(const struct ids *self, uint32_t from) {
    for (uint32_t word = from / 64;; word++, from = word * 64) {
        word = first_bit(self->summary, word, IDS_LIMIT / 64);
        if (word == IDS_NONE) return IDS_NONE;
        if (from < word * 64) from = word * 64;
        uint64_t bits = __atomic_load_n(&self->words[word], __ATOMIC_ACQUIRE) & (~(uint64_t)0 << from % 64);
        if (bits) return word * 64 + (uint32_t)__builtin_ctzll(bits);
    }
}

/* To save time, the search begins at the word `lowest`. If it finds no id from there on, it begins again at `from`. */
uint32_t ids_take(struct ids *self, uint32_t from) {
    if (!ids_count(self)) return IDS_NONE;
    uint32_t lowest = __atomic_load_n(&self->lowest, __ATOMIC_RELAXED);
    uint32_t id = ids_next(self, lowest > from / 64 ? lowest * 64 : from);
    if (id == IDS_NONE) id = ids_next(self, from);
    while (id != IDS_NONE && !ids_remove(self, id)) id = ids_next(self, from);
    if (id != IDS_NONE && lowest < id / 64 && from / 64 <= lowest)
        __atomic_compare_exchange_n(&self->lowest, &lowest, id / 64, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return id;
}

uint64_t ids_count(const struct ids *self) { return __atomic_load_n(&self->count, __ATOMIC_RELAXED); }

void ids_add_word(struct ids *self, uint32_t word, uint64_t bits) {
    __atomic_fetch_or(&self->words[word], bits, __ATOMIC_SEQ_CST);
    __atomic_fetch_or(&self->summary[word / 64], ids_bit(word), __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&self->count, (uint64_t)__builtin_popcountll(bits), __ATOMIC_RELAXED);
    note_lowest(self, word);
}

void ids_unmark_word(struct ids *self, uint32_t word, uint64_t bits) { self->words[word] &= ~bits; }

void ids_clear(struct ids *self) {
    for (uint32_t word = first_bit(self->summary, 0, IDS_LIMIT / 64); word != IDS_NONE;
         word = first_bit(self->summary, word, IDS_LIMIT / 64)) {
        memset(&self->words[word / 64 * 64], 0, 64 * sizeof *self->words);
        self->summary[word / 64] = 0;
    }
    self->count = 0;
    self->lowest = 0;
}
