/* session.c — see session.h. Newer versions of CUPTI have a second generation of functions, which take the subscriber.
 * A client must use only these functions if CUPTI has other clients, too. */
#include "cupti/session.h"

enum { ATTRIBUTE_SOURCE = 14, KINDS = 4 };

static struct session *present; /* the session that has begun; CUPTI's callbacks get no pointer to it */
static cupti_buffer_requested *lend_to;
static cupti_buffer_completed *take_from;
static int enabled[KINDS], enabled_count;

static void lend_v2(uint8_t **buffer, size_t *size, size_t *records, void *more) {
    (void)more;
    lend_to(buffer, size, records);
}

static void take_v2(uint8_t *buffer, size_t size, size_t valid, void *more) {
    (void)more;
    take_from(NULL, 0, buffer, size, valid);
}

/* --- beginning a session --- */

static bool has_second_generation(const struct cupti *cupti) {
#define F(name, parameters)                                                                                            \
    if (!cupti->name) return false;
    CUPTI_FUNCTIONS_V2
#undef F
    return true;
}

/* Becomes a client of CUPTI. If the second generation of functions fails because CUPTI has another client, returns this
 * error. If it fails for another reason, tries the first generation. */
static int session_subscribe(struct session *self, cupti_callback *call) {
    struct cupti_subscriber_wish wish = {.size = sizeof wish,
                                         .name = "memstow",
                                         .other = self->other,
                                         .other_capacity = sizeof self->other,
                                         .several = 1};
    const struct cupti *cupti = self->cupti;
    self->failed = "cuptiSubscribe_v2";
    if (!self->alone && has_second_generation(cupti)) {
        int result = cupti->cuptiSubscribe_v2(&self->subscriber, call, NULL, &wish);
        self->other[SESSION_NAME - 1] = 0;
        self->several = result == CUPTI_OK;
        if (self->several || result == CUPTI_ANOTHER_SUBSCRIBER) return result;
    }
    self->failed = "cuptiSubscribe";
    return cupti->cuptiSubscribe(&self->subscriber, call, NULL);
}

static void ask_for_source(struct session *self) {
    const struct cupti *cupti = self->cupti;
    uint8_t yes = 1;
    size_t size = sizeof yes;
    if (self->several)
        self->has_source =
            cupti->cuptiActivitySetAttribute_v2(self->subscriber, ATTRIBUTE_SOURCE, &size, &yes) == CUPTI_OK;
    else if (cupti->cuptiActivityEnableAllocationSource)
        self->has_source = cupti->cuptiActivityEnableAllocationSource(yes) == CUPTI_OK;
}

/* Buffers belong to a subscriber of CUPTI, so they are handed over after the subscription. */
static int hand_over_buffers(struct session *self) {
    const struct cupti *cupti = self->cupti;
    if (self->several) {
        self->failed = "cuptiActivityRegisterCallbacks_v2";
        return cupti->cuptiActivityRegisterCallbacks_v2(self->subscriber, lend_v2, take_v2);
    }
    self->failed = "cuptiActivityRegisterCallbacks";
    return cupti->cuptiActivityRegisterCallbacks(lend_to, take_from);
}

int session_begin(struct session *self, const struct cupti *cupti, cupti_callback *call, cupti_buffer_requested *lend,
                  cupti_buffer_completed *take) {
    self->cupti = cupti;
    lend_to = lend;
    take_from = take;
    int result = session_subscribe(self, call);
    if (result) return result;
    present = self;
    result = hand_over_buffers(self);
    if (result)
        session_end(self);
    else
        ask_for_source(self);
    return result;
}

/* --- during the session --- */

int session_enable(struct session *self, int kind) {
    int result = self->several ? self->cupti->cuptiActivityEnable_v2(self->subscriber, kind, NULL)
                               : self->cupti->cuptiActivityEnable(kind);
    self->failed = self->several ? "cuptiActivityEnable_v2" : "cuptiActivityEnable";
    if (!result && enabled_count < KINDS) enabled[enabled_count++] = kind;
    return result;
}

int session_enable_call(struct session *self, bool wanted, int domain, uint32_t id) {
    self->failed = "cuptiEnableCallback";
    return self->cupti->cuptiEnableCallback(wanted, self->subscriber, domain, id);
}

int session_next(uint8_t *buffer, size_t valid, void **record) {
    const struct cupti *cupti = present->cupti;
    return present->several ? cupti->cuptiActivityGetNextRecord_v2(present->subscriber, buffer, valid, record)
                            : cupti->cuptiActivityGetNextRecord(buffer, valid, record);
}

size_t session_dropped(struct session *self, cupti_context context, uint32_t stream) {
    size_t dropped = 0;
    int result = self->several
                     ? self->cupti->cuptiActivityGetNumDroppedRecords_v2(self->subscriber, context, stream, &dropped)
                     : self->cupti->cuptiActivityGetNumDroppedRecords(context, stream, &dropped);
    return result == CUPTI_OK ? dropped : 0;
}

void session_end(struct session *self) {
    while (enabled_count) {
        int kind = enabled[--enabled_count];
        if (self->several)
            self->cupti->cuptiActivityDisable_v2(self->subscriber, kind, NULL);
        else
            self->cupti->cuptiActivityDisable(kind);
    }
    self->cupti->cuptiUnsubscribe(self->subscriber);
}
