/* decisions.h — the trace of decisions, line by line, and what is wrong with it. docs/decisions.md has the lines.
 * In: an image, whose lines are JSON and nothing more is certain. Out: events in the order in which they happened, the
 * trigger that each belongs to, and faults. */
#ifndef MEMSTOW_DECISIONS_H
#define MEMSTOW_DECISIONS_H

#include "tools/image/image.h"
#include "tools/reader/trace_lines.h"

#include <stdio.h>

enum event_kind {
    EVENT_OTHER,
    EVENT_SET,
    EVENT_READ,
    EVENT_TRIGGER,
    EVENT_DECISION,
    EVENT_CATEGORY,
    EVENT_ACT,
    EVENT_REMAINING,
    EVENT_LOST,
    EVENT_HELD,
    EVENT_COLLECTED, /* for memstow leaks: not shown */
    EVENT_REFUSED,
};

/* Members that are numbers. */
enum event_number {
    NUMBER_OWNER,
    NUMBER_TRIGGER,
    NUMBER_PATCHER,
    NUMBER_INNER,
    NUMBER_BYTES,
    NUMBER_BEFORE,
    NUMBER_AFTER,
    NUMBER_STOWED,
    NUMBER_DEVICE_BYTES, /* the same four of devices: left out where there is nothing */
    NUMBER_DEVICE_BEFORE,
    NUMBER_DEVICE_AFTER,
    NUMBER_DEVICE_STOWED, /* of stowed bytes */
    NUMBER_OWNERS,
    NUMBER_COUNT_KEPT, /* in the order of enum policy_category */
    NUMBER_COUNT_STOWED,
    NUMBER_COUNT_FREED,
    NUMBER_COUNT_BLOCKED,
    NUMBER_MODELS_BEFORE,
    NUMBER_MODELS_AFTER,
    NUMBER_GIVEN,
    NUMBER_TOOK,
    NUMBER_BEGAN,
    NUMBER_FROM, /* of a READ: the object whose flag counts */
    NUMBERS,
};

/* Members that are one of a few words. */
enum event_word { WORD_POLICY, WORD_ACTION, WORD_INSTEAD, WORD_WHY, WORD_CATEGORY, WORD_RULE, WORDS };
enum rule { RULE_PATCHER, RULE_PARENT, RULE_INNER, RULE_DEFAULT, RULE_FLAG };
enum { WORD_NONE = 255 /* it is not there, or another word */ };

struct event {
    enum event_kind kind;
    bool foreign; /* a program's: it says "by" */
    bool flag;    /* it names a flag that another program set */
    uint8_t words[WORDS];
    uint32_t given; /* bit n: number n is there */
    uint64_t n, t;
    uint64_t numbers[NUMBERS];    /* 0 where it is not there */
    size_t trigger;               /* 1 + index of the trigger that it belongs to; 0: none */
    const struct event *replaced; /* of a SET: the next one of its owner with the same ids, for the check */
    struct jsontext line;
};

struct trigger {
    size_t event; /* of its TRIGGER line */
    size_t act;   /* of its ACT line; 0: it was not finished (an ACT is never the first event) */
};

enum fault_kind { FAULT_IDS, FAULT_POLICY, FAULT_CATEGORY, FAULT_GONE, FAULT_COUNTS };
struct fault {
    enum fault_kind kind;
    uint64_t n;              /* line */
    uint64_t trigger, owner; /* numbers; 0: none */
    char text[200];
};

struct decisions {
    struct event *events;
    size_t event_count;
    struct trigger *triggers;
    size_t trigger_count;
    struct fault *faults;
    size_t fault_count, fault_room;
};

/* 0, or -1 when memory is short. Finds faults, too. */
int decisions_load(struct decisions *self, const struct image *image);
void decisions_clear(struct decisions *self);

/* decisions_check.c */
int decisions_check(struct decisions *self);
/* ids_differ and so on. */
const char *decisions_fault_name(enum fault_kind kind);

/* Words of numbers that an event has; "unknown" for others. */
const char *decisions_policy(uint8_t policy);
const char *decisions_category(uint8_t category);

/* A member that is text, or ""; cut to fit. It may hold anything: text.h makes it printable. */
void decisions_text(const struct event *event, const char *key, char *to, size_t room);

/* decisions_json.c: one document; and how many lines there were before those that are left. */
void decisions_json(const struct decisions *self, const struct image *image, FILE *to);
uint64_t decisions_lines_before(const struct decisions *self);

/* decisions_text.c: for people. */
void decisions_print(const struct decisions *self, const struct image *image, FILE *to);

#endif
