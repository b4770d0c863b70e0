/* abi_random.c — threads call the registration ABI in random order, with good, wrong and garbage arguments. Meanwhile
 * they allocate, resize, assign and free, and memory of owners is stowed and restored. Each thread knows the owners and
 * contents of its blocks. At the end memstow's sums must agree. Arguments: seed, threads, seconds. With a fourth
 * argument the program ends in the middle. */
#include "../prog/abi.h"
#include "../prog/expect.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

enum { THREADS = 8, OWNERS = 512, BLOCKS = 512, MOST = 3000, HUGE = 600000, DEPTH = 8, PAGE = 4096 };
enum { FORKS = 10, SNAPSHOTS = 3 };

static uint32_t owners[OWNERS]; /* all that were ever opened, of any kind */
static uint8_t kinds[OWNERS];
static uint32_t owner_count = 1;
static uint64_t live[OWNERS]; /* by index in owners[]; [0]: no owner */
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
static time_t end_time;
static uint64_t stowed; /* bytes, in all */
/* Whether userfaultfd is there. Without it, moves lose writes to memory that is wrongly declared idle. */
static bool moves_in_one_step;

struct block {
    char *start;
    size_t size;
    uint32_t model, node; /* indices in owners[] */
};

struct worker {
    uint64_t random;
    struct block blocks[BLOCKS];
    uint32_t scopes[DEPTH], depth; /* indices in owners[] */
};

static uint32_t next_random(struct worker *self, uint32_t below) {
    self->random = self->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(self->random >> 33) % below;
}

static uint32_t any_owner(struct worker *self) {
    return next_random(self, __atomic_load_n(&owner_count, __ATOMIC_ACQUIRE));
}

static bool owns(uint32_t place) { return kinds[place] == MEMSTOW_MODEL || kinds[place] == MEMSTOW_CUSTOM; }

static uint32_t innermost(const struct worker *self, bool node) {
    for (uint32_t i = self->depth; i-- > 0;)
        if ((kinds[self->scopes[i]] == MEMSTOW_NODE) == node) return self->scopes[i];
    return 0;
}

static void count(const struct block *block, int sign) {
    uint64_t bytes = sign < 0 ? -(uint64_t)block->size : block->size;
    __atomic_fetch_add(&live[block->model], bytes, __ATOMIC_RELAXED);
    if (block->node) __atomic_fetch_add(&live[block->node], bytes, __ATOMIC_RELAXED);
}

static size_t any_size(struct worker *self) {
    return next_random(self, 50) ? 1 + next_random(self, MOST) : 1 + next_random(self, HUGE);
}

static void put(struct worker *self, struct block *block, char *start, size_t size) {
    *block = (struct block){start, size, innermost(self, false), innermost(self, true)};
    MUST(start);
    for (size_t at = 0; at < size; at += PAGE) start[at] = (char)size;
    start[size - 1] = (char)size;
    count(block, 1);
}

static void verify(const struct block *block) {
    for (size_t at = 0; at < block->size; at += PAGE) MUST(block->start[at] == (char)block->size);
    MUST(block->start[block->size - 1] == (char)block->size);
}

static void change_block(struct worker *self) {
    struct block *block = &self->blocks[next_random(self, BLOCKS)];
    size_t size = any_size(self);
    if (!block->start) {
        put(self, block, next_random(self, 8) ? malloc(size) : aligned_alloc(256, (size + 255) & ~(size_t)255), size);
        if ((uintptr_t)block->start % 256 == 0) { /* perhaps the aligned block, which is larger than `size` */
            count(block, -1);
            free(block->start);
            block->start = NULL;
        }
        return;
    }
    verify(block);
    count(block, -1);
    if (next_random(self, 4)) {
        free(block->start);
        block->start = NULL;
    } else {
        put(self, block, realloc(block->start, size), size);
    }
}

static void must_be(int32_t result, const char *of) {
    if (result) say("%s: %d (%s)", of, result, abi_memstow_error());
    MUST(result == 0);
}

/* Assigns a block, at once or in two steps; or takes its assignment back; or tries an owner that can have no memory. */
static void assign_block(struct worker *self) {
    struct block *block = &self->blocks[next_random(self, BLOCKS)];
    uint32_t owner = any_owner(self);
    if (!block->start) return;
    verify(block);
    if (next_random(self, 4) == 0) {
        must_be(abi_memstow_release_range(block->start, block->size), "release_range");
        owner = 0;
    } else if (!owns(owner)) {
        MUST(abi_memstow_assign(owners[owner], block->start, block->size) < 0);
        return;
    } else if (next_random(self, 3) == 0 && block->size > 8) { /* a part of it, and then all */
        uint32_t from = next_random(self, (uint32_t)block->size - 4);
        int32_t done = abi_memstow_assign(owners[owner], block->start + from, 4);
        MUST(done == 0 || (from && block->size < 65536)); /* assign refuses an address inside a small block */
        must_be(abi_memstow_assign(owners[owner], block->start, block->size), "assign");
    } else {
        must_be(abi_memstow_assign(owners[owner], block->start, block->size), "assign");
    }
    count(block, -1);
    block->model = owner;
    count(block, 1);
}

static void enter_or_leave(struct worker *self) {
    uint32_t owner = any_owner(self);
    if (self->depth < DEPTH && next_random(self, 2)) {
        int32_t done = abi_memstow_scope_enter(owners[owner]);
        MUST((done == 0) == (owner != 0));
        if (owner) self->scopes[self->depth++] = owner;
    } else if (self->depth) {
        uint32_t innermost_one = self->scopes[self->depth - 1];
        MUST(abi_memstow_scope_leave(owners[innermost_one]) == 0);
        self->depth--;
    }
}

static void go_elsewhere(struct worker *self) {
    struct memstow_scopes away = {.size = sizeof away};
    MUST(abi_memstow_scope_swap(NULL, &away) == 0 && away.count == self->depth);
    struct block block = {malloc(10), 10, 0, 0};
    MUST(block.start);
    free(block.start);
    MUST(abi_memstow_scope_swap(&away, NULL) == 0);
}

static void open_one(struct worker *self) {
    static const uint32_t choice[] = {MEMSTOW_MODEL, MEMSTOW_NODE, MEMSTOW_CUSTOM};
    uint32_t kind = choice[next_random(self, 3)];
    pthread_mutex_lock(&opening);
    if (owner_count < OWNERS) {
        int64_t id = abi_memstow_owner_open(kind, "name", "origin", 0, 0);
        MUST(id > 0);
        owners[owner_count] = (uint32_t)id;
        kinds[owner_count] = (uint8_t)kind;
        __atomic_store_n(&owner_count, owner_count + 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&opening);
}

static void garbage(struct worker *self) {
    uint32_t number = next_random(self, 2) ? next_random(self, UINT32_MAX) : 1u << 20 | next_random(self, 100);
    const void *pointer =
        (const void *)(uintptr_t)((uint64_t)next_random(self, UINT32_MAX) << next_random(self, 33) & ~15ull);
    struct memstow_scopes wrong = {.size = next_random(self, 300), .count = 63 + next_random(self, UINT32_MAX - 63)};
    struct memstow_figures figures = {.size = next_random(self, 200)};
    abi_memstow_owner_open(next_random(self, 2) ? 5 + number % 100 : 0, "x", "y", number, number);
    abi_memstow_owner_policy(number | 1u << 21, next_random(self, 6), (int32_t)number);
    abi_memstow_owner_figures(number | 1u << 21, &figures);
    abi_memstow_scope_swap(&wrong, NULL);
    abi_memstow_scope_leave(number | 1u << 21);
    abi_memstow_run_end(number | 1u << 21, number);
    abi_memstow_assign(owners[any_owner(self)], pointer, 1 + number % 64);
    abi_memstow_release_range(pointer, (uint64_t)number << 32);
    abi_memstow_owner_open(MEMSTOW_MODEL, pointer, pointer, 0, number);
}

/* Retires owners, lets one adopt another, reads their figures, and sets their policies, idleness and discarding. The
 * owners may be retired already, and one id is invalid. */
static void others(struct worker *self) {
    uint32_t owner = any_owner(self), other = any_owner(self);
    struct memstow_figures figures = {.size = sizeof figures};
    switch (next_random(self, 40)) {
    case 0:
        abi_memstow_owner_retire(owners[owner]);
        break;
    case 1:
        abi_memstow_owner_adopt(owners[owner], owners[other]);
        break;
    case 2:
        if (next_random(self, 20) == 0) abi_memstow_owner_figures(owners[owner], &figures);
        break;
    default:
        abi_memstow_owner_policy(owners[owner], next_random(self, 4), (int32_t)other);
        abi_memstow_owner_idle(owners[owner], moves_in_one_step && next_random(self, 2));
        abi_memstow_owner_discard(owners[owner], next_random(self, 3));
    }
}

static const void *garbage_pointer(struct worker *self) {
    static const char text[] = "text";
    if (next_random(self, 2)) return text;
    return (const void *)(uintptr_t)((uint64_t)next_random(self, UINT32_MAX) << next_random(self, 33));
}

static void trip(struct worker *self) {
    struct memstow_decision decisions[64];
    uint32_t reason = next_random(self, 6), room = next_random(self, 65);
    const char *text = garbage_pointer(self);
    if (next_random(self, 2)) {
        abi_memstow_trigger(reason, text);
        return;
    }
    uint32_t size = next_random(self, 8) ? sizeof *decisions : next_random(self, 100);
    abi_memstow_trigger_begin(reason, text, next_random(self, 2) ? 0 : next_random(self, UINT32_MAX),
                              size <= sizeof *decisions ? decisions : NULL, room, size);
    if (next_random(self, 4)) abi_memstow_trigger_end(); /* otherwise the next trigger ends it, or nothing does */
}

static void trace_and_read(struct worker *self) {
    char lines[5000];
    uint64_t next = 0;
    abi_memstow_trace(next_random(self, 2) ? "{\"kind\":\"NOTE\",\"of\":\"abi_random\"}" : garbage_pointer(self));
    int64_t length = abi_memstow_decisions(lines, sizeof lines, next_random(self, 100), &next);
    MUST(length <= (int64_t)sizeof lines && (length <= 0 || lines[length - 1] == '\n'));
    abi_memstow_decisions((char *)(uintptr_t)next_random(self, 65536), 100, next, NULL);
    MUST(strlen(abi_memstow_error()) < 10000);
}

/* Looks up blocks of this thread, and addresses at which there is no block. */
static void look_up(struct worker *self) {
    uint64_t addresses[] = {(uintptr_t)self->blocks[next_random(self, BLOCKS)].start, next_random(self, UINT32_MAX),
                            (uintptr_t)&addresses, (uintptr_t)self};
    struct memstow_block blocks[4];
    uint32_t count = next_random(self, 5), size = next_random(self, 2) ? sizeof *blocks : next_random(self, 40);
    MUST(abi_memstow_blocks(addresses, count, next_random(self, 3), blocks, size) <= (int64_t)count);
    abi_memstow_blocks(garbage_pointer(self), 3, 0, blocks, sizeof *blocks);
}

static void answer(struct worker *self) {
    struct memstow_request request = {.size = next_random(self, 2) ? sizeof request : next_random(self, 400)};
    if (request.size <= sizeof request && abi_memstow_request_next(&request, next_random(self, 3)) == 1)
        MUST(abi_memstow_request_done(request.ticket, 0, "") == 0);
    if (request.size <= sizeof request &&
        abi_memstow_request_of(&request, next_random(self, 1 << 10), next_random(self, 3)) == 1)
        MUST(abi_memstow_request_done(request.ticket, 0, "") == 0);
    abi_memstow_request_done(next_random(self, 100), next_random(self, 100), garbage_pointer(self));
}

/* A child can move its parent's owners and finds its parent's contents, even if other threads were working during the
 * fork. */
static void fork_one(struct worker *self) {
    static int forks;
    int status;
    if (__atomic_add_fetch(&forks, 1, __ATOMIC_RELAXED) > FORKS) return;
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < BLOCKS; i++)
            if (self->blocks[i].start) verify(&self->blocks[i]);
        for (uint32_t i = 1; i < 10; i++) abi_memstow_stow(owners[i]), abi_memstow_restore(owners[i]);
        for (int i = 0; i < BLOCKS; i++)
            if (self->blocks[i].start) verify(&self->blocks[i]), free(self->blocks[i].start);
        _exit(0);
    }
    MUST(child > 0 && waitpid(child, &status, 0) == child);
    if (status) say("a child ended with status %x", status);
    MUST(status == 0);
}

static void take_picture(void) {
    static int pictures;
    if (__atomic_add_fetch(&pictures, 1, __ATOMIC_RELAXED) <= SNAPSHOTS) abi_memstow_snapshot("picture.mst");
}

/* Calls that act on memory of owners and report on it. */
static void act(struct worker *self) {
    uint32_t place = any_owner(self);
    for (int i = 0; i < 4 && !owns(place); i++) place = any_owner(self); /* memory of other owners does not move */
    uint32_t owner = next_random(self, 10) ? owners[place] : next_random(self, UINT32_MAX);
    struct memstow_scopes scopes = {.size = sizeof scopes};
    switch (next_random(self, 12)) {
    case 0:
    case 1:
    case 2: {
        int64_t moved = abi_memstow_stow(owner);
        if (moved > 0) __atomic_fetch_add(&stowed, (uint64_t)moved, __ATOMIC_RELAXED);
        break;
    }
    case 3:
        abi_memstow_restore(owner);
        break;
    case 4:
        abi_memstow_release(owner);
        break;
    case 5:
    case 6:
        trip(self);
        break;
    case 7:
        trace_and_read(self);
        break;
    case 8:
        answer(self);
        break;
    case 9:
        MUST(abi_memstow_peak(next_random(self, 2)) >= 0);
        look_up(self);
        break;
    case 10:
        MUST(abi_memstow_scope_save(&scopes) == 0 && scopes.count == self->depth);
        break;
    default:
        if (next_random(self, 2))
            fork_one(self);
        else
            take_picture();
    }
}

static void *work(void *argument) {
    struct worker *self = argument;
    uint32_t run = 0;
    while (time(NULL) < end_time)
        for (int i = 0; i < 1000; i++) {
            uint32_t what = next_random(self, 100);
            if (what < 60)
                change_block(self);
            else if (what < 75)
                assign_block(self);
            else if (what < 90)
                enter_or_leave(self);
            else if (what < 92)
                go_elsewhere(self);
            else if (what < 93 && next_random(self, 20) == 0)
                open_one(self);
            else if (what < 95)
                garbage(self);
            else if (what < 96 && next_random(self, 10) == 0)
                act(self);
            else if (what < 97 && next_random(self, 1000) == 0) {
                if (run) abi_memstow_run_end(run, next_random(self, 4));
                int64_t begun = abi_memstow_run_begin("run");
                run = begun > 0 ? (uint32_t)begun : 0;
            } else
                others(self);
        }
    if (run) abi_memstow_run_end(run, 0);
    while (self->depth) MUST(abi_memstow_scope_leave(owners[self->scopes[--self->depth]]) == 0);
    return NULL;
}

/* The place of the owner that has this owner's sums in the end: this owner itself, or the owner that adopted it. */
static uint32_t final_place(uint32_t place) {
    struct memstow_figures figures = {.size = sizeof figures};
    MUST(abi_memstow_owner_figures(owners[place], &figures) == 0);
    if (!figures.adopted_by) return place;
    for (uint32_t i = 1; i < owner_count; i++)
        if (owners[i] == figures.adopted_by) return final_place(i);
    return 0;
}

int main(int argc, char **argv) {
    static struct worker workers[THREADS];
    pthread_t threads[THREADS];
    MUST(argc == 4 || argc == 5);
    abi_find();
    MUST(has_memstow);
    long uffd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
    moves_in_one_step = uffd >= 0;
    if (uffd >= 0) close((int)uffd);
    int thread_count = atoi(argv[2]);
    end_time = time(NULL) + atoi(argv[3]);
    workers[0].random = strtoull(argv[1], NULL, 10);
    for (int i = 0; i < 24; i++) open_one(&workers[0]);
    for (int i = 1; i < thread_count; i++) workers[i].random = workers[0].random * 31 + (uint64_t)i;
    for (int i = 0; i < thread_count; i++) MUST(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
    if (argc == 5) {
        while (time(NULL) < end_time) usleep(1000);
        return 0;
    }
    for (int i = 0; i < thread_count; i++) pthread_join(threads[i], NULL);
    for (uint32_t i = 1; i < owner_count; i++) {
        uint32_t final = final_place(i);
        if (final == i) continue;
        live[final] += live[i];
        live[i] = 0;
    }
    uint64_t blocks = 0;
    for (uint32_t i = 1; i < owner_count; i++) {
        struct memstow_figures figures = {.size = sizeof figures};
        MUST(abi_memstow_owner_figures(owners[i], &figures) == 0);
        if (figures.live_bytes != live[i])
            say("owner %u (kind %u, retired %u): %llu bytes, not %llu", owners[i], kinds[i], figures.retired,
                (unsigned long long)figures.live_bytes, (unsigned long long)live[i]);
        MUST(figures.live_bytes == live[i]);
        blocks += figures.live_blocks;
    }
    say("owners %u blocks %llu stowed %llu", owner_count - 1, (unsigned long long)blocks, (unsigned long long)stowed);
    MUST(stowed || !moves_in_one_step);
    for (int i = 0; i < thread_count; i++)
        for (int k = 0; k < BLOCKS; k++)
            if (workers[i].blocks[k].start) {
                verify(&workers[i].blocks[k]);
                free(workers[i].blocks[k].start);
            }
    for (uint32_t i = 1; i < owner_count; i++) {
        struct memstow_figures figures = {.size = sizeof figures};
        MUST(abi_memstow_owner_figures(owners[i], &figures) == 0 && figures.live_bytes == 0 &&
             figures.live_blocks == 0);
    }
    return 0;
}
