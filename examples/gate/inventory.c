/* inventory.c — a program for docs/gate.md: it reads items, keeps them, and ends as servers do, without freeing
 * anything. What it may hold is in baseline.txt. Built with -DLEAK it forgets a copy of each name that it looks for.
 *
 *     cc -g inventory.c -o inventory && memstow check --baseline=baseline.txt --fail-over=16K,site:4K -- ./inventory */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ITEMS = 1000, LOOKUPS = 5000 };

struct item {
    char name[24];
    int count;
};

static struct item *items;
static char *labels[16];

static void load_items(void) {
    items = calloc(ITEMS, sizeof *items);
    for (int i = 0; i < ITEMS; i++) {
        snprintf(items[i].name, sizeof items[i].name, "item %d", i);
        items[i].count = i % 7;
    }
}

static char *copy_name(const char *name) {
    char *copy = malloc(32);
    strncpy(copy, name, 31)[31] = 0;
    return copy;
}

static struct item *find_item(const char *name) {
    char *wanted = copy_name(name);
    struct item *found = NULL;
    for (int i = 0; i < ITEMS && !found; i++)
        if (strcmp(items[i].name, wanted) == 0) found = &items[i];
#ifndef LEAK
    free(wanted);
#endif
    return found;
}

/* Not in the baseline, but in known.txt. */
static void load_labels(void) {
    for (int i = 0; i < 16; i++) labels[i] = calloc(1, 4096);
}

int main(int argc, char **argv) {
    char name[24];
    load_items();
    for (int i = 0; i < LOOKUPS; i++) {
        snprintf(name, sizeof name, "item %d", i % ITEMS);
        if (!find_item(name)) return 1;
    }
    if (argc > 1 && strcmp(argv[1], "--labels") == 0) load_labels();
    return 0;
}
