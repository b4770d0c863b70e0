// Call stacks while C++ unwinds: memory of the exception itself, destructors that allocate on the way, catch clauses,
// exceptions within exceptions, and calls after everything is over.
// needs: stacks
// build: -O2 -fno-builtin
#include "stacks.h"

#include <exception>

enum {
    PAYLOAD = 10007,
    DESTRUCTOR = 20011,
    CATCH = 20021,
    NESTED = 20023,
    RETHROWN = 20029,
    AFTER = 20047,
    NEW = 20051
};

struct Payload {
    char bytes[100];
};
struct KeptPayload {
    char bytes[PAYLOAD];
};

extern "C" {
static void *volatile kept_new;

struct Guard {
    ~Guard();
};

FRAME static void thrower(int depth) {
    if (depth == 0) throw Payload();
    thrower(depth - 1);
    STAY;
}
FRAME static void keep_thrower(int depth) {
    if (depth == 0) throw KeptPayload();
    keep_thrower(depth - 1);
    STAY;
}
FRAME static void in_destructor(void) {
    KEEP(DESTRUCTOR);
    STAY;
}
FRAME static void guarded(void) {
    Guard guard;
    thrower(3);
    STAY;
}
FRAME static void in_catch(void) {
    KEEP(CATCH);
    STAY;
}
FRAME static void in_nested(void) {
    KEEP(NESTED);
    STAY;
}
FRAME static void after_all(void) {
    KEEP(AFTER);
    STAY;
}
FRAME static void rethrown(void) {
    KEEP(RETHROWN);
    STAY;
}
FRAME static void nest(void) {
    try {
        throw 1;
    } catch (int) {
        in_nested();
        throw;
    }
}
FRAME static void catcher(void) {
    try {
        guarded();
    } catch (const Payload &) {
        in_catch();
        try {
            nest();
        } catch (int) {
            rethrown();
        }
    }
    after_all();
    STAY;
}
FRAME static void news(void) {
    kept_new = operator new(NEW);
    STAY;
}
}
FRAME Guard::~Guard() {
    in_destructor();
    STAY;
}

FRAME static void keep_payload(void) {
    static auto &kept = *new std::exception_ptr;
    try {
        keep_thrower(2);
    } catch (...) {
        kept = std::current_exception(); /* so that its memory is live when the report is made */
    }
}

int main(void) {
    catcher();
    keep_payload();
    news();
    EXPECT_STACK(DESTRUCTOR, "in_destructor<Guard::~Guard*<guarded*<catcher*<main");
    EXPECT_STACK(CATCH, "in_catch<catcher*<main");
    EXPECT_STACK(NESTED, "in_nested<nest*<catcher*<main");
    EXPECT_STACK(RETHROWN, "rethrown<catcher*<main");
    EXPECT_STACK(AFTER, "after_all<catcher*<main");
    EXPECT_STACK(NEW, "operator new*<news<main");
    EXPECT_STACK(PAYLOAD + 128,
                 "__cxa_allocate_exception<keep_thrower*{3}<keep_payload*<main"); /* libstdc++ adds some bytes */
    return 0;
}
