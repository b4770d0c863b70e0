/* watch.h — the state of top: the list of processes, and the watched process with its rows.
 * In: the time, and what keys ask for (enum wish). Out: the state that is to be painted. */
#ifndef MEMSTOW_TOP_WATCH_H
#define MEMSTOW_TOP_WATCH_H

#include "tools/top/curve.h"
#include "tools/top/errand.h"
#include "tools/top/grouping.h"
#include "tools/top/keys.h"
#include "tools/top/names.h"
#include "tools/top/processes.h"
#include "tools/top/search.h"

struct watch {
    struct face face;
    struct processes processes;
    bool watching; /* a process is open */
    struct sampling sampling;
    struct grouping grouping;
    struct names names;
    struct search search;
    struct curve curve;
    struct errand errand;
    uint64_t stack_key;                /* key of the site whose stack is on the screen */
    uint32_t stack[NAMES_FRAMES_MOST]; /* the frames of that stack */
    size_t stack_count;
    uint32_t owner; /* the owner that the question is about */
    size_t picked;  /* rank of the cursor when the rows were last sorted */
    uint64_t picked_key;
    int64_t gained; /* gain of all memory since the previous look */
    char message[400], question[400];
};

/* Opens the process, or for pid 0 the list of processes. Returns 0, or -1 with the reason. */
int watch_begin(struct watch *watch, pid_t pid, char *error, size_t size);
void watch_end(struct watch *watch);
/* Takes a look. An error becomes the message. */
void watch_look(struct watch *watch);
/* Sorts the rows that are on the screen, and keeps the cursor on its row. */
void watch_sort(struct watch *watch);
/* Carries out what a key asked for (enum wish, keys.h). False: the user wants to quit. */
bool watch_wish(struct watch *watch, enum wish wish);
/* Reads the output of the command that runs beside top (errand.h). True: it has ended; its last line is the message. */
bool watch_hear(struct watch *watch);

const struct rows *watch_rows(const struct watch *watch);

#endif
