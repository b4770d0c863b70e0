/* served.c — what a call costs while memstow serves other memory, for tests/cost/served.py. Two things are built from
 * this file: a test double of the driver, and the program:
 *
 *   served pair|small|attribute|info|places|move live|freed NUMBER ROUNDS
 *
 * The first word says what the program does in each round:
 * pair: cuMemAllocAsync and cuMemFreeAsync
 * small: cuMemAllocAsync and cuMemFreeAsync for a block that is too small to be served
 * attribute: cuPointerGetAttribute
 * info: cuMemGetInfo
 * places: cuPointerGetAttribute, called from NUMBER places in generated code
 * move: a move of all blocks. Each block stays, because the program has its handle, so only the search is measured.
 *
 * The second word says which other blocks there are meanwhile (with "places", there is one block):
 * live: NUMBER live blocks
 * freed: NUMBER blocks that were freed in a stream that makes no progress
 *
 * The driver's own cuMemAllocAsync gives small blocks only. All other blocks come from memstow. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { SMALL = 1 << 20 };

#ifdef DRIVER

#define SMALL_AT ((uint64_t)1 << 39)
static uint64_t next = (uint64_t)1 << 40, never;
enum { NOT_READY = 600 };
extern int served_stalls;
int served_stalls; /* while this is set, new events never complete */

#define ANSWER(name, parameters, statement)                                                                            \
    int name parameters;                                                                                               \
    int name parameters {                                                                                              \
        statement;                                                                                                     \
        return 0;                                                                                                      \
    }
#define SILENT(name) ANSWER(name, (void), )
ANSWER(cuCtxGetCurrent, (void **context), *context = &next)
ANSWER(cuCtxGetDevice, (int *device), *device = 0)
ANSWER(cuDeviceGetCount, (int *count), *count = 1)
ANSWER(cuDeviceGetMemPool, (void **pool, int device), *pool = &next + device)
ANSWER(cuDeviceGetDefaultMemPool, (void **pool, int device), *pool = &next + device)
ANSWER(cuDeviceGetAttribute, (int *value), *value = 0)
ANSWER(cuDeviceCanAccessPeer, (int *can), *can = 0)
ANSWER(cuMemAddressReserve, (uint64_t * at, size_t bytes), {
    *at = next;
    next += bytes;
})
ANSWER(cuMemCreate, (uint64_t * memory), *memory = 1)
ANSWER(cuMemRetainAllocationHandle, (uint64_t * memory), *memory = 1)
ANSWER(cuEventCreate, (void **event), *event = served_stalls ? &never : &next)
ANSWER(cuMemGetInfo_v2, (size_t * available, size_t *total), *available = *total = next)
ANSWER(cuPointerGetAttribute, (unsigned *value), *value = 2)
SILENT(cuCtxSetCurrent)
SILENT(cuStreamGetCtx)
SILENT(cuMemPoolTrimTo)
SILENT(cuCtxSynchronize)
SILENT(cuThreadExchangeStreamCaptureMode)
SILENT(cuMemAddressFree)
SILENT(cuMemRelease)
SILENT(cuMemMap)
SILENT(cuMemUnmap)
SILENT(cuMemSetAccess)
SILENT(cuMemHostAlloc)
SILENT(cuMemFreeHost)
SILENT(cuMemHostRegister_v2)
SILENT(cuMemHostUnregister)
SILENT(cuMemcpyDtoHAsync_v2)
SILENT(cuMemcpyHtoDAsync_v2)
SILENT(cuStreamCreate)
SILENT(cuStreamDestroy_v2)
SILENT(cuStreamSynchronize)
SILENT(cuStreamWaitEvent)
SILENT(cuEventDestroy_v2)
SILENT(cuEventRecord)
SILENT(cuEventSynchronize)

int cuEventQuery(const void *event);
int cuEventQuery(const void *event) { return event == &never ? NOT_READY : 0; }
int cuMemAllocAsync(uint64_t *at, size_t bytes, void *stream);
int cuMemAllocAsync(uint64_t *at, size_t bytes, void *stream) {
    (void)stream;
    if (bytes > SMALL) return 2;
    *at = SMALL_AT;
    return 0;
}
int cuMemFreeAsync(uint64_t at, void *stream);
int cuMemFreeAsync(uint64_t at, void *stream) {
    (void)stream;
    return at != SMALL_AT;
}

#else

#include "../prog/abi.h"

int cuMemAllocAsync(uint64_t *at, size_t bytes, void *stream);
int cuMemFreeAsync(uint64_t at, void *stream);
int cuPointerGetAttribute(void *value, int which, uint64_t at);
int cuMemGetInfo_v2(size_t *available, size_t *total);
int cuMemRetainAllocationHandle(uint64_t *memory, uint64_t at);
extern int served_stalls;
enum { BYTES = 3 << 20, MEMORY_TYPE = 2, OF_DEVICE = 2, CODE = 16 };
typedef int asks(void *value, int which, uint64_t at);

static uint64_t first; /* the first block */
static uint32_t model;
static bool hands_out; /* whether the program gets the handles of the blocks. Such blocks do not move */

static bool pair_of(size_t bytes) {
    uint64_t at;
    return !cuMemAllocAsync(&at, bytes, NULL) && !cuMemFreeAsync(at, NULL);
}

static bool pair(long round) {
    (void)round;
    return pair_of(BYTES);
}

static bool small(long round) {
    (void)round;
    return pair_of(SMALL);
}

static bool ask(asks *by) {
    unsigned type = 0;
    return !by(&type, MEMORY_TYPE, first + 4096) && type == OF_DEVICE;
}

static bool attribute(long round) {
    (void)round;
    return ask(cuPointerGetAttribute);
}

static bool info(long round) {
    size_t available, total;
    (void)round;
    return !cuMemGetInfo_v2(&available, &total);
}

/* --- places --- */

static unsigned char *code;
static long places;

/* Generates the places. Each has CODE bytes of code, which calls cuPointerGetAttribute. The function's address is in
 * front of the first place. */
static bool make_places(long number) {
    static const unsigned char sub[] = {0x48, 0x83, 0xEC, 8, 0xFF, 0x15}, add[] = {0x48, 0x83, 0xC4, 8, 0xC3};
    asks *function = cuPointerGetAttribute;
    places = number > 0 ? number : 1;
    code =
        mmap(NULL, (size_t)(places + 1) * CODE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED) return false;
    memcpy(code, &function, sizeof function);
    for (long i = 1; i <= places; i++) {
        unsigned char *at = code + i * CODE;
        int32_t back = (int32_t)(code - (at + sizeof sub + 4));
        memcpy(at, sub, sizeof sub);
        memcpy(at + sizeof sub, &back, sizeof back);
        memcpy(at + sizeof sub + sizeof back, add, sizeof add);
    }
    return true;
}

static bool place(long round) { return ask((asks *)(uintptr_t)(code + (1 + round % places) * CODE)); }

/* --- the program --- */

static bool run(bool (*step)(long round), long rounds) {
    while (rounds > 0 && step(rounds)) rounds--;
    return rounds <= 0;
}

static bool make_blocks(long number, bool freed) {
    uint64_t *at = malloc((size_t)(number + 1) * sizeof *at), memory;
    bool done = at;
    for (long i = 0; i < number && done; i++)
        done = !cuMemAllocAsync(&at[i], BYTES, NULL) && (!hands_out || !cuMemRetainAllocationHandle(&memory, at[i]));
    if (done && number) first = at[0];
    served_stalls = freed;
    for (long i = 0; i < number && done && freed; i++) done = !cuMemFreeAsync(at[i], NULL);
    served_stalls = 0;
    free(at);
    return done;
}

static bool move(long round) {
    (void)round;
    return CALL(-1, memstow_stow, model) < 0;
}

int main(int argc, char **argv) {
    if (argc < 5) return 2;
    long number = strtol(argv[3], NULL, 10), rounds = strtol(argv[4], NULL, 10);
    bool is_places = !strcmp(argv[1], "places");
    bool (*step)(long) = is_places                       ? place
                         : !strcmp(argv[1], "pair")      ? pair
                         : !strcmp(argv[1], "small")     ? small
                         : !strcmp(argv[1], "attribute") ? attribute
                         : !strcmp(argv[1], "move")      ? move
                                                         : info;
    hands_out = step == move;
    abi_find();
    model = (uint32_t)CALL(1, memstow_owner_open, MEMSTOW_MODEL, "model", "", 0, 0);
    CALL(0, memstow_scope_enter, model);
    CALL(0, memstow_owner_idle, model, 1);
    if (!make_blocks(is_places ? 1 : number, !strcmp(argv[2], "freed"))) return 1;
    if (is_places && (!make_places(number) || !run(place, places))) return 1; /* each place is known from now on */
    return !run(step, rounds);
}

#endif
