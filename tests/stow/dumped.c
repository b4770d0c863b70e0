/* dumped.c — dumped [moving]: memory in every state, for a core dump. It writes a line "NAME ADDRESS LENGTH" for each
 * area, its content to NAME.expected, and "ready". Then it follows commands: "cut" shortens the file of the stowed
 * memory, "check" compares all memory, "abort" ends the program. moving: meanwhile one more area moves all the time. */
#include "moving.h"

#include <pthread.h>

enum { LENGTH = 2 * MIB, MOVED = 96 * MIB };

static const struct stow_options idle = {.idle = true};
static const char *const NAMES[] = {"plain", "stowed", "written", "back"};
enum { PLAIN, STOWED, WRITTEN, BACK, AREAS };
static char *areas[AREAS];
static char *moved;

static void note(int i) {
    char name[32];
    snprintf(name, sizeof name, "%s.expected", NAMES[i]);
    FILE *f = fopen(name, "w");
    MUST(f && fwrite(areas[i], 1, LENGTH, f) == LENGTH && fclose(f) == 0);
    printf("%s %zu %d\n", NAMES[i], (size_t)areas[i], LENGTH);
}

/* Separate mappings: adjacent ones would become one. */
static char *map_apart(void) {
    char *p = map_memory(LENGTH + 2 * PAGE);
    MUST(munmap(p, PAGE) == 0 && munmap(p + PAGE + LENGTH, PAGE) == 0);
    return p + PAGE;
}

static void make_areas(void) {
    for (int i = 0; i < AREAS; i++) {
        areas[i] = map_apart();
        fill(areas[i], LENGTH, (uint64_t)i);
        if (i == WRITTEN) memset(areas[i] + MIB, 'w', PAGE);
        note(i);
        if (i == WRITTEN) fill(areas[i], LENGTH, (uint64_t)i);
        if (i != PLAIN) MUST_BE(out(areas[i], LENGTH, &idle, NULL), LENGTH);
    }
    memset(areas[WRITTEN] + MIB, 'w', PAGE);
    MUST_BE(in(areas[BACK], LENGTH, &idle), LENGTH);
    MUST_BE(pages_in(areas[STOWED], LENGTH, false), 0);
}

static void *move_all_the_time(void *unused) {
    for (;;) {
        out(moved, MOVED, has_userfaultfd() ? NULL : &idle, NULL);
        in(moved, MOVED, &idle);
    }
    return unused;
}

static void begin_moving(void) {
    pthread_t mover;
    moved = map_memory(MOVED);
    fill(moved, MOVED, AREAS);
    MUST_BE(pthread_create(&mover, NULL, move_all_the_time, NULL), 0);
}

static void cut(void) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/map_files/%zx-%zx", (size_t)areas[STOWED], (size_t)areas[STOWED] + LENGTH);
    int fd = open(path, O_RDWR);
    puts(fd >= 0 && ftruncate(fd, 0) == 0 ? "cut" : "may not");
}

static bool whole(void) {
    for (int i = 0; i < AREAS; i++) {
        bool written = i == WRITTEN;
        if (!holds(areas[i], written ? MIB : LENGTH, (uint64_t)i)) return false;
        if (written && (areas[i][MIB] != 'w' || memcmp(areas[i] + MIB, areas[i] + MIB + 1, PAGE - 1))) return false;
    }
    return !moved || holds(moved, MOVED, AREAS);
}

int main(int argc, char **argv) {
    char line[16];
    find_engine();
    make_areas();
    if (argc > 1 && !strcmp(argv[1], "moving")) begin_moving();
    puts("ready"), fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        if (!strcmp(line, "cut\n")) cut();
        if (!strcmp(line, "check\n")) puts(whole() ? "whole" : "lost");
        if (!strcmp(line, "abort\n")) abort();
        fflush(stdout);
    }
    return 0;
}
