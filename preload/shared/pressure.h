/* pressure.h — is memory short? Compares the user's setting with what the kernel says of the cgroup and the machine.
 * In: MEMSTOW_PRESSURE and MEMSTOW_IDLE; files of /proc and /sys, each read anew. Out: bytes to be given back. No
 * descriptor stays open. Functions of texts and numbers are pure; the command reads the settings with them, too. */
#ifndef MEMSTOW_PRESSURE_H
#define MEMSTOW_PRESSURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

struct pressure_wishes {
    bool any;              /* one of the next three is set */
    uint32_t most_used;    /* percent of the memory; 0: not set */
    uint64_t least_left;   /* bytes; 0: not set */
    uint32_t most_stalled; /* hundredths of a percent of the time; 0: not set */
    bool take_kept;
    uint64_t idle_ns; /* 0: not set */
};

/* "90%", "4G", "psi:20%", "kept", or several of them with commas. False: it is anything else, and nothing is set. */
bool pressure_parse(const char *text, struct pressure_wishes *wishes);
/* Seconds, above 0. */
bool pressure_parse_idle(const char *text, struct pressure_wishes *wishes);

/* "64M": bytes, above 0. False, and 0, when it is anything else. */
bool pressure_bytes(const char *text, uint64_t *bytes);

/* Reads the environment. "" counts as not set, and so does what cannot be read; returns which of the two could not. */
enum { PRESSURE_UNREADABLE = 1, PRESSURE_IDLE_UNREADABLE = 2 };
uint32_t pressure_wish(const char *pressure, const char *idle);
const struct pressure_wishes *pressure_wishes(void);

/* Bytes to be given back now, and why; 0: nothing. */
uint64_t pressure_needed(const char **text);
/* Bytes that the machine, and each cgroup with a limit, have left. */
uint64_t pressure_left(void);

/* --- the texts of the kernel --- */

#define PRESSURE_NO_LIMIT UINT64_MAX
/* A file with one number, or "max": PRESSURE_NO_LIMIT, as is what version 1 has for it. False: neither. */
bool pressure_number(const char *text, uint64_t *number);
/* "KEY NUMBER" or "KEY: NUMBER kB", each on a line, in bytes. False: it is not there. */
bool pressure_field(const char *text, const char *key, uint64_t *bytes);
/* "some avg10=" of a file of PSI, in hundredths of a percent; 0: not there. */
uint32_t pressure_stalled(const char *text);
/* From /proc/self/cgroup, the path of the cgroup that limits memory, below its mount; false: none. */
bool pressure_cgroup(const char *text, char *path, size_t room, bool *version1);

/* What is missing where so much of so much is in use. */
uint64_t pressure_missing(const struct pressure_wishes *wishes, uint64_t limit, uint64_t used);

#pragma GCC visibility pop

#endif
