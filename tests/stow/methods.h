/* methods.h — shared by the programs of cases: the methods of moving, and memory that was moved by one of them. */
#ifndef METHODS_H
#define METHODS_H

#include "moving.h"

enum { LENGTH = 24 * MIB };

__attribute__((unused)) static const struct stow_options by_move = {.method = STOW_BY_MOVE},
                                                         by_remap = {.method = STOW_BY_REMAP, .idle = true},
                                                         by_comparing = {.method = STOW_BY_COMPARING, .idle = true},
                                                         idle = {.idle = true};

__attribute__((unused)) static void need_userfaultfd(void) {
    if (!has_userfaultfd()) skip("this process may not use userfaultfd");
}

/* The usual options of a move. Without userfaultfd, only memory of idle owners moves. So in this case they declare the
 * owner idle. */
__attribute__((unused)) static const struct stow_options *usual(void) { return has_userfaultfd() ? &by_move : &idle; }

__attribute__((unused)) static char *stowed(size_t length, uint64_t seed) {
    char *p = map_memory(length);
    fill(p, length, seed);
    MUST_BE(out(p, length, usual(), NULL), length);
    return p;
}

/* Without arguments, prints the names of the cases. With a name as argument, runs the case of that name. */
__attribute__((unused)) static int name_or_run(const struct test_case *cases, int count, int argc, char **argv) {
    if (argc < 2) {
        for (int i = 0; i < count; i++) puts(cases[i].name);
        return 0;
    }
    alarm(100);
    return run_case(cases, count, argv[1]);
}

#endif
