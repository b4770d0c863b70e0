/* decisions_text.c — the trace of decisions as text, trigger by trigger; see decisions.h. */
#include "tools/decisions/decisions.h"
#include "tools/views/roster.h"
#include "tools/base/text.h"

#include "include/memstow.h"
#include "preload/shared/policy.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { NAME_COLUMNS = 40, INDENT = 4, LINE_SIZE = 4200 };

struct page {
    const struct decisions *decisions;
    const struct image *image;
    FILE *to;
    bool behind_trigger, some; /* behind_trigger: a trigger was printed last; some: anything was printed */
};

/* The owner's latest SET that memstow itself wrote, not later than `event`; NULL: none. A SET that the program wrote
 * does not have the owner's name. */
static const struct event *named_by(const struct page *page, const struct event *event, uint64_t owner) {
    for (const struct event *set = event + 1; set-- > page->decisions->events;)
        if (set->kind == EVENT_SET && !set->foreign && set->numbers[NUMBER_OWNER] == owner) return set;
    return NULL;
}

/* The owner of an event as "UNET (wan.safetensors, model 7)". The names come from the list of owners or, for an owner
 * that is not in the list, from its latest SET. The origin tells models with the same name apart. */
static struct text_line decisions_text_owner_name(const struct page *page, const struct event *event) {
    struct text_line line;
    char name[256] = "", origin[256] = "", kind[16] = "";
    uint64_t id = event->numbers[NUMBER_OWNER];
    const struct snap_owner *owner = id <= UINT32_MAX ? image_owner(page->image, (uint32_t)id) : NULL;
    if (owner) {
        snprintf(name, sizeof name, "%s", image_string(page->image, owner->name));
        snprintf(origin, sizeof origin, "%s", image_string(page->image, owner->origin));
        snprintf(kind, sizeof kind, "%s", roster_kind(owner));
    }
    const struct event *set = owner ? NULL : named_by(page, event, id);
    if (set) {
        decisions_text(set, "name", name, sizeof name);
        decisions_text(set, "owner_kind", kind, sizeof kind);
    }
    snprintf(line.s, sizeof line.s, "%.200s%s(%.200s%s%.20s %" PRIu64 ")", text_fit(name, NAME_COLUMNS).s,
             *name ? " " : "", text_fit(origin, NAME_COLUMNS).s, *origin ? ", " : "",
             *kind ? text_fit(kind, 16).s : "owner", id);
    return line;
}

static void print_when(const struct page *page, const struct event *event) {
    uint64_t start = page->image->header.start_ns;
    fprintf(page->to, "%s after the start", text_duration(event->t > start ? event->t - start : 0).s);
}

/* Prints the rest of a line, wrapped. `first` columns of the line are written already. */
static void print_rest(const struct page *page, const char *text, int first) {
    text_wrap(page->to, text, first, INDENT + 4);
}

/* --- printing lines outside of triggers --- */

static void print_set(const struct page *page, const struct event *set) {
    char by[64], flag[64], line[LINE_SIZE];
    decisions_text(set, "by", by, sizeof by);
    decisions_text(set, "flag", flag, sizeof flag);
    int used = snprintf(line, sizeof line, "%s: policy %s", decisions_text_owner_name(page, set).s,
                        decisions_policy(set->words[WORD_POLICY]));
    if (*flag) used += snprintf(line + used, sizeof line - (size_t)used, ", by the flag %s", flag);
    if (set->foreign)
        used += snprintf(line + used, sizeof line - (size_t)used, ", %s by %s", *flag ? "seen" : "set",
                         *by ? by : "a program");
    if (set->numbers[NUMBER_PATCHER])
        used += snprintf(line + used, sizeof line - (size_t)used, " on patcher %" PRIu64, set->numbers[NUMBER_PATCHER]);
    if (set->numbers[NUMBER_INNER])
        snprintf(line + used, sizeof line - (size_t)used, " of inner model %" PRIu64, set->numbers[NUMBER_INNER]);
    fputs("Set  ", page->to);
    text_wrap(page->to, line, 5, 5);
}

static void print_elements(const struct page *page, const struct event *event, const char *key, const char *title) {
    struct jsontext list, value;
    char text[512], line[600];
    if (!jsontext_member(event->line, key, &list) || *list.at != '[') return;
    for (size_t next = 0; jsontext_next(list, &next, NULL, &value);) {
        if (!jsontext_string(value, text, sizeof text)) continue;
        snprintf(line, sizeof line, "%s%s", title, text);
        fprintf(page->to, "%*s", INDENT + 2, "");
        print_rest(page, line, INDENT + 2);
    }
}

static void print_lost(const struct page *page, const struct event *lost) {
    char phase[200], line[LINE_SIZE];
    decisions_text(lost, "phase", phase, sizeof phase);
    snprintf(line, sizeof line, "%s is gone, %s", decisions_text_owner_name(page, lost).s,
             *phase ? phase : "at an unknown time");
    fputs("Lost ", page->to);
    text_wrap(page->to, line, 5, 5);
    print_elements(page, lost, "stack", "");
}

/* Appends the names of the other owners that use the memory which was not moved: " (vae, clip)". */
static void add_sharers(const struct page *page, const struct event *refused, char *to, size_t capacity) {
    struct jsontext with, value;
    uint64_t id;
    size_t used = strlen(to);
    bool any = false;
    if (!jsontext_member(refused->line, "with", &with) || *with.at != '[') return;
    for (size_t next = 0; used < capacity && jsontext_next(with, &next, NULL, &value);) {
        struct text_line words;
        const char *name =
            jsontext_number(value, &id) ? image_owner_words(page->image, id, words.s, sizeof words.s) : NULL;
        if (!name) continue;
        used += (size_t)snprintf(to + used, capacity - used, "%s%s", any ? ", " : " (", text_fit(name, NAME_COLUMNS).s);
        any = true;
    }
    if (any && used < capacity) snprintf(to + used, capacity - used, ")");
}

/* The text about a refused move: "not moved: the disk is full, 128.0 MiB". */
static struct text_line refusal_text(const struct page *page, const struct event *refused) {
    struct text_line line;
    char move[8], because[400];
    decisions_text(refused, "move", move, sizeof move);
    decisions_text(refused, "because", because, 200);
    add_sharers(page, refused, because, sizeof because);
    snprintf(line.s, sizeof line.s, "not %s: %s, %s", strcmp(move, "back") ? "moved" : "brought back",
             *because ? because : "for an unknown reason", text_size(refused->numbers[NUMBER_BYTES]).s);
    return line;
}

/* Prints a refused move that a request or a call of the program began. Refused moves that a decision began are printed
 * with their trigger. */
static void print_refused(const struct page *page, const struct event *refused) {
    char line[LINE_SIZE];
    snprintf(line, sizeof line, "%s: %s", decisions_text_owner_name(page, refused).s, refusal_text(page, refused).s);
    fputs("Refused  ", page->to);
    text_wrap(page->to, line, 9, 9);
}

static void print_other(const struct page *page, const struct event *event) {
    char line[LINE_SIZE];
    snprintf(line, sizeof line, "%.*s", (int)event->line.length, event->line.at);
    fputs("Also ", page->to);
    text_wrap(page->to, line, 5, 5);
}

/* --- printing a trigger --- */

/* The events from the first line of a trigger up to the last line before the next trigger. Some of these events may
 * belong to no trigger. */
struct span {
    const struct event *first, *end;
    size_t trigger;
};

static struct span span_of(const struct page *page, size_t index) {
    size_t end = index + 1 < page->decisions->trigger_count ? page->decisions->triggers[index + 1].event
                                                            : page->decisions->event_count;
    return (struct span){page->decisions->events + page->decisions->triggers[index].event,
                         page->decisions->events + end, index + 1};
}

static const struct event *event_find(const struct span *span, enum event_kind kind, uint64_t owner) {
    for (const struct event *event = span->first; event < span->end; event++)
        if (event->kind == kind && event->trigger == span->trigger && event->numbers[NUMBER_OWNER] == owner)
            return event;
    return NULL;
}

/* The READ of a trigger for an owner. It is in the trigger's span, or else between the previous ACT and the span. NULL:
 * there is none. */
static const struct event *find_read(const struct page *page, const struct span *span, uint64_t owner) {
    const struct event *last = event_find(span, EVENT_READ, owner);
    for (const struct event *event = span->first;
         !last && event-- > page->decisions->events && event->kind != EVENT_ACT;)
        if (event->kind == EVENT_READ && event->trigger == span->trigger && event->numbers[NUMBER_OWNER] == owner)
            last = event;
    return last;
}

static void decisions_text_print_head(const struct page *page, const struct event *begin) {
    char reason[32], words[256], line[400];
    decisions_text(begin, "reason", reason, sizeof reason);
    decisions_text(begin, "text", words, sizeof words);
    for (char *c = reason; *c; c++)
        if (*c == '_') *c = ' ';
    snprintf(line, sizeof line, "%s%s%s%s", *reason ? reason : "no reason", *words ? " (" : "", words,
             *words ? ")" : "");
    fprintf(page->to, "%sTrigger %" PRIu64 ": %s, ", page->some ? "\n" : "", begin->numbers[NUMBER_TRIGGER],
            text_fit(line, 40).s);
    print_when(page, begin);
    fputc('\n', page->to);
}

static const char *why_text(const struct event *decision) {
    static const char *const texts[] = {[MEMSTOW_WHY_NOTHING_SAID] = "no policy was set, which counts as keep",
                                        [MEMSTOW_WHY_POLICY] = "",
                                        [MEMSTOW_WHY_IN_USE] = "not now: it is in use, a scope of it is open",
                                        [MEMSTOW_WHY_PRESSURE] = "stowed because memory was short",
                                        [MEMSTOW_WHY_EMPTY] = "it has nothing",
                                        [MEMSTOW_WHY_RETIRED] = "the owner is gone: it left this memory",
                                        [MEMSTOW_WHY_NOT_NEEDED] = "not now: enough was found before its turn",
                                        [MEMSTOW_WHY_CANNOT] = "it cannot be moved",
                                        [MEMSTOW_WHY_RECENT] = "not now: it was used lately",
                                        [POLICY_WHY_RESCUE] = "stowed because a device had no memory left"};
    uint8_t why = decision->words[WORD_WHY];
    return why > 0 && why < sizeof texts / sizeof *texts ? texts[why] : "for a reason that is not known here";
}

/* Prints why a decision was made: "policy free, found by parent; not now: it is in use". `read`: the READ that found
 * the policy; NULL: none. */
static void print_reason(const struct page *page, const struct event *decision, const struct event *read) {
    char rule[32] = "", because[200] = "", line[LINE_SIZE];
    size_t used = 0;
    if (read) {
        decisions_text(read, "rule", rule, sizeof rule);
        decisions_text(read, "because", because, sizeof because);
    }
    if (decision->words[WORD_WHY] != MEMSTOW_WHY_NOTHING_SAID || *rule)
        used = (size_t)snprintf(line, sizeof line, "policy %s",
                                decisions_policy(read ? read->words[WORD_POLICY] : decision->words[WORD_POLICY]));
    if (*rule) used += (size_t)snprintf(line + used, sizeof line - used, ", found by %s", rule);
    if (read && read->words[WORD_RULE] == RULE_FLAG && read->numbers[NUMBER_FROM])
        used += (size_t)snprintf(line + used, sizeof line - used, " on object %" PRIu64, read->numbers[NUMBER_FROM]);
    if (read && read->words[WORD_INSTEAD] != WORD_NONE)
        used += (size_t)snprintf(line + used, sizeof line - used, ", %s instead",
                                 decisions_policy(read->words[WORD_INSTEAD]));
    if (*because) used += (size_t)snprintf(line + used, sizeof line - used, ": %s", because);
    const char *why = why_text(decision);
    snprintf(line + used, sizeof line - used, "%s%s", used && *why ? "; " : "", why);
    fprintf(page->to, "%*s", INDENT, "");
    print_rest(page, line, INDENT);
}

static bool remaining_is(const struct event *remaining, const char *wanted) {
    char why[32];
    decisions_text(remaining, "why", why, sizeof why);
    return strcmp(why, wanted) == 0;
}

static const char *remaining_text(const struct event *remaining) {
    if (remaining_is(remaining, "alive")) return "the program still holds this memory";
    return remaining_is(remaining, "refused") ? "it was not moved" : NULL;
}

/* Whether the decision is about memory that a retired owner left. Such a decision has the category "blocked", although
 * nothing was to be put away. So the text says "left behind" instead. */
static bool is_left_behind(const struct event *decision, const struct event *category) {
    return decision->words[WORD_WHY] == MEMSTOW_WHY_RETIRED && category &&
           category->words[WORD_CATEGORY] == POLICY_BLOCKED;
}

static void print_change(const struct page *page, uint64_t before, uint64_t after) {
    if (before == after)
        fputs(text_size(after).s, page->to);
    else
        fprintf(page->to, "%s before, %s left", text_size(before).s, text_size(after).s);
}

static void print_outcome(const struct page *page, const struct event *decision, const struct event *category) {
    const uint64_t *numbers = category->numbers;
    uint64_t stowed = numbers[NUMBER_STOWED], out = numbers[NUMBER_DEVICE_STOWED];
    uint64_t in_files = stowed > out ? stowed - out : 0;
    bool has_device = numbers[NUMBER_DEVICE_BEFORE] || numbers[NUMBER_DEVICE_AFTER];
    bool has_host = numbers[NUMBER_BEFORE] || numbers[NUMBER_AFTER] || !has_device;
    bool left = is_left_behind(decision, category);
    char error[32];
    fprintf(page->to, "%s, ", left ? "left behind" : decisions_category(category->words[WORD_CATEGORY]));
    if (has_host) print_change(page, numbers[NUMBER_BEFORE], numbers[NUMBER_AFTER]);
    if (in_files) fprintf(page->to, ", %s in files", text_size(in_files).s);
    if (has_device) {
        fputs(has_host ? "; in devices " : "in devices ", page->to);
        print_change(page, numbers[NUMBER_DEVICE_BEFORE], numbers[NUMBER_DEVICE_AFTER]);
    }
    if (out) fprintf(page->to, ", %s of it moved to the process's memory", text_size(out).s);
    decisions_text(category, "error", error, sizeof error);
    if (*error) fprintf(page->to, ", %s", text_fit(error, 20).s);
}

/* Prints the moves of an owner that were refused in this trigger. False: there were none. */
static bool print_refusals(const struct page *page, const struct span *span, uint64_t owner) {
    bool any = false;
    for (const struct event *event = span->first; event < span->end; event++) {
        if (event->kind != EVENT_REFUSED || event->trigger != span->trigger || event->numbers[NUMBER_OWNER] != owner)
            continue;
        fprintf(page->to, "%*s", INDENT, "");
        print_rest(page, refusal_text(page, event).s, INDENT);
        any = true;
    }
    return any;
}

static void print_plan(const struct page *page, const struct event *decision) {
    uint64_t of_devices = decision->numbers[NUMBER_DEVICE_BYTES];
    fprintf(page->to, "to be done: %s, %s", decisions_policy(decision->words[WORD_ACTION]),
            text_size(decision->numbers[NUMBER_BYTES]).s);
    if (of_devices) fprintf(page->to, " and %s in devices", text_size(of_devices).s);
}

static void print_owner(const struct page *page, const struct span *span, const struct event *decision) {
    uint64_t owner = decision->numbers[NUMBER_OWNER];
    const struct event *category = event_find(span, EVENT_CATEGORY, owner),
                       *remaining = event_find(span, EVENT_REMAINING, owner);
    const char *left = remaining ? remaining_text(remaining) : NULL;
    fprintf(page->to, "  %s\n%*s", decisions_text_owner_name(page, decision).s, INDENT, "");
    if (category)
        print_outcome(page, decision, category);
    else if (decision->words[WORD_WHY] == MEMSTOW_WHY_EMPTY)
        fputs("empty", page->to);
    else
        print_plan(page, decision);
    fputc('\n', page->to);
    print_reason(page, decision, find_read(page, span, owner));
    bool refused = print_refusals(page, span, owner);
    if (left && !(refused && remaining_is(remaining, "refused"))) fprintf(page->to, "%*s%s\n", INDENT, "", left);
    for (const struct event *event = span->first; event < span->end; event++)
        if (event->kind == EVENT_HELD && event->numbers[NUMBER_OWNER] == owner)
            print_elements(page, event, "holders", "held by ");
}

static uint64_t count_left_behind(const struct span *span) {
    uint64_t count = 0;
    for (const struct event *event = span->first; event < span->end; event++)
        if (event->kind == EVENT_DECISION && event->trigger == span->trigger)
            count += is_left_behind(event, event_find(span, EVENT_CATEGORY, event->numbers[NUMBER_OWNER]));
    return count;
}

static void print_act(const struct page *page, const struct span *span, const struct event *act) {
    const uint64_t *numbers = act->numbers;
    uint64_t left = count_left_behind(span), blocked = numbers[NUMBER_COUNT_BLOCKED];
    char behind[40] = "", devices[100] = "", line[LINE_SIZE];
    if (left) snprintf(behind, sizeof behind, ", %" PRIu64 " left behind", left);
    if (numbers[NUMBER_DEVICE_BEFORE] || numbers[NUMBER_DEVICE_AFTER])
        snprintf(devices, sizeof devices, "; in devices %s before, %s after",
                 text_size(numbers[NUMBER_DEVICE_BEFORE]).s, text_size(numbers[NUMBER_DEVICE_AFTER]).s);
    snprintf(line, sizeof line,
             "%" PRIu64 " kept, %" PRIu64 " stowed, %" PRIu64 " freed, %" PRIu64
             " blocked%s; owners with memory: %" PRIu64 " before, %" PRIu64
             " after; %s before, %s after%s; %s given back in %s",
             numbers[NUMBER_COUNT_KEPT], numbers[NUMBER_COUNT_STOWED], numbers[NUMBER_COUNT_FREED],
             blocked > left ? blocked - left : 0, behind, numbers[NUMBER_MODELS_BEFORE], numbers[NUMBER_MODELS_AFTER],
             text_size(numbers[NUMBER_BEFORE]).s, text_size(numbers[NUMBER_AFTER]).s, devices,
             text_size(numbers[NUMBER_GIVEN]).s, text_duration(numbers[NUMBER_TOOK]).s);
    fputs("  ", page->to);
    text_wrap(page->to, line, 2, 2);
}

static void print_trigger(const struct page *page, size_t index) {
    struct span span = span_of(page, index);
    decisions_text_print_head(page, span.first);
    for (const struct event *event = span.first; event < span.end; event++)
        if (event->kind == EVENT_DECISION && event->trigger == span.trigger) print_owner(page, &span, event);
    if (page->decisions->triggers[index].act)
        print_act(page, &span, &page->decisions->events[page->decisions->triggers[index].act]);
    else if (page->image->running && index + 1 == page->decisions->trigger_count)
        fputs("  It is not finished yet.\n", page->to);
    else
        fputs("  It was not finished.\n", page->to);
}

/* Puts an empty line between a trigger and a line that does not belong to it. */
static void stand_apart(struct page *page) {
    if (page->behind_trigger) fputc('\n', page->to);
    page->behind_trigger = false;
}

static bool is_of_trigger(const struct page *page, const struct event *refused) {
    if (!refused->trigger) return false;
    struct span span = span_of(page, refused->trigger - 1);
    return event_find(&span, EVENT_DECISION, refused->numbers[NUMBER_OWNER]) != NULL;
}

/* Prints a line outside of triggers: a SET, a LOST, a refused move without a decision, or an unknown kind. All other
 * lines are printed with their trigger, or not at all. */
static void print_event(struct page *page, const struct event *event) {
    bool refused = event->kind == EVENT_REFUSED && !is_of_trigger(page, event);
    if (refused || event->kind == EVENT_SET || event->kind == EVENT_LOST || event->kind == EVENT_OTHER)
        stand_apart(page);
    switch (event->kind) {
    case EVENT_SET:
        print_set(page, event);
        break;
    case EVENT_LOST:
        print_lost(page, event);
        break;
    case EVENT_REFUSED:
        if (refused) print_refused(page, event);
        break;
    case EVENT_OTHER:
        print_other(page, event);
        break;
    default:
        break;
    }
}

void decisions_print(const struct decisions *self, const struct image *image, FILE *to) {
    struct page page = {.decisions = self, .image = image, .to = to};
    for (size_t i = 0; i < self->event_count; i++) {
        const struct event *event = &self->events[i];
        if (event->kind == EVENT_TRIGGER && event->trigger && self->triggers[event->trigger - 1].event == i) {
            print_trigger(&page, event->trigger - 1);
            page.behind_trigger = true;
        } else {
            print_event(&page, event);
        }
        page.some = true;
    }
}
