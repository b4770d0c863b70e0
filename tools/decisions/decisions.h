/* decisions.h — reads the trace: lines of JSON about what memstow decided, one event each. A trigger is a moment at
 * which memstow decides for each owner whether its memory is kept, stowed or freed. docs/decisions.md describes the
 * lines.
 * In: an image with a trace. Its lines are known to be JSON; nothing else in them is trusted. Out: the events in the
 * order of lines, the trigger of each event, and faults: lines that contradict each other, or that are missing. */
#ifndef MEMSTOW_DECISIONS_H
#define MEMSTOW_DECISIONS_H

#include "tools/image/image.h"
#include "tools/reader/trace_lines.h"

#include <stdio.h>

/* The kind of a line, which docs/decisions.md explains. EVENT_OTHER: any kind that is not in this list. */
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
    EVENT_COLLECTED, /* for memstow leaks; not shown by memstow decisions */
    EVENT_REFUSED,
};

/* Members of a line that are numbers. */
enum event_number {
    NUMBER_OWNER,
    NUMBER_TRIGGER,
    NUMBER_PATCHER,
    NUMBER_INNER,
    NUMBER_BYTES,
    NUMBER_BEFORE,
    NUMBER_AFTER,
    NUMBER_STOWED,
    NUMBER_DEVICE_BYTES, /* this and the next three are bytes on devices; all are missing if none are there */
    NUMBER_DEVICE_BEFORE,
    NUMBER_DEVICE_AFTER,
    NUMBER_DEVICE_STOWED, /* part of NUMBER_STOWED */
    NUMBER_OWNERS,
    NUMBER_COUNT_KEPT, /* this and the next three: in the order of enum policy_category */
    NUMBER_COUNT_STOWED,
    NUMBER_COUNT_FREED,
    NUMBER_COUNT_BLOCKED,
    NUMBER_MODELS_BEFORE,
    NUMBER_MODELS_AFTER,
    NUMBER_GIVEN,
    NUMBER_TOOK,
    NUMBER_BEGAN,
    NUMBER_FROM, /* of a READ: the object whose flag gave the policy */
    NUMBERS,
};

/* Members of a line of the trace. The value of each such member is one word of a short list. */
enum event_word { WORD_POLICY, WORD_ACTION, WORD_INSTEAD, WORD_WHY, WORD_CATEGORY, WORD_RULE, WORDS };
/* Where a READ found its policy: on the patcher (an object around the inner model), on one of the patcher's parents, on
 * the inner model, nowhere (a default), or in a flag of another node pack. */
enum rule { RULE_PATCHER, RULE_PARENT, RULE_INNER, RULE_DEFAULT, RULE_FLAG };
enum { WORD_NONE = 255 /* the member is missing, or has an unknown word */ };

struct event {
    enum event_kind kind;
    bool foreign; /* the program wrote the line: it has a member "by" */
    bool flag;    /* the event is about a flag of another node pack */
    uint8_t words[WORDS];
    uint32_t given;               /* bit n: numbers[n] is given */
    uint64_t n, t;                /* n: number of the line; t: its time, in nanoseconds of CLOCK_MONOTONIC */
    uint64_t numbers[NUMBERS];    /* 0 if not given */
    size_t trigger;               /* 1 + index of its trigger; 0: none */
    const struct event *replaced; /* of a SET: the later SET that replaces it, for decisions_check; NULL: none */
    struct jsontext line;
};

struct trigger {
    size_t event; /* index of its TRIGGER line */
    /* index of its ACT line; 0: the trigger was not finished. (The index 0 is free for this: an ACT line is never the
     * first line, because it comes after its TRIGGER line.) */
    size_t act;
};

/* IDS: a policy or flag was set on one object and read on another. POLICY: the policy in a line differs from the policy
 * that an earlier line has set. CATEGORY: a decision or its category does not follow from the policy, the reason and
 * the bytes. GONE: an owner that was kept has lost its memory. COUNTS: lines are missing, or sums are wrong. */
enum fault_kind { FAULT_IDS, FAULT_POLICY, FAULT_CATEGORY, FAULT_GONE, FAULT_COUNTS };
struct fault {
    enum fault_kind kind;
    uint64_t n;              /* number of the line */
    uint64_t trigger, owner; /* number of the trigger, id of the owner; 0: none */
    char text[200];
};

struct decisions {
    struct event *events;
    size_t event_count;
    struct trigger *triggers;
    size_t trigger_count;
    struct fault *faults;
    size_t fault_count, fault_capacity;
};

/* Reads the trace of the image, and finds its faults. Returns 0, or -1: no memory. */
int decisions_load(struct decisions *self, const struct image *image);
void decisions_clear(struct decisions *self);

/* decisions_check.c: finds the faults, for decisions_load. Returns 0, or -1: no memory. */
int decisions_check(struct decisions *self);
/* The name of a kind of fault in JSON, such as "ids_differ". */
const char *decisions_fault_name(enum fault_kind kind);

/* The word for a policy or a category; "unknown" for a number without a word. */
const char *decisions_policy(uint8_t policy);
const char *decisions_category(uint8_t category);

/* Copies the text of a member, cut to fit; "" if the member is missing or not a string. The copy may have control
 * characters: print it only with functions of text.h, which make it safe. */
void decisions_text(const struct event *event, const char *key, char *to, size_t capacity);

/* decisions_json.c: writes the trace as one JSON document. */
void decisions_json(const struct decisions *decisions, const struct image *image, FILE *to);
/* Writes only the triggers that have lines behind the line `after`, in the form of decisions_json. The document has all
 * lines of these triggers, and the owners that these lines name. If the document would become too large, the earliest
 * of these triggers are left out. Returns 0, or -1: no memory. */
int decisions_json_after(const struct decisions *decisions, const struct image *image, uint64_t after, FILE *to);
/* The number of the last line; 0: the trace has none. */
uint64_t decisions_last_line(const struct decisions *decisions);
/* How many lines the trace had before the first one that it still has. */
uint64_t decisions_lines_before(const struct decisions *decisions);

/* decisions_text.c: prints the trace as text for people. */
void decisions_print(const struct decisions *self, const struct image *image, FILE *to);

#endif
