/* python.c — see python.h. It finds interpreters, and walks along a thread's chain of frames.
 *
 * An evaluation loop is one call of _PyEval_EvalFrameDefault. It runs a Python function and the functions that this one
 * calls directly. A call through C code starts another loop. Each loop has a variable in its native frame, and the
 * chain of frames runs through that variable (python_layout.h). The loop's frames are the ones in the chain up to the
 * variable. The variable's address says which native frame it lies in. So the native and the Python stack are merged by
 * addresses alone.
 *
 * The chain is that of the calling thread. No other thread changes it, and all objects in it are alive, because frames
 * hold their code. The walk begins at a thread state. The state could be gone (own_state() checks this) or belong to
 * another thread (state_with_gil() checks this). */
#include "preload/stacks/python.h"

#include <dlfcn.h>

#include "preload/base/lock.h"
#include "preload/ledger/ledger.h"
#include "preload/ledger/ledger_strings.h"
#include "preload/shared/os.h"
#include "preload/stacks/python_code.h"
#include "preload/stacks/python_layout.h"
#include "preload/stacks/python_record.h"
#include "preload/stacks/generation.h"
#include "preload/base/symbol.h"
#include "preload/base/forked.h"

enum { SPINS = 100000, PLAIN_OBJECTS = 256 };

struct interpreter {
    /* the library or program that contains the interpreter; empty after it was unloaded */
    uintptr_t object_start, object_end;
    uintptr_t eval_start, eval_end; /* the main part of the evaluation loop */
    const struct link_map *object;
    uintptr_t runtime;           /* _PyRuntime */
    uintptr_t code_type;         /* PyCode_Type */
    uintptr_t (*own)(void);      /* PyGILState_GetThisThreadState */
    uintptr_t (*attached)(void); /* 3.11: _PyThreadState_UncheckedGet */
    uintptr_t arenas;            /* the function that maps arenas; 0: unknown */
    uint32_t generation;         /* generation_of_code when the interpreter was last found loaded */
    struct python_layout layout;
};
static struct interpreter interpreters[PYTHON_INTERPRETERS];
static uint32_t interpreter_count;
/* The original tp_dealloc of code objects, by interpreter. */
static void (*deallocs[PYTHON_INTERPRETERS])(uintptr_t code);
static struct lock adding;

/* --- finding an interpreter --- */

/* Stands in for tp_dealloc, which CPython calls when a code object dies. Each interpreter gets a tp_dealloc function of
 * its own here, so that the function knows whose code object dies. */
static void code_dies(uint32_t index, uintptr_t code) {
    python_record_dies(code | index);
    deallocs[index](code);
}
#define CODE_DIES(n)                                                                                                   \
    static void code_dies_##n(uintptr_t code) { code_dies(n, code); }
CODE_DIES(0)
CODE_DIES(1)
CODE_DIES(2)
CODE_DIES(3)
CODE_DIES(4)
CODE_DIES(5)
CODE_DIES(6)
CODE_DIES(7)
static void (*const code_dies_of[])(uintptr_t) = {code_dies_0, code_dies_1, code_dies_2, code_dies_3,
                                                  code_dies_4, code_dies_5, code_dies_6, code_dies_7};
_Static_assert(sizeof code_dies_of / sizeof *code_dies_of == PYTHON_INTERPRETERS, "one an interpreter");

static void (**dealloc_of(const struct interpreter *self))(uintptr_t) {
    return (void (**)(uintptr_t))(self->code_type + self->layout.type_dealloc);
}

static bool hears_of_deaths(const struct interpreter *self) {
    return *dealloc_of(self) == code_dies_of[self - interpreters];
}

/* Installs code_dies of this interpreter as tp_dealloc. In a forked child it may be installed already: a thread of the
 * parent may have been adding the interpreter at the fork. */
static void hear_of_deaths(struct interpreter *self) {
    if (hears_of_deaths(self)) return;
    deallocs[self - interpreters] = *dealloc_of(self);
    __atomic_store_n(dealloc_of(self), code_dies_of[self - interpreters], __ATOMIC_RELEASE);
}

/* Finds a variable of the interpreter. A program at a fixed address may have its own copy of a variable. Then the
 * library, too, uses that copy. */
static uintptr_t find_variable(const struct link_map *object, const char *name) {
    const struct link_map *program = object;
    while (program->l_prev) program = program->l_prev;
    uintptr_t found = symbol_find(program, name, NULL);
    return found ? found : symbol_find(object, name, NULL);
}

/* Returns the address of the interpreter's function that maps arenas, in which small objects lie; 0: it is not known.
 * The interpreter gives it in a PyObjectArenaAllocator. */
static uintptr_t find_arenas(const struct link_map *object) {
    struct {
        uintptr_t context, alloc, free;
    } arenas = {0};
    uintptr_t get = symbol_find(object, "PyObject_GetArenaAllocator", NULL); /* copies the structure's three words */
    if (get) ((void (*)(void *))get)(&arenas);
    return arenas.alloc;
}

static bool python_describe(struct interpreter *self, const struct dl_find_object *found, uintptr_t eval, size_t size) {
    const struct link_map *object = found->dlfo_link_map;
    uintptr_t version = find_variable(object, "Py_Version");
    *self = (struct interpreter){
        .object_end = (uintptr_t)found->dlfo_map_end,
        .eval_start = eval,
        .eval_end = eval + size,
        .object = object,
        .runtime = find_variable(object, "_PyRuntime"),
        .code_type = find_variable(object, "PyCode_Type"),
        .own = (uintptr_t(*)(void))symbol_find(object, "PyGILState_GetThisThreadState", NULL),
        .generation = __atomic_load_n(&generation_of_code, __ATOMIC_ACQUIRE),
    };
    if (!version || !self->runtime || !self->code_type || !self->own ||
        !python_layout((uint32_t) * (const unsigned long *)version, (const void *)self->runtime, &self->layout))
        return false;
    if (self->layout.frame_is_entry)
        self->attached = (uintptr_t(*)(void))symbol_find(object, "_PyThreadState_UncheckedGet", NULL);
    self->arenas = find_arenas(object);
    return true;
}

static void say_unknown(void) {
    static bool said;
    if (!__atomic_exchange_n(&said, true, __ATOMIC_RELAXED))
        ledger_fact(SNAP_FACT_NOTE, "call stacks lack the functions of a Python interpreter that memstow cannot read "
                                    "(it reads 3.11 and later)");
}

/* Adds an interpreter. The number of interpreters grows last; from then on other threads see the new one. */
static void add_python_code(const struct dl_find_object *found) {
    uint32_t index = interpreter_count;
    size_t size = 0;
    uintptr_t eval = symbol_find(found->dlfo_link_map, "_PyEval_EvalFrameDefault", &size);
    if (!eval) return;
    struct interpreter *self = &interpreters[index];
    if (index == PYTHON_INTERPRETERS || !python_describe(self, found, eval, size)) {
        say_unknown();
        return;
    }
    hear_of_deaths(self);
    self->object_start = (uintptr_t)found->dlfo_map_start;
    __atomic_store_n(&interpreter_count, index + 1, __ATOMIC_RELEASE);
}

static struct interpreter *interpreter_at(uintptr_t pc) {
    uint32_t count = __atomic_load_n(&interpreter_count, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < count; i++)
        if (pc - interpreters[i].object_start < interpreters[i].object_end - interpreters[i].object_start)
            return &interpreters[i];
    return NULL;
}

bool python_maps_arenas(uintptr_t caller) {
    enum { FUNCTION = 256 };
    const struct interpreter *self = interpreter_at(caller);
    return self && self->arenas && caller - self->arenas < FUNCTION;
}

/* Libraries and programs that contain no interpreter, by start address: most look-ups meet one of them. */
static uint64_t plain_objects[PLAIN_OBJECTS];

static uint64_t plain_word(uintptr_t start, uint32_t generation) {
    return (uint64_t)start << 16 | (uint16_t)generation;
}

/* Takes the lock for adding an interpreter. False: another thread, or this one, already has it. */
static bool begin_adding(void) {
    for (int i = 0; i < SPINS; i++) {
        if (lock_try(&adding)) return true;
        __builtin_ia32_pause();
    }
    return false;
}

/* The interpreter in the library or program that contains the code at `pc`. A new interpreter is added first. NULL:
 * there is none, or another thread is adding one. */
static struct interpreter *look_into_object(uintptr_t pc, uint32_t generation) {
    struct dl_find_object found;
    if (_dl_find_object((void *)pc, &found) || !found.dlfo_link_map) return NULL;
    uintptr_t start = (uintptr_t)found.dlfo_map_start;
    uint64_t *plain = &plain_objects[start / OS_PAGE % PLAIN_OBJECTS], word = plain_word(start, generation);
    if (os_load(plain) == word || !begin_adding()) return NULL;
    if (!interpreter_at(pc)) add_python_code(&found);
    lock_let_go(&adding);
    struct interpreter *self = interpreter_at(pc);
    if (!self) __atomic_store_n(plain, word, __ATOMIC_RELAXED);
    return self;
}

/* Whether the interpreter is still loaded. After a dlclose, another object may be at its address. */
static bool still_there(struct interpreter *self, uint32_t generation) {
    struct dl_find_object found;
    if (likely(self->generation == generation)) return true;
    bool same = !_dl_find_object((void *)self->eval_start, &found) && found.dlfo_link_map == self->object &&
                (uintptr_t)found.dlfo_map_start == self->object_start &&
                symbol_find(self->object, "_PyEval_EvalFrameDefault", NULL) == self->eval_start &&
                hears_of_deaths(self);
    if (same)
        __atomic_store_n(&self->generation, generation, __ATOMIC_RELAXED);
    else
        __atomic_store_n(&self->object_end, self->object_start, __ATOMIC_RELEASE);
    return same;
}

/* --- the thread's chain of frames --- */

/* The latest thread state that this thread had, attached (with the GIL) or not. 0: there is none, or it may be gone. A
 * state can die before its thread only when the interpreter ends. The interpreter first sets runtime_finalizing to the
 * state of the thread that ends it. From then on, any other state may be gone. */
static uintptr_t own_state(const struct interpreter *self) {
    static __thread bool inside __attribute__((tls_model("initial-exec")));
    if (inside) return 0; /* a nested call: self->own() may make thread-local storage, which calls malloc */
    inside = true;
    uintptr_t state = self->own();
    inside = false;
    uintptr_t ending =
        __atomic_load_n((uintptr_t *)(self->runtime + self->layout.runtime_finalizing), __ATOMIC_RELAXED);
    return ending && ending != state ? 0 : state;
}

/* The thread state that has the GIL, if it belongs to this thread; else 0. It is used for 3.11 only: there, own_state
 * gives only the thread's first state, and never that of a subinterpreter. So the state with the GIL is tried
 * second. */
static uintptr_t state_with_gil(const struct interpreter *self) {
    uintptr_t state = self->attached ? self->attached() : 0;
    return state && python_word(state, self->layout.thread_id) == os_thread() ? state : 0;
}

/* The first frame of the chain; 0: there is none. */
static uintptr_t chain_head(const struct interpreter *self, unsigned attempt) {
    uintptr_t state = attempt == 0 ? own_state(self) : state_with_gil(self);
    return state ? python_word(state, self->layout.thread_head) : 0;
}

static void begin_walk(struct python_walk *walk, const struct interpreter *self, unsigned attempt) {
    *walk = (struct python_walk){chain_head(self, attempt), (uint16_t)(1 + (self - interpreters)), (uint16_t)attempt};
}

/* Whether a frame is complete, by the rule of _PyFrame_IsIncomplete. An incomplete frame is still being made, and
 * tracebacks do not show it either. In free-threaded interpreters a thread may run its own copy of the code. Then it is
 * not known whether the frame is complete, and it is shown. */
static bool python_is_shown(const struct interpreter *self, uintptr_t frame, uintptr_t code, uintptr_t instruction) {
    const struct python_layout *at = &self->layout;
    if (!code || python_word(code, at->object_type) != self->code_type) return false;
    if (python_byte(frame, at->frame_owner) == PYTHON_GENERATOR_OWNER) return true;
    intptr_t offset = (intptr_t)(instruction - code - at->code_start);
    return offset >= (int32_t)python_half(code, at->code_first_traceable) * (intptr_t)2 || offset < -2;
}

static inline struct python_frame frame_at(const struct interpreter *self, uintptr_t frame) {
    uintptr_t code = python_untagged(python_word(frame, self->layout.frame_code));
    return (struct python_frame){frame, code | (uintptr_t)(self - interpreters),
                                 python_word(frame, self->layout.frame_instruction)};
}

static inline bool is_entry(const struct python_layout *at, uintptr_t frame) {
    return !at->frame_is_entry && python_byte(frame, at->frame_owner) >= at->entry_owner;
}

/* The next frame outwards in the same loop; 0: there is none. */
static inline uintptr_t next_of(const struct python_layout *at, uintptr_t frame) {
    if (at->frame_is_entry && python_byte(frame, at->frame_is_entry)) return 0;
    return python_word(frame, at->frame_previous);
}

/* Collects the frames from this one to the end of its loop. *end is the loop's entry frame; 0 in 3.11. */
static size_t python_collect(const struct interpreter *self, uintptr_t frame, uintptr_t *end, struct python_frame *out,
                             size_t capacity) {
    size_t count = 0;
    for (; frame && !is_entry(&self->layout, frame); frame = next_of(&self->layout, frame)) {
        struct python_frame found = frame_at(self, frame);
        if (!python_is_shown(self, frame, python_plain(found.code), found.instruction)) continue;
        if (count < capacity) out[count] = found;
        count++;
    }
    *end = frame;
    return count;
}

/* --- a loop's variable: its _PyCFrame (3.11, 3.12) or its entry frame (from 3.13) --- */

static bool has_cframes(const struct interpreter *self) { return self->layout.cframe_previous != 0; }

/* Follows the _PyCFrames outwards along the native stack to the one in [slot, cfa); 0: there is none. The outermost one
 * lies in the thread state and belongs to no loop. */
static uintptr_t find_cframe(struct python_walk *walk, const struct interpreter *self, uintptr_t slot, uintptr_t cfa) {
    uintptr_t cframe = walk->at, before = 0;
    for (; cframe > before && cframe < slot; cframe = python_word(cframe, self->layout.cframe_previous))
        before = cframe;
    if (cframe < slot || cframe >= cfa) return 0;
    return walk->at = cframe;
}

/* Collects the frames of the loop whose native frame is [slot, cfa), and finds its variable. Returns how many frames
 * there are. If the walk does not meet the variable, *variable is 0. */
static size_t walk_to(struct python_walk *walk, const struct interpreter *self, uintptr_t slot, uintptr_t cfa,
                      uintptr_t *variable, struct python_frame *out, size_t capacity) {
    uintptr_t end;
    if (has_cframes(self)) {
        *variable = find_cframe(walk, self, slot, cfa);
        return *variable ? python_collect(self, python_word(*variable, self->layout.cframe_frame), &end, out, capacity)
                         : 0;
    }
    *variable = 0;
    for (uintptr_t frame = walk->at; frame; frame = python_word(end, self->layout.frame_previous)) {
        size_t count = python_collect(self, frame, &end, out, capacity);
        if (!end || end >= cfa) return 0;
        if (end < slot) continue; /* the entry of a loop further in */
        walk->at = python_word(end, self->layout.frame_previous);
        *variable = end;
        return count;
    }
    return 0;
}

static size_t find_loop(struct python_walk *walk, const struct interpreter *self, uintptr_t slot, uintptr_t cfa,
                        uintptr_t *variable, struct python_frame *out, size_t capacity) {
    if (walk->interpreter != self - interpreters + 1) begin_walk(walk, self, 0);
    size_t count = walk_to(walk, self, slot, cfa, variable, out, capacity);
    if (likely(*variable)) return count;
    struct python_walk other;
    begin_walk(&other, self, !walk->attempt);
    count = walk_to(&other, self, slot, cfa, variable, out, capacity);
    if (*variable) *walk = other;
    return count;
}

/* --- functions that the unwinder calls --- */

bool python_is_eval(uintptr_t pc, uintptr_t slot, uintptr_t cfa) {
    uint32_t generation = __atomic_load_n(&generation_of_code, __ATOMIC_ACQUIRE);
    struct interpreter *self = interpreter_at(pc - 1); /* a call may be the last instruction of a function */
    if (self && !still_there(self, generation)) self = NULL;
    if (!self) self = look_into_object(pc - 1, generation);
    if (!self) return false;
    if (pc - 1 - self->eval_start < self->eval_end - self->eval_start) return true;
    struct python_walk walk = {0};
    uintptr_t variable = 0;
    if (cfa > slot) find_loop(&walk, self, slot, cfa, &variable, NULL, 0);
    return variable != 0;
}

size_t python_frames(struct python_walk *walk, uintptr_t slot, uintptr_t cfa, uintptr_t *anchor,
                     struct python_frame *out, size_t capacity) {
    const struct interpreter *self = interpreter_at(*(const uintptr_t *)slot);
    uintptr_t variable = 0;
    size_t count = self ? find_loop(walk, self, slot, cfa, &variable, out, capacity) : 0;
    *anchor = variable ? variable | (uintptr_t)(self - interpreters) : 0;
    if (!variable) ledger_lost(SNAP_LOST_PYTHON);
    return count;
}

/* The innermost frame of a loop, for Python 3.13 and later. `inner` has the entry frame of a loop that runs further in,
 * or is 0. If both loops are of the same interpreter, the result is the next frame outwards from that entry frame.
 * Otherwise it is the head of the chain. */
static uintptr_t first_frame(const struct interpreter *self, uintptr_t inner, uintptr_t anchor) {
    bool same_interpreter = inner && !((inner ^ anchor) & PYTHON_INDEX_MASK);
    return same_interpreter ? python_word(python_plain(inner), self->layout.frame_previous) : chain_head(self, 0);
}

/* Returns expected->frame, which the caller has found equal to the chain's frame. Loads it from `expected`, so that the
 * processor need not wait for one link of the chain before it reads the next. */
static inline uintptr_t as_expected(const struct python_frame *expected) {
    uintptr_t frame;
    /* In C the compiler would return the chain's frame, because it knows that the two frames are equal. */
    __asm__("movq %1, %0" : "=r"(frame) : "m"(expected->frame));
    return frame;
}

/* Whether the chain from `frame` to the end of its loop holds exactly the `expected` frames; hidden frames do not
 * count. The chain must end at `entry`, unless `entry` is 0. The function works for any layout. */
static __attribute__((noinline)) bool same_at_length(const struct interpreter *self, uintptr_t frame,
                                                     const struct python_frame *expected, size_t count,
                                                     uintptr_t entry) {
    const struct python_layout *at = &self->layout;
    const struct python_frame *last = expected + count;
    for (; frame && !is_entry(at, frame); frame = next_of(at, frame)) {
        struct python_frame found = frame_at(self, frame);
        if (expected < last && expected->frame == frame && expected->code == found.code &&
            expected->instruction == found.instruction)
            expected++;
        else if (python_is_shown(self, frame, python_plain(found.code), found.instruction))
            return false;
    }
    return expected == last && (!entry || frame == entry);
}

/* As same_at_length, but fast if every frame is as expected. `at` is a compile-time constant where possible. The
 * loop need not look for entry frames: an entry frame runs other code, so it never equals an expected frame. */
static inline __attribute__((always_inline)) bool same_frames(const struct interpreter *self,
                                                              const struct python_layout *at, uintptr_t index,
                                                              uintptr_t frame, const struct python_frame *expected,
                                                              size_t count, uintptr_t entry) {
    for (; count; count--, expected++) {
        if (unlikely(!frame || expected->frame != frame)) return same_at_length(self, frame, expected, count, entry);
        __builtin_prefetch((const void *)(expected[PYTHON_AHEAD].frame + at->frame_code));
        uintptr_t here = as_expected(expected), code = python_untagged(python_word(here, at->frame_code)) | index;
        if (unlikely(code != expected->code || python_word(here, at->frame_instruction) != expected->instruction))
            return same_at_length(self, frame, expected, count, entry);
        frame = next_of(at, here);
    }
    if (likely(frame == entry || (!entry && is_entry(at, frame)))) return true;
    return same_at_length(self, frame, expected, 0, entry);
}

static __attribute__((noinline)) bool same_from_313(const struct interpreter *self, uintptr_t inner, uintptr_t anchor,
                                                    const struct python_frame *frames, size_t count) {
    uintptr_t index = anchor & PYTHON_INDEX_MASK, first = first_frame(self, inner, anchor);
    return same_frames(self, &self->layout, index, first, frames, count, python_plain(anchor));
}

bool python_same(uintptr_t inner, uintptr_t anchor, const struct python_frame *frames, size_t count) {
    if (unlikely(!anchor)) return count == 0;
    uintptr_t index = anchor & PYTHON_INDEX_MASK, variable = python_plain(anchor);
    const struct interpreter *self = &interpreters[index];
    if (likely(self->layout.fixed == 11)) {
        uintptr_t first = python_word(variable, python_layout_311.cframe_frame);
        return same_frames(self, &python_layout_311, index, first, frames, count, 0);
    }
    if (self->layout.fixed == 12) {
        uintptr_t first = python_word(variable, python_layout_312.cframe_frame);
        return same_frames(self, &python_layout_312, index, first, frames, count, 0);
    }
    return same_from_313(self, inner, anchor, frames, count);
}

uint32_t python_frame_record(const struct python_frame *frame) {
    const struct interpreter *self = &interpreters[frame->code & PYTHON_INDEX_MASK];
    return python_record(&self->layout, frame->code, frame->instruction);
}

void python_abandon(void) { adding = (struct lock){0}; }
FORKED(python_abandon);
