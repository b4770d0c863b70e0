/* decisions.c — turns lines of the trace into events and triggers; see decisions.h. */
#include "tools/decisions/decisions.h"

#include <stdlib.h>
#include <string.h>

static const char *const kinds[] = {[EVENT_SET] = "SET",
                                    [EVENT_READ] = "READ",
                                    [EVENT_TRIGGER] = "TRIGGER",
                                    [EVENT_DECISION] = "DECISION",
                                    [EVENT_CATEGORY] = "CATEGORY",
                                    [EVENT_ACT] = "ACT",
                                    [EVENT_REMAINING] = "REMAINING",
                                    [EVENT_LOST] = "LOST",
                                    [EVENT_HELD] = "HELD",
                                    [EVENT_COLLECTED] = "COLLECTED",
                                    [EVENT_REFUSED] = "REFUSED"};

static const char *const numbers[] = {[NUMBER_OWNER] = "owner",
                                      [NUMBER_TRIGGER] = "trigger",
                                      [NUMBER_PATCHER] = "patcher",
                                      [NUMBER_INNER] = "inner",
                                      [NUMBER_BYTES] = "bytes",
                                      [NUMBER_BEFORE] = "before_bytes",
                                      [NUMBER_AFTER] = "after_bytes",
                                      [NUMBER_STOWED] = "stowed_bytes",
                                      [NUMBER_DEVICE_BYTES] = "device_bytes",
                                      [NUMBER_DEVICE_BEFORE] = "device_before_bytes",
                                      [NUMBER_DEVICE_AFTER] = "device_after_bytes",
                                      [NUMBER_DEVICE_STOWED] = "device_stowed_bytes",
                                      [NUMBER_OWNERS] = "owners",
                                      [NUMBER_COUNT_KEPT] = "kept",
                                      [NUMBER_COUNT_STOWED] = "stowed",
                                      [NUMBER_COUNT_FREED] = "freed",
                                      [NUMBER_COUNT_BLOCKED] = "blocked",
                                      [NUMBER_MODELS_BEFORE] = "models_before",
                                      [NUMBER_MODELS_AFTER] = "models_after",
                                      [NUMBER_GIVEN] = "given_bytes",
                                      [NUMBER_TOOK] = "took_ns",
                                      [NUMBER_BEGAN] = "began_ns",
                                      [NUMBER_FROM] = "from"};

/* Each list is in the order of its enum. The enums are memstow_policy, memstow_why, policy_category and rule. */
static const char *const policies[] = {"none", "keep", "stow", "free", NULL};
static const char *const whys[] = {"",        "nothing_said", "policy", "in_use", "pressure", "empty",
                                   "retired", "not_needed",   "cannot", "recent", "rescue",   NULL};
static const char *const categories[] = {"kept", "stowed", "freed", "blocked", NULL};
static const char *const rules[] = {"patcher", "parent", "inner", "default", "flag", NULL};
static const struct {
    const char *key;
    const char *const *words;
} word_members[] = {[WORD_POLICY] = {"policy", policies},       [WORD_ACTION] = {"action", policies},
                    [WORD_INSTEAD] = {"instead", policies},     [WORD_WHY] = {"why", whys},
                    [WORD_CATEGORY] = {"category", categories}, [WORD_RULE] = {"rule", rules}};

static size_t word_find(const char *text, const char *const *list, size_t count) {
    size_t i = 0;
    while (i < count && list[i] && strcmp(text, list[i]) != 0) i++;
    return i < count && list[i] ? i : count;
}

static uint8_t find_word(struct jsontext value, const char *const *words) {
    char text[32];
    size_t count = 0;
    while (words[count]) count++;
    if (!jsontext_string(value, text, sizeof text)) return WORD_NONE;
    size_t found = word_find(text, words, count);
    return found < count ? (uint8_t)found : WORD_NONE;
}

static enum event_kind find_kind(struct jsontext value) {
    char text[32];
    if (!jsontext_string(value, text, sizeof text)) return EVENT_OTHER;
    for (size_t i = EVENT_SET; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(text, kinds[i]) == 0) return (enum event_kind)i;
    return EVENT_OTHER;
}

static void take_member(struct event *event, const char *key, struct jsontext value) {
    size_t number = word_find(key, numbers, NUMBERS);
    if (number < NUMBERS && jsontext_number(value, &event->numbers[number])) event->given |= 1u << number;
    for (size_t i = 0; i < WORDS; i++)
        if (strcmp(key, word_members[i].key) == 0) event->words[i] = find_word(value, word_members[i].words);
    if (strcmp(key, "kind") == 0) event->kind = find_kind(value);
    if (strcmp(key, "t") == 0) jsontext_number(value, &event->t);
    if (strcmp(key, "by") == 0) event->foreign = true;
    if (strcmp(key, "flag") == 0) event->flag = true;
}

static struct event read_event(const struct trace_line *line) {
    struct event event = {.n = line->number, .line = line->object};
    struct jsontext key, value;
    char name[32];
    memset(event.words, WORD_NONE, sizeof event.words);
    for (size_t next = 0; jsontext_next(line->object, &next, &key, &value);)
        if (jsontext_string(key, name, sizeof name)) take_member(&event, name, value);
    if (event.kind == EVENT_REFUSED && event.foreign) event.kind = EVENT_OTHER; /* only memstow refuses moves */
    return event;
}

/* Assigns events to triggers. A trigger is current from its TRIGGER line to its ACT line.
 * - A READ belongs to the current trigger. Without a current trigger, it belongs to the next one.
 * - A REFUSED belongs to the current trigger, or to none.
 * - LOST, HELD and COLLECTED belong to the newest trigger so far, current or not.
 * - DECISION, CATEGORY, ACT and REMAINING belong to the newest trigger so far, if memstow itself wrote them and they
 * have that trigger's number. Otherwise they belong to none. */
static void decisions_assign(struct decisions *self) {
    bool on = false;
    size_t last = 0, pending = 0;
    for (size_t i = 0; i < self->event_count; i++) {
        struct event *event = &self->events[i];
        if (event->kind == EVENT_TRIGGER && !event->foreign) {
            self->triggers[last++] = (struct trigger){.event = i};
            for (; pending < i; pending++)
                if (self->events[pending].kind == EVENT_READ && !self->events[pending].trigger)
                    self->events[pending].trigger = last;
            on = true;
        }
        bool ours = event->kind >= EVENT_TRIGGER && event->kind <= EVENT_REMAINING;
        bool same = last && event->numbers[NUMBER_TRIGGER] ==
                                self->events[self->triggers[last - 1].event].numbers[NUMBER_TRIGGER];
        bool any = event->kind == EVENT_READ || event->kind == EVENT_REFUSED;
        if (any ? on : ours ? same && !event->foreign : event->kind >= EVENT_LOST) event->trigger = last;
        if (event->kind == EVENT_ACT && event->trigger && on) {
            self->triggers[last - 1].act = i;
            on = false;
        }
    }
    self->trigger_count = last;
}

int decisions_load(struct decisions *self, const struct image *image) {
    struct trace_line line;
    size_t count = 0;
    *self = (struct decisions){0};
    for (size_t at = 0; trace_lines_next(image, &at, &line);) count++;
    self->events = calloc(count + 1, sizeof *self->events);
    self->triggers = calloc(count + 1, sizeof *self->triggers);
    if (!self->events || !self->triggers) return -1;
    for (size_t at = 0; trace_lines_next(image, &at, &line);) self->events[self->event_count++] = read_event(&line);
    decisions_assign(self);
    return decisions_check(self);
}

void decisions_clear(struct decisions *self) {
    free(self->events);
    free(self->triggers);
    free(self->faults);
}

static const char *decisions_word(const char *const *words, uint8_t number) {
    for (uint8_t i = 0; words[i]; i++)
        if (i == number) return words[i];
    return "unknown";
}

const char *decisions_policy(uint8_t policy) { return decisions_word(policies, policy); }

const char *decisions_category(uint8_t category) { return decisions_word(categories, category); }

void decisions_text(const struct event *event, const char *key, char *to, size_t capacity) {
    struct jsontext value;
    to[0] = 0;
    if (jsontext_member(event->line, key, &value)) jsontext_string(value, to, capacity);
}
