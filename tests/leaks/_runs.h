/* _runs.h — runs and the scope of one node, for the programs of this room, which are not linked with the library. */
#ifndef RUNS_H
#define RUNS_H

#include <memstow.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define CALL(name) (*(decltype_##name)dlsym(RTLD_DEFAULT, #name))
typedef int64_t (*decltype_memstow_owner_open)(uint32_t, const char *, const char *, uint64_t, uint64_t);
typedef int32_t (*decltype_memstow_scope_enter)(uint32_t);
typedef int32_t (*decltype_memstow_scope_leave)(uint32_t);
typedef int64_t (*decltype_memstow_run_begin)(const char *);
typedef int32_t (*decltype_memstow_run_end)(uint32_t, uint32_t);

static uint32_t run_on, node;

static inline void begin_run(int number) {
    char name[32];
    snprintf(name, sizeof name, "run %d", number);
    run_on = (uint32_t)CALL(memstow_run_begin)(name);
}

static inline void end_run(void) { CALL(memstow_run_end)(run_on, MEMSTOW_OK); }

static inline void enter(const char *name) {
    node = (uint32_t)CALL(memstow_owner_open)(MEMSTOW_NODE, name, "", 1, 1);
    CALL(memstow_scope_enter)(node);
}

static inline void leave(void) { CALL(memstow_scope_leave)(node); }

static inline int wait(const char *word) {
    puts(word);
    fflush(stdout);
    return getchar() == EOF;
}

/* PROGRAM RUNS [READINGS]: as in _plants.py. Work for a reading is done outside of runs, before an empty run. */
static inline int do_runs(int count, char **arguments, void (*work)(int)) {
    int runs = count > 1 ? atoi(arguments[1]) : 1, readings = count > 2 ? atoi(arguments[2]) : 0;
    for (int run = 0; run < runs; run++) {
        begin_run(run);
        work(run);
        end_run();
    }
    if (wait("ready")) return 1;
    for (int run = runs; run < runs + readings; run++) {
        work(run);
        begin_run(run);
        end_run();
        if (wait("step")) return 1;
    }
    return 0;
}

#endif
