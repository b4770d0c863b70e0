/* kin_system.h — a test double of /proc: the processes of a system, for tests of who is kin. The test wraps os_open,
 * os_read, os_each_name and os_pid. unit/shutdown_kin counts the basic blocks that a search for kin executes. Functions
 * with NOT_COUNTED are left out of that count. */
#ifndef MEMSTOW_TESTS_KIN_SYSTEM_H
#define MEMSTOW_TESTS_KIN_SYSTEM_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "preload/shutdown/shutdown_kin.h"

enum { SELF = 40000, START = 1000, SYSTEM_MOST = 16000, NO_FILE = 1 << 30 };

#if defined(__clang__)
#define NOT_COUNTED __attribute__((no_sanitize("coverage")))
#else
#define NOT_COUNTED __attribute__((no_sanitize_coverage))
#endif

static struct one { uint32_t pid, parent, group, session, start; } all[SYSTEM_MOST];
static uint32_t all_count;

int __wrap_os_open(const char *path, int flags, int mode);
long __wrap_os_read(int fd, void *to, size_t length);
void __wrap_os_each_name(const char *folder, bool (*visit)(void *context, const char *name), void *context);
uint32_t __wrap_os_pid(void);

NOT_COUNTED static int place_in_all(uint32_t pid) {
    for (uint32_t i = 0; i < all_count; i++)
        if (all[i].pid == pid) return (int)i;
    return -1;
}

/* Returns a descriptor that has no file; it tells the process's position in the list. No environment can be read. */
static int last_place;
NOT_COUNTED int __wrap_os_open(const char *path, int flags, int mode) {
    uint32_t pid = (uint32_t)atoi(path + strlen("/proc/"));
    (void)flags, (void)mode;
    if (!strstr(path, "/stat")) return -EACCES;
    if (last_place < (int)all_count && all[last_place].pid == pid) return NO_FILE + last_place;
    int place = place_in_all(pid);
    return place < 0 ? -ENOENT : NO_FILE + place;
}

NOT_COUNTED long __wrap_os_read(int fd, void *to, size_t length) {
    const struct one *one = &all[fd - NO_FILE];
    return snprintf(to, length, "%u (x) S %u %u %u 0 -1 0 0 0 0 0 0 0 0 0 0 0 1 0 %u 0 10 0", one->pid, one->parent,
                    one->group, one->session, one->start);
}

NOT_COUNTED void __wrap_os_each_name(const char *folder, bool (*visit)(void *context, const char *name),
                                     void *context) {
    char name[16];
    (void)folder;
    for (last_place = 0; last_place < (int)all_count; last_place++) {
        snprintf(name, sizeof name, "%u", all[last_place].pid);
        if (!visit(context, name)) return;
    }
}

uint32_t __wrap_os_pid(void) { return SELF; }

NOT_COUNTED static void begin(void) {
    shutdown_kin_reset();
    all[0] = (struct one){SELF, 1, SELF, SELF, START};
    all_count = 1;
    last_place = 0;
}

NOT_COUNTED static void add(uint32_t pid, uint32_t parent, uint32_t group, uint32_t session, uint32_t start) {
    all[all_count++] = (struct one){pid, parent, group, session, start};
}

#endif
