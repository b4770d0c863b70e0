/* If a thread is left, the log says which functions started it, as the ledger has recorded. A record that is older than
 * the thread belongs to an earlier thread with the same id, and is not used. The ages of the record and of the thread
 * are read one after the other. A pause between the two readings must not hide a record that belongs to the thread. */
#include <criterion/criterion.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "preload/shared/os.h"
#include "preload/shutdown/shutdown_audit.h"

enum { PAUSE_MS = 100, OLDER_MS = 1000 };

static uint64_t began_ns;    /* of the thread that runs the test */
static uint64_t older_by_ns; /* how much older the record is than the thread */

static bool yes(void) { return true; }
static uint64_t no_bytes(void) { return 0; }

/* A double of the ledger. It answers late, as on a busy machine. */
static bool thread_after_a_pause(uint32_t tid, struct shutdown_origin *out) {
    cr_assert_eq(tid, os_tid());
    usleep(PAUSE_MS * 1000);
    *out = (struct shutdown_origin){.age_ns = os_now() - began_ns + older_by_ns, .by = "begin work.py:7"};
    return true;
}

static const struct shutdown_ledger paused = {yes, yes, NULL, thread_after_a_pause, no_bytes};

static const char *line_about_this_thread(struct line *line) {
    began_ns = os_now() - shutdown_log_age_ms(os_start_ticks(os_tid())) * 1000000;
    shutdown_audit_ask(&paused);
    shutdown_log_line(line, "left thread");
    shutdown_audit_thread(line, os_tid());
    return line->text;
}

Test(shutdown_audit, a_pause_does_not_hide_who_started_a_thread) {
    struct line line = {0};
    cr_assert(strstr(line_about_this_thread(&line), "\"started_by\":\"begin work.py:7\""), "%s", line.text);
}

Test(shutdown_audit, a_record_of_an_earlier_thread_is_not_taken) {
    struct line line = {0};
    older_by_ns = OLDER_MS * UINT64_C(1000000);
    cr_assert(strstr(line_about_this_thread(&line), "\"age_ms\":"), "%s", line.text);
    cr_assert(!strstr(line.text, "started_by"), "%s", line.text);
}
