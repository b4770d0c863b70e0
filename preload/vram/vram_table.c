/* vram_table.c — see vram_table.h. Each free of device memory and each query of a device address looks here. A tree
 * finds blocks by address (a treap: random ranks keep it flat). The sums of devices are kept up to date, so nobody
 * walks through all blocks to learn them. */
#include "preload/vram/vram_table.h"

#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "preload/base/arena.h"
#include "preload/shared/os.h"
#include "preload/base/forked.h"

static struct vram_block *blocks, *unused, *root;
static struct queue { struct vram_block *first, *last; } freed_blocks, spares; /* the oldest is the first */
enum { ALL = VRAM_DEVICES, SHELVES = 256 };
/* Lists of freed blocks and spares by size. The newest block is the first. */
static struct vram_block *shelves[SHELVES];
static struct vram_sums sums[VRAM_DEVICES + 1]; /* by device; the last entry: of all devices */
uint64_t vram_table_word;
static uint32_t turn;                  /* a futex: how often vram_table_changed was called */
static uint32_t count, pending, freed; /* count: the number of all blocks; pending: the number of freed blocks and
                                        * wrecks (VRAM_WRECK); freed: the number of freed blocks */
uint32_t vram_table_spare;
static uint64_t numbers;

/* --- the lock of the table --- */

static bool vram_table_exchange(uint64_t was, uint64_t is) {
    return __atomic_compare_exchange_n(&vram_table_word, &was, is, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

bool vram_table_wait_for_lock(bool gives_up) {
    const uint64_t mine = vram_table_my_word();
    for (bool waited = false;;) {
        uint64_t was = __atomic_load_n(&vram_table_word, __ATOMIC_ACQUIRE);
        if (!was && vram_table_exchange(0, mine | VRAM_TABLE_WAITED)) return true;
        if (!was) continue;
        if (gives_up && (was & ~(uint64_t)VRAM_TABLE_WAITED) == mine) {
            if (waited) vram_table_wake_one(); /* this thread may have taken the wake-up of another waiting thread */
            return false;
        }
        if (!(was & VRAM_TABLE_WAITED) && !vram_table_exchange(was, was | VRAM_TABLE_WAITED)) continue;
        os_call(SYS_futex, &vram_table_word, FUTEX_WAIT_PRIVATE, (uint32_t)(was | VRAM_TABLE_WAITED), NULL);
        waited = true;
    }
}

void vram_table_wake_one(void) { os_call(SYS_futex, &vram_table_word, FUTEX_WAKE_PRIVATE, 1); }

void vram_table_lock(void) {
    if (!vram_table_exchange(0, vram_table_my_word())) vram_table_wait_for_lock(false);
}

bool vram_table_is_mine(void) {
    return (__atomic_load_n(&vram_table_word, __ATOMIC_RELAXED) & ~(uint64_t)VRAM_TABLE_WAITED) == vram_table_my_word();
}

static void wait_for_turn(const struct timespec *most) {
    uint32_t seen = __atomic_load_n(&turn, __ATOMIC_ACQUIRE);
    vram_table_let_go();
    os_call(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, seen, most);
    vram_table_lock();
}

void vram_table_wait(void) { wait_for_turn(NULL); }

void vram_table_wait_briefly(void) { wait_for_turn(&(struct timespec){.tv_nsec = 20000000}); }

void vram_table_changed(void) {
    __atomic_fetch_add(&turn, 1, __ATOMIC_RELEASE);
    os_call(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, INT32_MAX);
}

/* --- the tree of blocks by address --- */

static bool comes_before(const struct vram_block *a, const struct vram_block *b) {
    return a->at != b->at ? a->at < b->at : a < b;
}

/* Enters a block into the tree. The subtree that was in its place is divided: blocks at lower addresses come on its
 * lower side, the others on its higher side. */
static void enter_tree(struct vram_block *self) {
    struct vram_block **link = &root, **lower = &self->lower, **higher = &self->higher;
    while (*link && (*link)->rank > self->rank) link = comes_before(self, *link) ? &(*link)->lower : &(*link)->higher;
    struct vram_block *rest = *link;
    *link = self;
    while (rest) {
        bool is_lower = comes_before(rest, self);
        *(is_lower ? lower : higher) = rest;
        if (is_lower) lower = &rest->higher;
        if (!is_lower) higher = &rest->lower;
        rest = is_lower ? rest->higher : rest->lower;
    }
    *lower = *higher = NULL;
    self->in_tree = true;
}

static void leave_tree(struct vram_block *self) {
    struct vram_block **link = &root, *lower = self->lower, *higher = self->higher;
    if (!self->in_tree) return;
    while (*link != self) link = comes_before(self, *link) ? &(*link)->lower : &(*link)->higher;
    while (lower && higher) {
        bool is_lower = lower->rank > higher->rank;
        *link = is_lower ? lower : higher;
        link = is_lower ? &lower->higher : &higher->lower;
        if (is_lower) lower = lower->higher;
        if (!is_lower) higher = higher->lower;
    }
    *link = lower ? lower : higher;
    self->in_tree = false;
}

struct vram_block *vram_table_first(void) {
    return blocks;
}

struct vram_block *vram_table_around(uint64_t address) {
    struct vram_block *last = NULL, *block = root;
    while (block) {
        bool is = block->at <= address;
        if (is) last = block;
        block = is ? block->higher : block->lower;
    }
    return last && address - last->at < last->size ? last : NULL;
}

struct vram_block *vram_table_starting(uint64_t address) {
    struct vram_block *block = vram_table_around(address);
    return block && block->at == address ? block : NULL;
}

struct vram_block *vram_table_take(uint64_t address) {
    for (;;) {
        struct vram_block *block = vram_table_starting(address);
        if (!block || block->state == VRAM_FREEING) return NULL;
        if (!block->moving) {
            block->moving = true;
            return block;
        }
        vram_table_wait();
    }
}

struct vram_block *vram_table_new(void) {
    struct vram_block *self = unused;
    if (self)
        unused = self->next;
    else
        self = arena_take(sizeof *self);
    if (self) memset(self, 0, sizeof *self);
    return self;
}

/* --- the queues of freed blocks and of spares --- */

static bool is_pending(enum vram_state state) { return state == VRAM_FREEING || state == VRAM_WRECK; }

/* The queue of blocks in this state; NULL: they are in no queue. */
static struct queue *queue_of(enum vram_state state) {
    if (state == VRAM_SPARE) return &spares;
    return is_pending(state) ? &freed_blocks : NULL;
}

static void enter_queue(struct queue *queue, struct vram_block *self) {
    self->freed_next = NULL;
    self->freed_before = queue->last;
    *(queue->last ? &queue->last->freed_next : &queue->first) = self;
    queue->last = self;
}

static void leave_queue(struct queue *queue, struct vram_block *self) {
    *(self->freed_before ? &self->freed_before->freed_next : &queue->first) = self->freed_next;
    *(self->freed_next ? &self->freed_next->freed_before : &queue->last) = self->freed_before;
}

struct vram_block *vram_table_first_freed(void) {
    return freed_blocks.first;
}

struct vram_block *vram_table_first_spare(void) {
    return spares.first;
}

void vram_table_requeue(struct vram_block *self) {
    leave_queue(&freed_blocks, self);
    enter_queue(&freed_blocks, self);
}

/* --- the shelves: freed blocks and spares by size --- */

static bool is_for_shelf(enum vram_state state) { return state == VRAM_FREEING || state == VRAM_SPARE; }

static struct vram_block **shelf_of(uint64_t size) { return &shelves[size / VRAM_GRANULE % SHELVES]; }

static void put_on_shelf(struct vram_block *self) {
    struct vram_block **shelf = shelf_of(self->size);
    self->shelf_before = NULL;
    self->shelf_next = *shelf;
    if (*shelf) (*shelf)->shelf_before = self;
    *shelf = self;
}

static void take_off_shelf(struct vram_block *self) {
    *(self->shelf_before ? &self->shelf_before->shelf_next : shelf_of(self->size)) = self->shelf_next;
    if (self->shelf_next) self->shelf_next->shelf_before = self->shelf_before;
}

struct vram_block *vram_table_first_of_size(uint64_t size) {
    return *shelf_of(size);
}

/* --- blocks that come, change and go --- */

/* Adds a block to the sums if `times` is 1, and subtracts it if `times` is UINT64_MAX: unsigned numbers wrap, so
 * UINT64_MAX acts as -1. */
static void add_times(struct vram_sums *to, const struct vram_block *block, uint64_t times) {
    bool is_there = block->state <= VRAM_STOWED;
    if (block->state == VRAM_LIVE) to->live += times * block->size;
    if (block->state == VRAM_STOWED) to->stowed += times * block->size, to->stowed_asked += times * block->asked;
    if (is_there) to->asked += times * block->asked;
    if (is_there && block->in_stream) to->in_streams += times * block->asked, to->streams_taken += times * block->size;
    to->blocks += (uint32_t)times * is_there;
    if (block->state == VRAM_SPARE) to->spare += times * block->size;
    to->wrecks += (uint32_t)times * (block->state == VRAM_WRECK);
}

static void count_times(const struct vram_block *self, uint64_t times) {
    add_times(&sums[self->device], self, times);
    add_times(&sums[ALL], self, times);
    __atomic_fetch_add(&pending, (uint32_t)times * is_pending(self->state), __ATOMIC_RELEASE);
    __atomic_fetch_add(&freed, (uint32_t)times * (self->state == VRAM_FREEING), __ATOMIC_RELEASE);
    if (self->state == VRAM_SPARE) __atomic_fetch_add(&vram_table_spare, (uint32_t)times, __ATOMIC_RELEASE);
}

static void count_in(const struct vram_block *self) { count_times(self, 1); }

static void vram_table_count_out(const struct vram_block *self) { count_times(self, UINT64_MAX); }

/* The rank of a block is its number, scrambled. Scrambling makes the ranks of blocks with neighbouring addresses
 * unrelated. */
static uint64_t vram_table_rank_of(uint64_t number) {
    number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9u;
    number = (number ^ number >> 27) * 0x94D049BB133111EBu;
    return number ^ number >> 31;
}

void vram_table_add(struct vram_block *self) {
    self->rank = vram_table_rank_of(self->number);
    self->next = blocks;
    self->before = NULL;
    if (blocks) blocks->before = self;
    blocks = self;
    if (self->at) enter_tree(self);
    count_in(self);
    __atomic_fetch_add(&count, 1, __ATOMIC_RELEASE);
}

void vram_table_set_state(struct vram_block *self, enum vram_state state) {
    struct queue *from = queue_of(self->state), *to = queue_of(state);
    bool is_found = state < VRAM_WRECK;
    if (self->state == state) return;
    if (is_for_shelf(self->state)) take_off_shelf(self);
    vram_table_count_out(self);
    self->state = state;
    count_in(self);
    if (!is_found) leave_tree(self);
    if (is_found && self->at && !self->in_tree) enter_tree(self);
    if (from != to && from) leave_queue(from, self);
    if (from != to && to) enter_queue(to, self);
    if (is_for_shelf(state)) put_on_shelf(self);
}

void vram_table_drop(struct vram_block *self) {
    leave_tree(self);
    if (queue_of(self->state)) leave_queue(queue_of(self->state), self);
    if (is_for_shelf(self->state)) take_off_shelf(self);
    vram_table_count_out(self);
    *(self->before ? &self->before->next : &blocks) = self->next;
    if (self->next) self->next->before = self->before;
    self->next = unused;
    unused = self;
    __atomic_fetch_sub(&count, 1, __ATOMIC_RELEASE);
}

/* --- sums, numbers and counts --- */

struct vram_sums vram_table_sums(uint32_t device) {
    return sums[device < VRAM_DEVICES ? device : (uint32_t)ALL];
}

struct vram_sums vram_table_sums_of(uint32_t owner, uint32_t device) {
    struct vram_sums its = {0};
    for (const struct vram_block *block = blocks; block; block = block->next)
        if (block->owner == owner && (device == UINT32_MAX || block->device == device)) add_times(&its, block, 1);
    return its;
}

uint64_t vram_table_number(void) { return __atomic_add_fetch(&numbers, 1, __ATOMIC_SEQ_CST); }

uint64_t vram_table_last_number(void) { return __atomic_load_n(&numbers, __ATOMIC_SEQ_CST); }

/* Our ids are higher than the driver's ids, which count up from low numbers. */
uint64_t vram_table_id(void) { return (uint64_t)1 << 62 | vram_table_number(); }

uint32_t vram_table_count(void) { return __atomic_load_n(&count, __ATOMIC_ACQUIRE); }

uint32_t vram_table_pending(void) { return __atomic_load_n(&pending, __ATOMIC_ACQUIRE); }

uint32_t vram_table_freed(void) { return __atomic_load_n(&freed, __ATOMIC_ACQUIRE); }

static void vram_table_abandon(void) {
    blocks = unused = root = NULL;
    freed_blocks = spares = (struct queue){0};
    memset(shelves, 0, sizeof shelves);
    memset(sums, 0, sizeof sums);
    vram_table_word = turn = count = pending = freed = vram_table_spare = 0;
}
FORKED(vram_table_abandon);
