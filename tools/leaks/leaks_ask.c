/* leaks_ask.c — see leaks_ask.h. */
#include "tools/leaks/leaks_ask.h"
#include "tools/base/duration.h"
#include "tools/base/progress.h"
#include "tools/proc/control_client.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LOOK_MS = 200, ATTEMPTS = 5 };

void leaks_ask_begin(struct leaks_ask *self, pid_t pid, const char *path, double seconds) {
    *self = (struct leaks_ask){.pid = pid, .until_ns = duration_now() + (uint64_t)(seconds * 1e9)};
    if (*path == '/') snprintf(self->path, sizeof self->path, "%s", path);
}

/* A request, and the words that the user sees while the request is carried out. The program takes the request at once,
 * even in the middle of a run, carries it out between two runs, and reports no progress meanwhile. */
struct asking {
    struct leaks_ask *whole;
    const char *words;
};

/* Cancels a request that is late. A program that has not begun with the request drops it. Returns -ETIMEDOUT. */
static int give_up(int fd) {
    struct wire_message message = {.type = WIRE_CANCEL};
    control_send(fd, &message);
    return -ETIMEDOUT;
}

enum { CLOSED = INT_MIN /* the connection was closed before an answer came */ };

/* Waits for the program's answer. Returns the number in the answer, -errno, or CLOSED. */
static int wait_for_answer(struct asking *asking, int fd) {
    struct wire_message answer;
    for (;;) {
        int result = control_receive(fd, &answer, LOOK_MS);
        if (result < 0) return result == -ECONNRESET ? CLOSED : result;
        if (result > 0 && answer.type == WIRE_DONE) {
            snprintf(asking->whole->text, sizeof asking->whole->text, "%s", answer.text);
            /* the program has an older version of memstow, which does not know the request */
            if (answer.number == -EPROTO) return -ENOTSUP;
            return answer.number > INT_MAX ? INT_MAX : (int)answer.number;
        }
        if (duration_now() > asking->whole->until_ns) return give_up(fd);
        progress_say("process %d: %s", (int)asking->whole->pid, asking->words);
    }
}

static int ask_once(struct asking *asking, const struct wire_message *message) {
    char error[256];
    int fd = control_connect(asking->whole->pid, asking->whole->path, error, sizeof error);
    if (fd < 0) return -ENOTSUP;
    int result = control_send(fd, message) == 0 ? wait_for_answer(asking, fd) : CLOSED;
    close(fd);
    return result;
}

static int request_ask(struct leaks_ask *self, const struct wire_message *message, const char *words) {
    struct asking asking = {.whole = self, .words = words};
    progress_begin();
    if (!*self->path) return -ENOTSUP;
    for (int i = 0; i < ATTEMPTS; i++) {
        int result = ask_once(&asking, message);
        if (result != CLOSED) return result;
    }
    return -ENOTSUP;
}

int leaks_ask_collect(struct leaks_ask *self) {
    struct wire_message message = {.type = WIRE_COLLECT};
    return request_ask(self, &message, "waiting until it has collected garbage between two runs");
}

/* --- sending call stacks, as many as fit into a message --- */

static int send_stacks(struct leaks_ask *self, const char *word, uint32_t before, const char *stacks) {
    struct wire_message message = {.type = WIRE_HOLDERS};
    snprintf(message.text, sizeof message.text, "%s %" PRIx32 "%s", word, before, stacks);
    return request_ask(self, &message, "waiting until it has looked for holders between two runs");
}

/* Writes " PATH=PLACE,PLACE…": the path of the first stack, and the places of the stacks that have this path, at most
 * 8. Returns how many stacks these are. If there are more, the next word repeats the path. */
static size_t write_path(char *to, size_t capacity, const struct leaks_ask_stack *stacks, size_t count) {
    enum { PLACES = 8 };
    size_t same = 1, used = (size_t)snprintf(to, capacity, " %" PRIx64 "=%" PRIx32, stacks->path, stacks->place);
    for (; same < count && same < PLACES && stacks[same].path == stacks->path; same++)
        used += (size_t)snprintf(to + used, capacity - used, ",%" PRIx32, stacks[same].place);
    return same;
}

static int ask_for_one_search(struct leaks_ask *self, const struct leaks_ask_stack *stacks, size_t count,
                              uint32_t before, bool meant) {
    enum { MOST = WIRE_TEXT - 16 };
    char all[MOST] = "", one[128];
    for (size_t i = 0; i < count;) {
        i += write_path(one, sizeof one, &stacks[i], count - i);
        if (strlen(all) + strlen(one) >= sizeof all) {
            int result = send_stacks(self, "more", before, all);
            if (result < 0) return result;
            all[0] = 0;
        }
        strcat(all, one);
    }
    return send_stacks(self, meant ? "find" : "offer", before, all);
}

/* How many stacks the first LEAKS_ASK_PATHS paths have. */
static size_t stacks_of_one_search(const struct leaks_ask_stack *stacks, size_t count) {
    size_t paths = 0, i = 0;
    for (; i < count; i++)
        if ((i == 0 || stacks[i].path != stacks[i - 1].path) && ++paths > LEAKS_ASK_PATHS) break;
    return i;
}

int leaks_ask_holders(struct leaks_ask *self, const struct leaks_ask_stack *stacks, size_t count, uint32_t before,
                      bool meant) {
    int found = 0;
    for (size_t i = 0, some; i < count; i += some) {
        some = stacks_of_one_search(&stacks[i], count - i);
        int result = ask_for_one_search(self, &stacks[i], some, before, meant);
        if (result < 0) return found ? found : result;
        found += result;
        if (!meant || !result) break;
    }
    return found;
}
