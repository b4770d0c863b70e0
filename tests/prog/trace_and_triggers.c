// The entry points for triggers and the trace give the right answers, also to invalid arguments, and keep errno. A
// forked child has a trace of its own.
#include "expect.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "memstow.h"

static __typeof__(memstow_trace) *trace;
static __typeof__(memstow_decisions) *decisions;
static __typeof__(memstow_trigger_begin) *trigger_begin;
static __typeof__(memstow_trigger_end) *trigger_end;
static __typeof__(memstow_trigger) *trigger;
static __typeof__(memstow_error) *error;
static __typeof__(memstow_owner_open) *owner_open;
static __typeof__(memstow_owner_policy) *owner_policy;

static char *const nowhere = (char *)8;
static char *page_end; /* there is nothing behind it */

#define FAILS(call, code)                                                                                              \
    do {                                                                                                               \
        errno = 1234;                                                                                                  \
        MUST((call) == -(code));                                                                                       \
        MUST(errno == 1234 && *error());                                                                               \
    } while (0)

static void find_all(void) {
    trace = dlsym(RTLD_DEFAULT, "memstow_trace");
    decisions = dlsym(RTLD_DEFAULT, "memstow_decisions");
    trigger_begin = dlsym(RTLD_DEFAULT, "memstow_trigger_begin");
    trigger_end = dlsym(RTLD_DEFAULT, "memstow_trigger_end");
    trigger = dlsym(RTLD_DEFAULT, "memstow_trigger");
    error = dlsym(RTLD_DEFAULT, "memstow_error");
    owner_open = dlsym(RTLD_DEFAULT, "memstow_owner_open");
    owner_policy = dlsym(RTLD_DEFAULT, "memstow_owner_policy");
}

static void make_page(void) {
    char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(pages + 4096, 4096);
    page_end = pages + 4096;
}

static void lines(void) {
    char text[5000], copy[8192];
    uint64_t next = 77;
    MUST(decisions(copy, sizeof copy, 0, &next) == 0 && next == 0);
    errno = 1234;
    MUST(trace("{\"kind\":\"TEST\"}") == 0 && trace("{\"kind\":\n\"TEST\"}") == 0 && errno == 1234);
    FAILS(trace(""), EINVAL);
    FAILS(trace(NULL), EINVAL);
    FAILS(trace("[1]"), EINVAL);
    FAILS(trace("{\"n\":1}"), EINVAL);
    FAILS(trace(nowhere), EFAULT);
    memset(text, ' ', sizeof text);
    memcpy(text, "{}", 2);
    text[sizeof text - 1] = 0;
    FAILS(trace(text), EINVAL);
    text[4000] = 0;
    MUST(trace(text) == 0);
    memcpy(page_end - 3, "{}", 3);
    MUST(trace(page_end - 3) == 0);
    FAILS(trace(memset(page_end - 2, '{', 2)), EFAULT);
    int64_t length = decisions(copy, sizeof copy, 0, &next);
    MUST(length > 0 && next == 5 && copy[length - 1] == '\n' && strncmp(copy, "{\"n\":1,\"t\":", 11) == 0);
    copy[length] = 0;
    int count = 0;
    for (char *at = copy; (at = strchr(at, '\n')); at++) count++;
    MUST(count == 4 && strstr(copy, ",\"kind\": \"TEST\"}"));
    MUST(decisions(copy, sizeof copy, next, &next) == 0 && next == 5);
    MUST(decisions(copy, (uint64_t)length - 1, 0, &next) > 0 && next == 4);
    MUST(decisions(copy, UINT64_MAX, 3, NULL) > 0 && strncmp(copy, "{\"n\":3,", 7) == 0);
    FAILS(decisions(copy, 5, 0, &next), ENOSPC);
    FAILS(decisions(NULL, 100, 0, &next), EFAULT);
    FAILS(decisions(nowhere, 100, 0, &next), EFAULT);
    FAILS(decisions(page_end - 10, 100, 0, &next), EFAULT);
    FAILS(decisions(copy, 100, 0, (uint64_t *)(void *)nowhere), EFAULT);
}

static void triggers(void) {
    struct memstow_decision out[4];
    errno = 1234;
    MUST(trigger(MEMSTOW_RUN_ENDED, "ok") >= 0 && trigger(MEMSTOW_REQUEST, NULL) >= 0);
    MUST(trigger_begin(MEMSTOW_PRESSURE, "short", 1, out, 4, sizeof *out) == 0 && errno == 1234);
    FAILS(trigger_begin(MEMSTOW_REQUEST, "", 0, out, 4, sizeof *out), EBUSY);
    FAILS(trigger(MEMSTOW_REQUEST, ""), EBUSY);
    MUST(trigger_end() == 0);
    FAILS(trigger_end(), ENOENT);
    FAILS(trigger(0, ""), EINVAL);
    FAILS(trigger(99, ""), EINVAL);
    FAILS(trigger(MEMSTOW_REQUEST, nowhere), EFAULT);
    FAILS(trigger_begin(MEMSTOW_REQUEST, nowhere, 0, NULL, 0, 0), EFAULT);
    FAILS(trigger_begin(MEMSTOW_REQUEST, "", 0, out, 4, 0), EINVAL);
    MUST(trigger_begin(MEMSTOW_REQUEST, "", 0, NULL, 0, 0) == 0 && trigger_end() == 0);
}

/* The program's structure of a decision is larger or smaller than the library's. Nothing is written beyond the
 * program's array. */
static void sizes(void) {
    struct {
        struct memstow_decision decision;
        uint64_t later;
    } larger[3];
    uint32_t smaller[5];
    int64_t ids[2] = {owner_open(MEMSTOW_MODEL, "a", "", 0, 0), owner_open(MEMSTOW_CUSTOM, "b", "", 0, 0)};
    MUST(ids[0] > 0 && ids[1] > ids[0] && owner_policy((uint32_t)ids[1], MEMSTOW_FREE, 0) == 0);
    memset(larger, 0x55, sizeof larger);
    MUST(trigger_begin(MEMSTOW_REQUEST, "", 0, &larger[0].decision, 2, sizeof larger[0]) == 2 && trigger_end() == 0);
    for (int i = 0; i < 2; i++)
        MUST(larger[i].decision.owner == ids[i] && larger[i].decision.why == MEMSTOW_WHY_EMPTY &&
             larger[i].later == 0x5555555555555555);
    MUST(larger[0].decision.policy == MEMSTOW_KEEP && larger[1].decision.policy == MEMSTOW_FREE);
    MUST(larger[2].decision.owner == 0x55555555);
    memset(smaller, 0x55, sizeof smaller);
    MUST(trigger_begin(MEMSTOW_REQUEST, "", 0, (void *)smaller, 2, 2 * sizeof *smaller) == 2 && trigger_end() == 0);
    MUST(smaller[0] == ids[0] && smaller[2] == ids[1] && smaller[4] == 0x55555555);
    FAILS(trigger_begin(MEMSTOW_REQUEST, "", 0, (void *)nowhere, 2, sizeof larger[0].decision), EFAULT);
    MUST(trigger(MEMSTOW_REQUEST, "that one is over") == 0);
}

static void forked(void) {
    char copy[400];
    uint64_t next;
    int status;
    MUST(trigger_begin(MEMSTOW_REQUEST, "", 0, NULL, 0, 0) >= 0);
    pid_t child = fork();
    if (child == 0) {
        MUST(decisions(copy, sizeof copy, 0, &next) == 0 && next == 0);
        FAILS(trigger_end(), ENOENT);
        MUST(trace("{}") == 0 && decisions(copy, sizeof copy, 0, &next) > 0 && next == 2);
        _exit(0);
    }
    MUST(waitpid(child, &status, 0) == child && status == 0);
    MUST(trigger_end() >= 0);
}

int main(void) {
    find_all();
    if (trace) {
        make_page();
        lines();
        triggers();
        if (owner_open && owner_policy) sizes();
        forked();
    }
    say("ok");
    return 0;
}
