/* ledger_strings.c — see ledger_strings.h. */
#include "preload/ledger/ledger_strings.h"

#include <string.h>

#include "preload/base/lock.h"
#include "preload/ledger/ledger_inside.h"
#include "preload/ledger/series.h"

enum { STRING_SECTION = 16 * 1024, STRING_SECTIONS_KNOWN = 1024 };
static struct {
    struct snap_section *section; /* the newest section of strings; NULL: none yet */
    char *bytes;                  /* the bytes of that section */
    uint64_t capacity;            /* how many bytes it can hold */
    uint32_t known_count;
    struct snap_section *known[STRING_SECTIONS_KNOWN]; /* the sections that ledger_text searches, in file order */
} strings;

uint32_t ledger_string(const char *text) {
    size_t length = strlen(text) + 1;
    if (length == 1 || length > STRING_SECTION || !lock_wait(&ledger_growing)) return 0;
    struct snap_section *section = strings.section;
    if (!section || section->count + length > strings.capacity) {
        uint64_t first = section ? section->first + section->count : 0;
        section = ledger_carve(SNAP_STRINGS, 1, STRING_SECTION, first);
        if (section) {
            strings.section = section;
            strings.bytes = (char *)(section + 1);
            strings.capacity = STRING_SECTION;
            section->count = first ? 0 : 1; /* offset 0 is "" */
            if (strings.known_count < STRING_SECTIONS_KNOWN) {
                strings.known[strings.known_count] = section;
                __atomic_store_n(&strings.known_count, strings.known_count + 1, __ATOMIC_RELEASE);
            }
        }
    }
    uint32_t at = 0;
    if (section) {
        at = (uint32_t)(section->first + section->count);
        memcpy(strings.bytes + section->count, text, length);
        __atomic_store_n(&section->count, section->count + length, __ATOMIC_RELEASE);
    }
    lock_let_go(&ledger_growing);
    return at;
}

const char *ledger_text(uint32_t at) {
    for (uint32_t i = 0, count = __atomic_load_n(&strings.known_count, __ATOMIC_ACQUIRE); at && i < count; i++) {
        const struct snap_section *section = strings.known[i];
        uint64_t used = __atomic_load_n(&section->count, __ATOMIC_ACQUIRE);
        if (at >= section->first && at - section->first < used)
            return (const char *)(section + 1) + (at - section->first);
    }
    return "";
}

static struct series facts = {
    .type = SNAP_PROCESS, .record_size = sizeof(struct snap_fact), .first_bits = 5, .limit = 1024};

void ledger_fact(enum snap_fact_key key, const char *text) {
    struct snap_fact *fact = series_at(&facts, series_take(&facts));
    if (fact) *fact = (struct snap_fact){key, ledger_string(text)};
}

void ledger_strings_abandon(void) {
    memset(&strings, 0, sizeof strings);
    series_reset(&facts);
}
