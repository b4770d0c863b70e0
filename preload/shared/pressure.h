/* pressure.h — finds out whether memory is short: compares the user's settings with the kernel's figures for the cgroup
 * and the machine.
 * In: MEMSTOW_PRESSURE and MEMSTOW_IDLE; files of /proc and /sys, read each time. Out: how many bytes are to be given
 * back. No descriptor stays open. Functions on texts and numbers are pure; the command also uses them to check
 * settings. */
#ifndef MEMSTOW_PRESSURE_H
#define MEMSTOW_PRESSURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

struct pressure_wishes {
    bool any;              /* most_used, least_left or most_stalled is set */
    uint32_t most_used;    /* memory is short if more than this is in use, in percent; 0: not set */
    uint64_t least_left;   /* memory is short if less than this is left, in bytes; 0: not set */
    uint32_t most_stalled; /* memory is short if tasks wait for memory at least this part of the time, in hundredths of
                              a percent; 0: not set */
    bool take_kept;        /* owners with the policy keep, or without a policy, may be stowed, too */
    uint64_t idle_ns;      /* MEMSTOW_IDLE: how long an owner must be unused to count as idle; 0: not set */
};

/* Reads a text like that of MEMSTOW_PRESSURE: one or more of "90%", "4G", "psi:20%" and "kept", with commas between;
 * "kept" alone is wrong. If the text is anything else, returns false and sets all fields but idle_ns to 0. */
bool pressure_parse(const char *text, struct pressure_wishes *wishes);
/* Reads a text like that of MEMSTOW_IDLE: whole seconds, above 0. False: the text is anything else, and idle_ns is
 * 0. */
bool pressure_parse_idle(const char *text, struct pressure_wishes *wishes);

/* Reads a number of bytes above 0, such as "64M". If the text is anything else, returns false and sets *bytes to 0. */
bool pressure_bytes(const char *text, uint64_t *bytes);

enum { PRESSURE_UNREADABLE = 1, PRESSURE_IDLE_UNREADABLE = 2 };
/* Stores the settings of MEMSTOW_PRESSURE and MEMSTOW_IDLE for this process. "" counts as not set, and so does an
 * unreadable setting. Returns 0, or PRESSURE_UNREADABLE, PRESSURE_IDLE_UNREADABLE or both, as bits. */
uint32_t pressure_wish(const char *pressure, const char *idle);
/* The settings that pressure_wish has stored. */
const struct pressure_wishes *pressure_wishes(void);

/* How many bytes are to be given back now; 0: memory is not short. *text gets the reason in words. */
uint64_t pressure_needed(const char **text);
/* The bytes that are left: in the machine, in the cgroup, or in one of its parents, whichever has the fewest. A cgroup
 * without a limit does not count. Returns PRESSURE_NO_LIMIT if nothing could be read. Returns 0 also if there is no
 * memory for reading the figures. */
uint64_t pressure_left(void);

/* --- reading the kernel's texts --- */

#define PRESSURE_NO_LIMIT UINT64_MAX
/* Reads the text of a file that has one number or the word "max". "max" gives PRESSURE_NO_LIMIT, and so does a very
 * large number, which version 1 of cgroups has instead of "max". False: the text has another form. */
bool pressure_number(const char *text, uint64_t *number);
/* The value of a line "KEY NUMBER" or "KEY: NUMBER kB", in bytes. False: there is no such line. */
bool pressure_field(const char *text, const char *key, uint64_t *bytes);
/* The number after "some avg10=" in a file of PSI (the kernel's figures for stalled tasks), in hundredths of a percent;
 * 0: there is no such number. */
uint32_t pressure_stalled(const char *text);
/* Finds the path of the memory cgroup, below its mount, in the text of /proc/self/cgroup. *version1 tells whether
 * that cgroup is of version 1. False: the text names no memory cgroup. */
bool pressure_cgroup(const char *text, char *path, size_t capacity, bool *version1);

/* How many bytes must be given back to keep both settings, most_used and least_left, if `used` of `limit` bytes are in
 * use. */
uint64_t pressure_missing(const struct pressure_wishes *wishes, uint64_t limit, uint64_t used);

#pragma GCC visibility pop

#endif
