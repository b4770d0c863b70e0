// C++ code that uses the allocator in many ways runs as without memstow, and every block is counted. The code has
// exceptions across libraries and threads, bad_alloc and new handlers, longjmp, coroutines, and new and delete of every
// kind.
// run:
// run: --stacks=none
// run: --allocator=mimalloc
// build: -std=c++20 -fno-builtin
#include "expect.h"

#include <coroutine>
#include <csetjmp>
#include <cstdint>
#include <dlfcn.h>
#include <exception>
#include <future>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static int (*throw_through)(int (*)(int), int);

/* --- exceptions --- */

static int again(int depth) {
    std::vector<int> held(1000, depth);
    return throw_through(again, depth) + held[0];
}

static void exceptions() {
    int caught = 0;
    for (int i = 0; i < 200; i++)
        try {
            again(i % 20);
        } catch (const std::runtime_error &error) {
            caught += std::string(error.what()).size() == 218;
        }
    MUST(caught == 200);
    auto other = std::async(std::launch::async, [] { return again(3); });
    try {
        other.get();
        MUST(false);
    } catch (...) {
        std::exception_ptr kept = std::current_exception();
        try {
            std::rethrow_exception(kept);
        } catch (const std::exception &error) {
            MUST(error.what()[0] == 'f');
        }
    }
}

/* --- no memory --- */

static std::unique_ptr<char[]> reserve;
static int handler_calls;

static void give_up_reserve() {
    handler_calls++;
    if (!reserve)
        throw std::bad_alloc();
    reserve.reset();
}

static void no_memory() {
    volatile size_t huge = PTRDIFF_MAX - 100;
    int refused = 0;
    try {
        operator delete(operator new(huge));
    } catch (const std::bad_alloc &) {
        refused++;
    }
    MUST(new (std::nothrow) char[huge] == nullptr);
    try {
        std::vector<char>().reserve(huge);
    } catch (const std::bad_alloc &) {
        refused++;
    }
    reserve.reset(new char[1 << 20]);
    std::set_new_handler(give_up_reserve);
    try {
        operator delete(operator new(huge, std::align_val_t(256)));
    } catch (const std::bad_alloc &) {
        refused++;
    }
    std::set_new_handler(nullptr);
    MUST(refused == 3 && handler_calls == 2);
}

/* --- jumps --- */

static jmp_buf target;
static char *volatile survivors[50];

static void jump_from(int depth) {
    char *volatile block = (char *)malloc(100 + depth);
    if (depth == 0) {
        free(block);
        longjmp(target, 7);
    }
    jump_from(depth - 1);
    free(block);
}

static void jumps() {
    volatile int i = 0;
    while (i < 50) {
        survivors[i] = new char[16];
        if (setjmp(target) == 0)
            jump_from(i % 10);
        i = i + 1;
    }
    for (char *p : survivors)
        delete[] p;
}

/* --- coroutines --- */

struct Numbers {
    struct promise_type {
        int value = 0;
        std::exception_ptr failure;
        Numbers get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
        std::suspend_always initial_suspend() { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        std::suspend_always yield_value(int v) {
            value = v;
            return {};
        }
        void return_void() {}
        void unhandled_exception() { failure = std::current_exception(); }
    };
    std::coroutine_handle<promise_type> handle;
};

static Numbers count(int from, int to, std::string label) {
    for (int i = from; i < to; i++) {
        std::string grown = label + std::string(i % 300, '.');
        co_yield (int)grown.size();
    }
    throw std::out_of_range("the end");
}

static void coroutines() {
    std::vector<Numbers> all;
    for (int i = 0; i < 100; i++)
        all.push_back(count(i, i + 50, "a label that is too long for the string itself"));
    long sum = 0;
    int ended = 0;
    auto drive = [&](size_t from, size_t step) { /* frames are made here, resumed on one thread, destroyed on another */
        for (size_t i = from; i < all.size(); i += step)
            while (!all[i].handle.done())
                all[i].handle.resume(), __atomic_fetch_add(&sum, (long)all[i].handle.promise().value, __ATOMIC_RELAXED);
    };
    std::thread first(drive, 0, 2), second(drive, 1, 2);
    first.join(), second.join();
    for (Numbers &one : all) {
        ended += one.handle.promise().failure != nullptr;
        one.handle.destroy();
    }
    MUST(ended == 100);
    say("coroutines yielded %ld", sum);
}

/* --- new and delete --- */

struct alignas(128) Wide {
    char bytes[200];
};
struct Polymorphic {
    virtual ~Polymorphic() = default;
    std::string text = std::string(500, 'p');
};
struct Derived : Polymorphic {
    Wide wide;
};

static void kinds_of_new() {
    std::unique_ptr<Polymorphic> object(new Derived); /* sized and aligned delete, through the base class */
    MUST((uintptr_t)&static_cast<Derived &>(*object).wide % 128 == 0);
    Wide *wide = new Wide[7];
    MUST((uintptr_t)wide % 128 == 0);
    delete[] wide;
    void *p = operator new(1000, std::align_val_t(4096));
    MUST((uintptr_t)p % 4096 == 0);
    operator delete(p, 1000, std::align_val_t(4096));
    operator delete(operator new(24), (size_t)24);
    operator delete[](operator new[](100000, std::nothrow), std::nothrow);
    MUST(operator new(0) != operator new(0)); /* these two blocks are never freed */
    char arena[64];
    MUST((void *)new (arena) int(5) == arena);
    std::shared_ptr<Derived> shared = std::make_shared<Derived>();
    std::weak_ptr<Derived> weak = shared;
    std::thread([moved = std::move(shared)]() mutable { moved.reset(); }).join();
    MUST(weak.expired());
}

static char *volatile kept;

int main() {
    void *library = dlopen(PROG_LIB "/thrower.so", RTLD_NOW);
    MUST(library);
    throw_through = (int (*)(int (*)(int), int))dlsym(library, "throw_through");
    void (*const steps[])() = {exceptions, no_memory, jumps, coroutines, kinds_of_new};
    for (auto step : steps)
        step();
    kept = (char *)operator new(3 << 20); /* a new expression might be optimised away */
    say("expect totals.host.live_bytes >= %d", 3 << 20);
    /* also live: libstdc++'s reserve for exceptions, and memory of the loader */
    say("expect totals.host.live_bytes < %d", (3 << 20) + 200000);
    say("expect large_blocks[size_bytes=%d].size_bytes == %d", 3 << 20, 3 << 20);
    say("ok");
    return 0;
}
