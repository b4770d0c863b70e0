/* _pointers.c — compares the answers of the simulated driver (a test double) and of memstow about pointers of the same
 * kind. One pointer leads to memory that the driver serves. The other leads to memory that memstow serves, and is asked
 * about while this memory is in place, out, and back. The program asks for each attribute alone and for all at once,
 * and compares the bytes of the answers. A failed check ends the program with a message. */
#include "_model.h"

struct attributes { /* cudaPointerAttributes of CUDA 13 */
    int type, device;
    void *device_pointer, *host_pointer;
    long reserved[8];
};
int cudaPointerGetAttributes(struct attributes *, const void *);

static uint32_t model;

enum { P2P_TOKENS = 5, ATTRIBUTES = 22, WIDEST = 16, LAST = CU_POINTER_DECOMPRESS_CAPABLE };
enum { LARGE = 270 /* MiB: two pieces */, INSIDE = 260 };

/* An answer: the result of the call, how many bytes the call has written, and the values of these bytes. */
struct answer {
    int result;
    unsigned width;
    unsigned char bytes[WIDEST];
};

static struct answer once(int which, CUdeviceptr at, int all, int before) {
    struct answer found = {0};
    void *to = found.bytes;
    memset(found.bytes, before, sizeof found.bytes);
    found.result = all ? cuPointerGetAttributes(1, &which, &to, at) : cuPointerGetAttribute(to, which, at);
    return found;
}

static struct answer ask(int which, CUdeviceptr at, int all) {
    struct answer one = once(which, at, all, 0xa5), other = once(which, at, all, 0x5a);
    MUST(one.result == other.result);
    for (unsigned i = 0; i < WIDEST; i++) {
        if (one.bytes[i] == other.bytes[i])
            one.width = i + 1;
        else
            one.bytes[i] = 0;
    }
    return one;
}

struct answers {
    struct answer each[2][ATTRIBUTES];
    struct attributes runtime;
    int runtime_result;
    CUdeviceptr start;
    size_t size;
};

static struct answers ask_all(void *at, size_t offset) {
    struct answers found = {0};
    CUdeviceptr address = (CUdeviceptr)at + offset;
    for (int which = 1; which <= LAST; which++) /* no tokens: asking for them would make the memory stay */
        for (int all = 0; which != P2P_TOKENS && all < 2; all++) found.each[all][which] = ask(which, address, all);
    found.runtime_result = cudaPointerGetAttributes(&found.runtime, (char *)at + offset);
    MUST(!cuMemGetAddressRange_v2(&found.start, &found.size, address));
    return found;
}

static int same(const struct answer *a, const struct answer *b) { return !memcmp(a, b, sizeof *a); }

static uint64_t number(const struct answers *of, int which) {
    uint64_t value = 0;
    memcpy(&value, of->each[0][which].bytes, of->each[0][which].width < 8 ? of->each[0][which].width : 8);
    return value;
}

static void differ(const char *what, int all, int which, const struct answer *is, const struct answer *should) {
    fprintf(stderr, "%s: attribute %d%s: result %d, %u bytes, first %d; not %d, %u, %d\n", what, which,
            all ? " of several" : "", is->result, is->width, is->bytes[0], should->result, should->width,
            should->bytes[0]);
    exit(1);
}

/* Whether the value of the attribute may differ, either because only the driver's memory has the attribute, or because
 * the value depends on the address. */
static int is_apart(int which) {
    return which == CU_POINTER_IPC_CAPABLE || which == CU_POINTER_DEVICE_POINTER || which == CU_POINTER_RANGE_START ||
           which == CU_POINTER_MAPPING_BASE || which == CU_POINTER_BUFFER_ID || which == CU_POINTER_MEMORY_BLOCK_ID ||
           which == CU_POINTER_MAPPING_SIZE || which == CU_POINTER_SYNC_MEMOPS;
}

static void compare(const char *what, const struct answers *is, const struct answers *should, int whole) {
    for (int all = 0; all < 2; all++)
        for (int which = 1; which <= LAST; which++) {
            const struct answer *a = &is->each[all][which], *b = &should->each[all][which];
            int alike = whole || !is_apart(which) ? same(a, b) : a->result == b->result && a->width == b->width;
            if (!alike) differ(what, all, which, a, b);
        }
    MUST(is->runtime_result == should->runtime_result && is->runtime.type == should->runtime.type &&
         is->runtime.device == should->runtime.device && is->size == should->size);
    MUST(!whole || (is->start == should->start && is->runtime.device_pointer == should->runtime.device_pointer));
}

/* Compares the driver's own memory with memory of the same kind that memstow serves. */
static void one_kind(int device, void *(*allocate)(size_t), const char *what) {
    CUcontext context;
    void *drivers = allocate(LARGE * MIB);
    MUST(!memstow_scope_enter_(model));
    uint64_t served = sim_count_ok("cuMemCreate");
    void *ours = allocate(LARGE * MIB);
    MUST(!memstow_scope_leave_(model) && sim_count_ok("cuMemCreate") == served + 2);
    MUST(!cuCtxGetCurrent(&context));
    struct answers model_of = ask_all(drivers, INSIDE * MIB), live = ask_all(ours, INSIDE * MIB);
    compare(what, &live, &model_of, 0);
    MUST(number(&live, CU_POINTER_RANGE_START) == (CUdeviceptr)ours && live.start == (CUdeviceptr)ours);
    MUST(number(&live, CU_POINTER_RANGE_SIZE) == LARGE * MIB &&
         number(&live, CU_POINTER_MAPPING_BASE) == (CUdeviceptr)ours);
    MUST(number(&live, CU_POINTER_MAPPING_SIZE) >= LARGE * MIB && !number(&live, CU_POINTER_IPC_CAPABLE));
    MUST(number(&live, CU_POINTER_DEVICE_POINTER) == (CUdeviceptr)ours + INSIDE * MIB);
    MUST((int)number(&live, CU_POINTER_DEVICE_ORDINAL) == device);
    struct answers first = ask_all(ours, 0);
    MUST(number(&first, CU_POINTER_BUFFER_ID) == number(&live, CU_POINTER_BUFFER_ID)); /* one for all its pieces */
    MUST(number(&live, CU_POINTER_BUFFER_ID) != number(&model_of, CU_POINTER_BUFFER_ID));
    MUST(memstow_stow_(model) == LARGE * (int64_t)MIB);
    struct answers out = ask_all(ours, INSIDE * MIB);
    compare(what, &out, &live, 1);
    MUST(memstow_restore_(model) == LARGE * (int64_t)MIB);
    struct answers back = ask_all(ours, INSIDE * MIB);
    uint64_t id = number(&back, CU_POINTER_BUFFER_ID);
    MUST(id != number(&live, CU_POINTER_BUFFER_ID) && id == number(&back, CU_POINTER_MEMORY_BLOCK_ID));
    for (int all = 0; all < 2; all++) {
        back.each[all][CU_POINTER_BUFFER_ID] = live.each[all][CU_POINTER_BUFFER_ID];
        back.each[all][CU_POINTER_MEMORY_BLOCK_ID] = live.each[all][CU_POINTER_MEMORY_BLOCK_ID];
    }
    compare(what, &back, &live, 1);
    MUST(!cudaFree(drivers) && !cudaFree(ours));
}

static void *plain(size_t bytes) {
    void *at;
    return cudaMalloc(&at, bytes) ? NULL : at;
}

static void *pooled(size_t bytes) {
    void *at;
    return cudaMallocAsync(&at, bytes, NULL) ? NULL : at;
}

/* A program that asks for a pointer's tokens, or sets CU_POINTER_SYNC_MEMOPS for it, is about to register the memory
 * with a network card. So the memory stays. */
static void registered(void) {
    void *at;
    unsigned yes = 1;
    MUST(!memstow_scope_enter_(model) && (at = plain(4 * MIB)) && !memstow_scope_leave_(model));
    MUST(memstow_stow_(model) == 4 * (int64_t)MIB && memstow_restore_(model) == 4 * (int64_t)MIB);
    cuPointerSetAttribute(&yes, CU_POINTER_SYNC_MEMOPS, (CUdeviceptr)at); /* the double refuses mapped memory */
    MUST(memstow_stow_(model) == -1 /* EPERM */);
    MUST(!cudaFree(at));
    MUST(!memstow_scope_enter_(model) && (at = plain(4 * MIB)) && !memstow_scope_leave_(model));
    ask(P2P_TOKENS, (CUdeviceptr)at, 1);
    MUST(memstow_stow_(model) == -1);
    MUST(!cudaFree(at));
}

int main(void) {
    find_memstow();
    model = model_open("unet").owner;
    MUST(!memstow_owner_idle_(model, 1));
    MUST(plain(MIB));
    one_kind(0, plain, "cudaMalloc");
    one_kind(0, pooled, "cudaMallocAsync");
    registered();
    puts("ok");
    return 0;
}
