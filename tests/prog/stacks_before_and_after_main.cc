// Call stacks of code that runs outside of main: constructors, initialisers of C++, functions of atexit, destructors.
// needs: stacks
// build: -O2 -fno-builtin
#include "stacks.h"

enum { CONSTRUCTOR = 10007, OBJECT = 10009, LOCAL = 10037, AT_EXIT = 10039, DESTRUCTOR = 10061 };

extern "C" {
FRAME static void allocate(unsigned size) {
    KEEP(size);
    STAY;
}
FRAME __attribute__((constructor)) static void constructor(void) {
    allocate(CONSTRUCTOR);
    STAY;
}
FRAME __attribute__((destructor)) static void destructor(void) {
    allocate(DESTRUCTOR);
    STAY;
}
FRAME static void at_exit(void) {
    allocate(AT_EXIT);
    STAY;
}
}

struct Object {
    FRAME explicit Object(unsigned size) {
        allocate(size);
        STAY;
    }
};
static Object object(OBJECT);

extern "C" {
FRAME static void first_use(void) {
    static Object local(LOCAL);
    STAY;
}
}

int main(void) {
    MUST(atexit(at_exit) == 0);
    first_use();
    EXPECT_STACK(CONSTRUCTOR, "allocate<constructor<...<_start<.");
    EXPECT_STACK(OBJECT, "allocate<Object::Object*<...<_start<.");
    EXPECT_STACK(LOCAL, "allocate<Object::Object*<first_use<main");
    EXPECT_STACK(AT_EXIT, "allocate<at_exit<...<_start<.");
    EXPECT_STACK(DESTRUCTOR, "allocate<destructor<...<_start<.");
    return 0;
}
