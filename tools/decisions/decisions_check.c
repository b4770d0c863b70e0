/* decisions_check.c — finds the five kinds of faults in a trace; see decisions.h and docs/decisions.md. A line SET says
 * which policy was set for an owner. If the program wrote the line, it also says on which objects of the program the
 * policy was set. A line READ says which policy a program found for an owner. The objects, which the lines name by id,
 * are patchers and inner models: a patcher is an object around an inner model. */
#include "tools/decisions/decisions.h"
#include "tools/base/list.h"

#include "include/memstow.h"
#include "preload/shared/policy.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *decisions_fault_name(enum fault_kind kind) {
    static const char *const names[] = {"ids_differ", "policy_not_found", "wrong_category", "kept_model_gone",
                                        "counts"};
    return names[kind];
}

/* --- looking up events --- */

/* The events that lines are checked against, sorted by kind, trigger, owner and line. */
struct order {
    struct decisions *decisions;
    const struct event **list;
    size_t count;
    bool short_of_memory;
};

struct range {
    const struct event **first;
    size_t count;
};

static int by_key(const struct event *a, const struct event *b) {
    if (a->kind != b->kind) return a->kind < b->kind ? -1 : 1;
    if (a->trigger != b->trigger) return a->trigger < b->trigger ? -1 : 1;
    uint64_t left = a->numbers[NUMBER_OWNER], right = b->numbers[NUMBER_OWNER];
    return left < right ? -1 : left > right;
}

static int by_key_and_line(const void *left, const void *right) {
    const struct event *a = *(const struct event *const *)left, *b = *(const struct event *const *)right;
    int order = by_key(a, b);
    return order ? order : a < b ? -1 : a > b; /* events are in the order of their lines */
}

static size_t decisions_check_lower(const struct order *order, const struct event *key, bool beyond) {
    size_t low = 0, high = order->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int compared = by_key(order->list[middle], key);
        if (compared < 0 || (beyond && compared == 0))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct range events_find(const struct order *order, enum event_kind kind, size_t trigger, uint64_t owner) {
    struct event key = {.kind = kind, .trigger = trigger};
    key.numbers[NUMBER_OWNER] = owner;
    size_t first = decisions_check_lower(order, &key, false);
    return (struct range){order->list + first, decisions_check_lower(order, &key, true) - first};
}

static int put_in_order(struct order *order) {
    struct decisions *self = order->decisions;
    order->list = calloc(self->event_count + 1, sizeof *order->list);
    if (!order->list) return -1;
    for (size_t i = 0; i < self->event_count; i++) {
        const struct event *event = &self->events[i];
        bool wanted = event->kind == EVENT_SET || event->kind == EVENT_READ ||
                      (event->trigger && (event->kind == EVENT_DECISION || event->kind == EVENT_CATEGORY));
        if (wanted) order->list[order->count++] = event;
    }
    qsort(order->list, order->count, sizeof *order->list, by_key_and_line);
    return 0;
}

/* --- noting faults --- */

enum { FAULTS_MOST = 1000 };

static uint64_t trigger_number(const struct decisions *self, const struct event *event) {
    return event->trigger ? self->events[self->triggers[event->trigger - 1].event].numbers[NUMBER_TRIGGER] : 0;
}

__attribute__((format(printf, 4, 5))) static void fault(struct order *order, enum fault_kind kind,
                                                        const struct event *event, const char *format, ...) {
    struct decisions *self = order->decisions;
    if (self->fault_count >= FAULTS_MOST) return;
    if (!LIST_GROW(self->faults, self->fault_count, self->fault_capacity)) {
        order->short_of_memory = true;
        return;
    }
    struct fault *found = &self->faults[self->fault_count++];
    *found = (struct fault){
        .kind = kind, .n = event->n, .trigger = trigger_number(self, event), .owner = event->numbers[NUMBER_OWNER]};
    va_list list;
    va_start(list, format);
    vsnprintf(found->text, sizeof found->text, format, list);
    va_end(list);
}

/* --- checking SET and READ lines --- */

static bool same_ids(const struct event *a, const struct event *b) {
    return a->numbers[NUMBER_PATCHER] == b->numbers[NUMBER_PATCHER] &&
           a->numbers[NUMBER_INNER] == b->numbers[NUMBER_INNER];
}

static bool has_ids(const struct event *event) {
    return event->foreign && (event->numbers[NUMBER_PATCHER] || event->numbers[NUMBER_INNER]);
}

static int by_ids_and_line(const void *left, const void *right) {
    const struct event *a = *(const struct event *const *)left, *b = *(const struct event *const *)right;
    static const enum event_number keys[] = {NUMBER_OWNER, NUMBER_PATCHER, NUMBER_INNER};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (a->numbers[keys[i]] != b->numbers[keys[i]]) return a->numbers[keys[i]] < b->numbers[keys[i]] ? -1 : 1;
    if (a->flag != b->flag) return a->flag ? 1 : -1;
    return a < b ? -1 : a > b; /* events are in the order of their lines */
}

/* For each SET that has ids, sets `replaced` to the next SET of the same owner with the same ids. A flag and a policy
 * do not replace each other. Returns 0, or -1: no memory. */
static int link_sets(struct decisions *self) {
    struct event **sets = calloc(self->event_count + 1, sizeof *sets);
    size_t count = 0;
    if (!sets) return -1;
    for (size_t i = 0; i < self->event_count; i++)
        if (self->events[i].kind == EVENT_SET && has_ids(&self->events[i])) sets[count++] = &self->events[i];
    qsort(sets, count, sizeof *sets, by_ids_and_line);
    for (size_t i = 0; i + 1 < count; i++)
        if (sets[i]->numbers[NUMBER_OWNER] == sets[i + 1]->numbers[NUMBER_OWNER] && same_ids(sets[i], sets[i + 1]) &&
            sets[i]->flag == sets[i + 1]->flag)
            sets[i]->replaced = sets[i + 1];
    free(sets);
    return 0;
}

/* Whether a SET has ids, and gives a policy that is still valid at the event `until`. */
static bool decisions_check_holds(const struct event *set, const struct event *until) {
    return has_ids(set) && set < until && set->words[WORD_POLICY] != MEMSTOW_NO_POLICY &&
           !(set->replaced && set->replaced < until);
}

/* The ids of the SET that is looked for: this patcher or, if `patcher` is 0, this inner model. */
struct wanted {
    uint64_t patcher, inner;
    bool flag; /* true: only SETs of flags; false: only SETs of policies */
};

/* Whether the SET is one that is looked for. A policy applies to the inner model, whichever patcher it was set on. A
 * flag applies only to the object that has it. */
static bool decisions_check_matches(const struct event *set, const struct wanted *wanted) {
    const uint64_t *numbers = set->numbers;
    if (set->flag != wanted->flag) return false;
    if (wanted->patcher) return numbers[NUMBER_PATCHER] == wanted->patcher;
    if (wanted->flag && numbers[NUMBER_PATCHER]) return false;
    return wanted->inner && numbers[NUMBER_INNER] == wanted->inner;
}

/* The latest of `sets` that matches `wanted` and is valid at `read`; NULL: none. */
static const struct event *set_with(struct range sets, const struct event *read, struct wanted wanted) {
    for (size_t i = sets.count; i-- > 0;)
        if (decisions_check_matches(sets.first[i], &wanted) && decisions_check_holds(sets.first[i], read))
            return sets.first[i];
    return NULL;
}

static const struct event *set_of_parent(struct range sets, const struct event *read, bool flag) {
    struct jsontext parents, value;
    uint64_t patcher;
    if (!jsontext_member(read->line, "parents", &parents) || *parents.at != '[') return NULL;
    for (size_t next = 0; jsontext_next(parents, &next, NULL, &value);) {
        bool known = jsontext_number(value, &patcher) && patcher;
        const struct event *set = known ? set_with(sets, read, (struct wanted){patcher, 0, flag}) : NULL;
        if (set) return set;
    }
    return NULL;
}

static const struct event *set_by(struct range sets, const struct event *read, uint8_t rule, bool flag) {
    struct wanted wanted = {read->numbers[NUMBER_PATCHER], 0, flag};
    if (rule == RULE_PATCHER) return wanted.patcher ? set_with(sets, read, wanted) : NULL;
    if (rule == RULE_PARENT) return set_of_parent(sets, read, flag);
    wanted = (struct wanted){0, read->numbers[NUMBER_INNER], flag};
    return rule == RULE_INNER ? set_with(sets, read, wanted) : NULL;
}

/* The SET that a READ should have found. The search uses the id of the patcher, then the ids of the patcher's parents,
 * then the id of the inner model. *rule says which of these ids led to the SET. NULL: none of them did. */
static const struct event *set_for(struct range sets, const struct event *read, uint8_t *rule, bool flag) {
    const struct event *set = NULL;
    for (*rule = RULE_PATCHER; *rule < RULE_DEFAULT; ++*rule)
        if ((set = set_by(sets, read, *rule, flag))) break;
    return set;
}

/* Returns a SET that is valid at `read` and has ids, no matter which; NULL: there is none. If `flag` is true, only SETs
 * of flags count, otherwise only SETs of policies. */
static const struct event *any_that_holds(struct range sets, const struct event *read, bool flag) {
    for (size_t i = 0; i < sets.count; i++)
        if (sets.first[i]->flag == flag && decisions_check_holds(sets.first[i], read)) return sets.first[i];
    return NULL;
}

/* Whether the trace still has its first line. If not, a SET may be missing because its line was dropped. */
static bool begins_at_first(const struct decisions *self) { return self->event_count && self->events[0].n == 1; }

static const char *const rule_names[] = {"its patcher", "a parent", "its inner model"};

/* Checks a READ that found no policy. */
static void check_no_policy(struct order *order, struct range sets, const struct event *read) {
    uint8_t rule;
    const struct event *set = set_for(sets, read, &rule, false);
    if (set)
        fault(order, FAULT_POLICY, read, "no policy was found, but line %" PRIu64 " set %s on %s", set->n,
              decisions_policy(set->words[WORD_POLICY]), rule_names[rule]);
    else if (any_that_holds(sets, read, false))
        fault(order, FAULT_IDS, read, "no policy was found, but one was set for this owner on other ids");
}

static uint64_t id_of(const struct event *set) {
    return set->numbers[NUMBER_PATCHER] ? set->numbers[NUMBER_PATCHER] : set->numbers[NUMBER_INNER];
}

static void check_no_flag(struct order *order, struct range sets, const struct event *read) {
    uint8_t rule;
    const struct event *set = set_for(sets, read, &rule, true);
    if (set)
        fault(order, FAULT_POLICY, read, "no policy was found, but line %" PRIu64 " saw a flag for %s on %s", set->n,
              decisions_policy(set->words[WORD_POLICY]), rule_names[rule]);
    else if ((set = any_that_holds(sets, read, true)))
        fault(order, FAULT_IDS, read,
              "flag set on one object, read on another: line %" PRIu64 " saw it on %" PRIu64 ", not on patcher %" PRIu64
              ", its parents or its inner model",
              set->n, id_of(set), read->numbers[NUMBER_PATCHER]);
}

/* Checks a READ that found a policy:
 * - The rule that the READ names must lead to a SET. Exception: the trace has lost its first lines, and has no valid
 *   SET of this owner.
 * - The policy must be that of the SET that set_for() finds. The rule that leads to this SET may be an earlier one than
 *   the READ names, because a new object may have the id of a dead one. This is no fault if the policy is the same. */
static void check_policy_found(struct order *order, struct range sets, const struct event *read) {
    uint8_t said = read->words[WORD_RULE], rule;
    const struct event *set = set_by(sets, read, said, false), *right = set_for(sets, read, &rule, false);
    if (!set && (any_that_holds(sets, read, false) || begins_at_first(order->decisions)))
        fault(order, FAULT_IDS, read, "a policy was found by %s, but none was set on %s", rule_names[said],
              rule_names[said]);
    else if (set && read->words[WORD_POLICY] != right->words[WORD_POLICY])
        fault(order, FAULT_POLICY, read, "%s was found, but line %" PRIu64 " set %s on %s",
              decisions_policy(read->words[WORD_POLICY]), right->n, decisions_policy(right->words[WORD_POLICY]),
              rule_names[rule]);
}

/* Whether a SET says that a flag was seen on the object that gave a READ its policy. */
static bool was_seen(struct range sets, const struct event *read) {
    uint64_t from = read->numbers[NUMBER_FROM];
    return set_with(sets, read, (struct wanted){from, 0, true}) || set_with(sets, read, (struct wanted){0, from, true});
}

static void check_flag_found(struct order *order, struct range sets, const struct event *read) {
    uint8_t rule;
    const struct event *right = set_for(sets, read, &rule, true);
    if (!was_seen(sets, read)) {
        if (any_that_holds(sets, read, true) || begins_at_first(order->decisions))
            fault(order, FAULT_IDS, read, "a flag was found on %" PRIu64 ", but none was seen on that object",
                  read->numbers[NUMBER_FROM]);
    } else if (right && read->words[WORD_POLICY] != right->words[WORD_POLICY]) {
        fault(order, FAULT_POLICY, read, "%s was found, but line %" PRIu64 " saw a flag for %s on %s",
              decisions_policy(read->words[WORD_POLICY]), right->n, decisions_policy(right->words[WORD_POLICY]),
              rule_names[rule]);
    }
}

/* Checks whether a READ line agrees with the SET lines before it. Does not check a READ line whose policy came from the
 * options of a run, or from a flag of an object that the line does not name. */
static void check_read(struct order *order, const struct event *read) {
    struct range sets = events_find(order, EVENT_SET, 0, read->numbers[NUMBER_OWNER]);
    uint8_t rule = read->words[WORD_RULE];
    if (rule < RULE_DEFAULT) {
        check_policy_found(order, sets, read);
    } else if (rule == RULE_DEFAULT) {
        check_no_policy(order, sets, read);
        check_no_flag(order, sets, read);
    } else if (rule == RULE_FLAG && read->numbers[NUMBER_FROM]) {
        check_no_policy(order, sets, read);
        check_flag_found(order, sets, read);
    }
}

/* --- checking DECISION lines --- */

static bool action_fits(const struct event *decision) {
    uint8_t policy = decision->words[WORD_POLICY], action = decision->words[WORD_ACTION];
    switch (decision->words[WORD_WHY]) {
    case MEMSTOW_WHY_POLICY:
        return action == policy && policy >= MEMSTOW_KEEP && policy <= MEMSTOW_FREE;
    case MEMSTOW_WHY_NOTHING_SAID:
        return policy == MEMSTOW_KEEP && action == MEMSTOW_KEEP;
    case MEMSTOW_WHY_PRESSURE:
        return policy == MEMSTOW_KEEP && action == MEMSTOW_STOW;
    case POLICY_WHY_RESCUE:
        return (policy == MEMSTOW_KEEP || policy == MEMSTOW_FREE) && action == MEMSTOW_STOW;
    case WORD_NONE:
        return false;
    default:
        return action == MEMSTOW_KEEP;
    }
}

/* The latest of an owner's `sets` that memstow itself wrote before the event `before`; NULL: none. */
static const struct event *last_set(struct range sets, const struct event *before) {
    const struct event *last = NULL;
    for (size_t i = 0; i < sets.count && sets.first[i] < before; i++)
        if (!sets.first[i]->foreign) last = sets.first[i];
    return last;
}

static uint8_t counts_as(uint8_t policy) { return policy == MEMSTOW_NO_POLICY ? MEMSTOW_KEEP : policy; }

static void check_policy(struct order *order, const struct event *decision) {
    uint64_t owner = decision->numbers[NUMBER_OWNER];
    uint8_t policy = decision->words[WORD_POLICY];
    const struct event *begin = &order->decisions->events[order->decisions->triggers[decision->trigger - 1].event];
    const struct event *set = last_set(events_find(order, EVENT_SET, 0, owner), begin);
    struct range reads = events_find(order, EVENT_READ, decision->trigger, owner);
    /* the policy was set while the trigger decided: the decision may have been made with the previous policy */
    if (set && begin->numbers[NUMBER_BEGAN] && set->t >= begin->numbers[NUMBER_BEGAN]) return;
    bool unsaid = decision->words[WORD_WHY] == MEMSTOW_WHY_NOTHING_SAID;
    if (set &&
        (counts_as(set->words[WORD_POLICY]) != policy || (unsaid && set->words[WORD_POLICY] != MEMSTOW_NO_POLICY))) {
        fault(order, FAULT_POLICY, decision, "the decision used policy %s%s, but line %" PRIu64 " set %s",
              decisions_policy(policy), unsaid ? " (no policy was set)" : "", set->n,
              decisions_policy(set->words[WORD_POLICY]));
        return;
    }
    for (size_t i = 0; i < reads.count; i++) {
        const struct event *read = reads.first[i];
        uint8_t instead = read->words[WORD_INSTEAD], wanted = instead == WORD_NONE ? read->words[WORD_POLICY] : instead;
        if (counts_as(wanted) == policy) return;
        if (i + 1 == reads.count)
            fault(order, FAULT_POLICY, decision, "the decision used policy %s, but line %" PRIu64 " found %s",
                  decisions_policy(policy), read->n, decisions_policy(wanted));
    }
}

static void check_decision(struct order *order, const struct event *decision) {
    if (!action_fits(decision))
        fault(order, FAULT_CATEGORY, decision, "policy %s and action %s do not fit the reason",
              decisions_policy(decision->words[WORD_POLICY]), decisions_policy(decision->words[WORD_ACTION]));
    if (decision->words[WORD_WHY] != MEMSTOW_WHY_RETIRED) check_policy(order, decision);
}

/* --- checking CATEGORY lines --- */

static void check_category(struct order *order, const struct event *category) {
    const uint64_t *numbers = category->numbers;
    uint8_t said = category->words[WORD_CATEGORY];
    struct range decisions = events_find(order, EVENT_DECISION, category->trigger, numbers[NUMBER_OWNER]);
    if (!decisions.count) {
        fault(order, FAULT_CATEGORY, category, "the owner has a category, but no decision");
        return;
    }
    const struct event *decision = decisions.first[0];
    uint64_t before = policy_sum(numbers[NUMBER_BEFORE], numbers[NUMBER_DEVICE_BEFORE]);
    uint64_t after = policy_sum(numbers[NUMBER_AFTER], numbers[NUMBER_DEVICE_AFTER]);
    enum policy_category right =
        policy_category(decision->words[WORD_ACTION], decision->words[WORD_WHY], before, after, numbers[NUMBER_STOWED]);
    if (said != right)
        fault(order, FAULT_CATEGORY, category, "the category is %s, but the figures say %s", decisions_category(said),
              decisions_category(right));
    if (numbers[NUMBER_BEFORE] != decision->numbers[NUMBER_BYTES])
        fault(order, FAULT_COUNTS, category, "%" PRIu64 " bytes before, but the decision has %" PRIu64,
              numbers[NUMBER_BEFORE], decision->numbers[NUMBER_BYTES]);
    if (numbers[NUMBER_DEVICE_BEFORE] != decision->numbers[NUMBER_DEVICE_BYTES])
        fault(order, FAULT_COUNTS, category, "%" PRIu64 " bytes in devices before, but the decision has %" PRIu64,
              numbers[NUMBER_DEVICE_BEFORE], decision->numbers[NUMBER_DEVICE_BYTES]);
    if (said == POLICY_KEPT && before && !after)
        fault(order, FAULT_GONE, category, "the owner was kept, but it has no memory left");
}

/* --- checking the sums that a trigger's ACT line has --- */

struct tally {
    uint64_t decisions, categories[POLICY_CATEGORIES], count;
    uint64_t decided_bytes, before, after, remaining;                       /* on the host */
    uint64_t device_decided, device_before, device_after, device_remaining; /* on devices */
};

static void sum_add_to(uint64_t *sum, uint64_t n) { *sum = policy_sum(*sum, n); }

static void tally_event(struct tally *tally, const struct event *event) {
    const uint64_t *numbers = event->numbers;
    if (event->kind == EVENT_DECISION) {
        tally->decisions++;
        sum_add_to(&tally->decided_bytes, numbers[NUMBER_BYTES]);
        sum_add_to(&tally->device_decided, numbers[NUMBER_DEVICE_BYTES]);
    } else if (event->kind == EVENT_CATEGORY) {
        tally->count++;
        if (event->words[WORD_CATEGORY] < POLICY_CATEGORIES) tally->categories[event->words[WORD_CATEGORY]]++;
        sum_add_to(&tally->before, numbers[NUMBER_BEFORE]);
        sum_add_to(&tally->after, numbers[NUMBER_AFTER]);
        sum_add_to(&tally->device_before, numbers[NUMBER_DEVICE_BEFORE]);
        sum_add_to(&tally->device_after, numbers[NUMBER_DEVICE_AFTER]);
    } else if (event->kind == EVENT_REMAINING) {
        sum_add_to(&tally->remaining, numbers[NUMBER_BYTES]);
        sum_add_to(&tally->device_remaining, numbers[NUMBER_DEVICE_BYTES]);
    }
}

static void decisions_check_expect(struct order *order, const struct event *event, const char *what, uint64_t said,
                                   uint64_t counted) {
    if (said != counted)
        fault(order, FAULT_COUNTS, event, "%s: the trigger says %" PRIu64 ", but its lines add up to %" PRIu64, what,
              said, counted);
}

static void check_device_counts(struct order *order, const struct event *begin, const struct event *act,
                                const struct tally *tally) {
    decisions_check_expect(order, begin, "device_before_bytes", begin->numbers[NUMBER_DEVICE_BEFORE],
                           tally->device_decided);
    decisions_check_expect(order, act, "device_before_bytes", act->numbers[NUMBER_DEVICE_BEFORE], tally->device_before);
    decisions_check_expect(order, act, "device_after_bytes", act->numbers[NUMBER_DEVICE_AFTER], tally->device_after);
    decisions_check_expect(order, act, "device_bytes that remain", act->numbers[NUMBER_DEVICE_AFTER],
                           tally->device_remaining);
}

static void check_counts(struct order *order, size_t index, const struct tally *tally) {
    const struct decisions *self = order->decisions;
    const struct event *begin = &self->events[self->triggers[index].event],
                       *act = &self->events[self->triggers[index].act];
    decisions_check_expect(order, begin, "owners", begin->numbers[NUMBER_OWNERS], tally->decisions);
    decisions_check_expect(order, begin, "before_bytes", begin->numbers[NUMBER_BEFORE], tally->decided_bytes);
    for (int i = 0; i < POLICY_CATEGORIES; i++)
        decisions_check_expect(order, act, decisions_category((uint8_t)i), act->numbers[NUMBER_COUNT_KEPT + i],
                               tally->categories[i]);
    decisions_check_expect(order, act, "models_before", act->numbers[NUMBER_MODELS_BEFORE], tally->count);
    decisions_check_expect(order, act, "models_after", act->numbers[NUMBER_MODELS_AFTER],
                           tally->count - tally->categories[POLICY_FREED]);
    decisions_check_expect(order, act, "before_bytes", act->numbers[NUMBER_BEFORE], tally->before);
    decisions_check_expect(order, act, "after_bytes", act->numbers[NUMBER_AFTER], tally->after);
    decisions_check_expect(order, act, "bytes that remain", act->numbers[NUMBER_AFTER], tally->remaining);
    check_device_counts(order, begin, act, tally);
}

/* Checks a decision of a finished trigger: its owner must have a category in that trigger if it had memory, and must
 * have none if it had no memory. */
static void check_pairs(struct order *order, const struct event *decision) {
    struct range categories = events_find(order, EVENT_CATEGORY, decision->trigger, decision->numbers[NUMBER_OWNER]);
    if (decision->words[WORD_WHY] == MEMSTOW_WHY_EMPTY) {
        if (categories.count) fault(order, FAULT_CATEGORY, decision, "the owner had no memory, but it has a category");
    } else if (!categories.count) {
        fault(order, FAULT_CATEGORY, decision, "the owner has a decision, but no category");
    }
}

static void check_twice(struct order *order) {
    for (size_t i = 1; i < order->count; i++) {
        const struct event *event = order->list[i];
        bool once = event->kind == EVENT_DECISION || event->kind == EVENT_CATEGORY;
        if (once && by_key(order->list[i - 1], event) == 0)
            fault(order, FAULT_COUNTS, event, "the trigger lists owner %" PRIu64 " twice",
                  event->numbers[NUMBER_OWNER]);
    }
}

/* --- checking LOST lines --- */

static void check_lost(struct order *order, const struct event *lost) {
    const struct event *last = NULL;
    for (size_t trigger = lost->trigger; trigger && !last; trigger--) {
        struct range decisions = events_find(order, EVENT_DECISION, trigger, lost->numbers[NUMBER_OWNER]);
        if (decisions.count) last = decisions.first[0];
    }
    if (!last || last->words[WORD_ACTION] != MEMSTOW_FREE)
        fault(order, FAULT_GONE, lost, "the owner is gone, but %s",
              last ? "the last decision did not free it" : "no decision was made about it");
}

/* --- running all checks --- */

static void check_event(struct order *order, size_t i) {
    const struct decisions *self = order->decisions;
    const struct event *event = &self->events[i];
    bool finished = event->trigger && self->triggers[event->trigger - 1].act;
    if (i && event->n != event[-1].n + 1)
        fault(order, FAULT_COUNTS, event, "lines between %" PRIu64 " and %" PRIu64 " are missing", event[-1].n,
              event->n);
    if (event->kind == EVENT_READ) check_read(order, event);
    if (event->kind == EVENT_LOST) check_lost(order, event);
    if (event->kind == EVENT_DECISION && event->trigger) check_decision(order, event);
    if (event->kind == EVENT_DECISION && finished) check_pairs(order, event);
    if (event->kind == EVENT_CATEGORY && finished) check_category(order, event);
}

static void check_triggers(struct order *order) {
    const struct decisions *self = order->decisions;
    size_t i = 0;
    for (size_t index = 0; index < self->trigger_count; index++) {
        struct tally tally = {0};
        size_t end = index + 1 < self->trigger_count ? self->triggers[index + 1].event : self->event_count;
        for (i = self->triggers[index].event; i < end; i++)
            if (self->events[i].trigger == index + 1) tally_event(&tally, &self->events[i]);
        if (self->triggers[index].act) check_counts(order, index, &tally);
    }
}

static int decisions_check_by_line(const void *left, const void *right) {
    const struct fault *a = left, *b = right;
    return a->n < b->n ? -1 : a->n > b->n;
}

int decisions_check(struct decisions *self) {
    struct order order = {.decisions = self};
    if (link_sets(self) < 0 || put_in_order(&order) < 0) return -1;
    for (size_t i = 0; i < self->event_count; i++) check_event(&order, i);
    check_triggers(&order);
    check_twice(&order);
    free(order.list);
    if (self->fault_count) qsort(self->faults, self->fault_count, sizeof *self->faults, decisions_check_by_line);
    return order.short_of_memory ? -1 : 0;
}
