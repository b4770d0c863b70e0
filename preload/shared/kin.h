/* kin.h — the rule of kin: which processes are kept together with a process that is to be kept (a survivor).
 * In: the parent, group and session of a process, from /proc/PID/stat. Out: whether one of the three is the survivor.
 * Pure.
 *
 * The kin of a process are the processes that it started, the members of sessions and groups that it began, and their
 * kin in turn. All parts that end processes, or look for processes left behind, keep survivors and their kin: the
 * coordinator, `watch`, `lifecycle` and `reap`. The coordinator also looks for the kin of its own process by this rule.
 * memstow_shutdown.py has the rule in Python, for programs without memstow; tests/unit/kin and tests/ends/kin check the
 * two with the same cases. */
#ifndef MEMSTOW_KIN_H
#define MEMSTOW_KIN_H

#include <stdbool.h>
#include <stdint.h>

struct kin {
    uint32_t parent, group, session;
};

static inline bool kin_with(uint32_t survivor, struct kin kin) {
    return kin.parent == survivor || kin.group == survivor || kin.session == survivor;
}

#endif
