// Call stacks through libc and back: functions that libc calls, and memory that it allocates for the program.
// needs: stacks
// build: -O2
#include "stacks.h"

#include <pthread.h>
#include <search.h>

enum { SORT = 10007, SEARCH = 10009, ONCE = 10037, WALK = 10039, COPY = 10061, RESIZED = 10067 };

static unsigned sorted, searched, walked;

FRAME static void allocate(unsigned size) {
    KEEP(size);
    STAY;
}

FRAME static int compare_to_sort(const void *a, const void *b) {
    if (!sorted++) allocate(SORT);
    return *(const int *)a - *(const int *)b;
}
FRAME static void sorts(void) {
    int numbers[] = {3, 2, 1};
    qsort(numbers, 3, sizeof *numbers, compare_to_sort);
    MUST(numbers[0] == 1);
}

FRAME static int compare_to_search(const void *a, const void *b) {
    if (!searched++) allocate(SEARCH);
    return *(const int *)a - *(const int *)b;
}
FRAME static void searches(void) {
    int numbers[] = {1, 2, 3}, wanted = 3;
    MUST(bsearch(&wanted, numbers, 3, sizeof *numbers, compare_to_search) == &numbers[2]);
}

static void only_once(void) {
    allocate(ONCE);
    STAY;
}
FRAME static void calls_once(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, only_once);
    STAY;
}

static int compare_text(const void *a, const void *b) { return strcmp(a, b); }
FRAME static void visit(const void *node, VISIT order, int depth) {
    (void)node, (void)order, (void)depth;
    if (!walked++) allocate(WALK);
    STAY;
}
FRAME static void walks(void) {
    void *tree = NULL;
    tsearch("a", &tree, compare_text);
    twalk(tree, visit);
    STAY;
}

/* strdup allocates for the program. */
FRAME static void copies(void) {
    static char text[COPY];
    memset(text, 'x', COPY - 1);
    stacks_kept[60] = strdup(text);
    STAY;
}
/* A block belongs to the function that gave its size. */
FRAME static void *small(void) { return malloc(100); }
FRAME static void resizes(void) {
    stacks_kept[61] = realloc(small(), RESIZED);
    STAY;
}

int main(void) {
    sorts(), searches(), calls_once(), walks(), copies(), resizes();
    EXPECT_STACK(SORT, "allocate<compare_to_sort<...<sorts<main");
    EXPECT_STACK(SEARCH, "allocate<compare_to_search<...<searches<main");
    EXPECT_STACK(ONCE, "allocate<only_once<...<calls_once<main");
    EXPECT_STACK(WALK, "allocate<visit<...<walks<main");
    EXPECT_STACK(COPY, "*strdup<copies<main");
    EXPECT_STACK(RESIZED, "resizes<main");
    return 0;
}
