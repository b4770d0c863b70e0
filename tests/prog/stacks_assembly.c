// Call stacks through hand-written assembly: with unwind data of every kind that a caller can have, and without any.
// Without unwind data the stack ends, and no caller is made up.
// needs: stacks
// build: -O2
#include "stacks.h"

enum {
    PUSHES = 10007,
    FRAME_POINTER = 10009,
    EXPRESSION = 10037,
    SAVED_ELSEWHERE = 10039,
    REMEMBERED = 10061,
    WITHOUT = 10067,
    BROKEN = 10069,
    BELOW_WITHOUT = 10079
};

static volatile unsigned size;

FRAME static void allocate(void) {
    KEEP(size);
    STAY;
}
FRAME static void below(void) {
    allocate();
    STAY;
}

#define FUNCTION(name) ".text\n.globl " name "\n.type " name ",@function\n" name ":\n"
#define END(name) ".size " name ", . - " name "\n"

void pushes(void (*call)(void));
__asm__(FUNCTION("pushes") ".cfi_startproc\n"
                           "pushq %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset %rbx, 0\n"
                           "pushq %rbp\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset %rbp, 0\n"
                           "subq $4104, %rsp\n.cfi_adjust_cfa_offset 4104\n"
                           "xorl %ebp, %ebp\n" /* 0, because rbp is no frame pointer here and must not look like one */
                           "call *%rdi\n"
                           "addq $4104, %rsp\n.cfi_adjust_cfa_offset -4104\n"
                           "popq %rbp\n.cfi_adjust_cfa_offset -8\n.cfi_restore %rbp\n"
                           "popq %rbx\n.cfi_adjust_cfa_offset -8\n.cfi_restore %rbx\n"
                           "ret\n.cfi_endproc\n" END("pushes"));

void frame_pointer(void (*call)(void));
__asm__(FUNCTION("frame_pointer") ".cfi_startproc\n"
                                  "pushq %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset %rbp, -16\n"
                                  "movq %rsp, %rbp\n.cfi_def_cfa_register %rbp\n"
                                  "subq $256, %rsp\nandq $-256, %rsp\n" /* rsp can be anywhere from here on */
                                  "call *%rdi\n"
                                  "leave\n.cfi_def_cfa %rsp, 8\n.cfi_restore %rbp\n"
                                  "ret\n.cfi_endproc\n" END("frame_pointer"));

/* The CFA is *(rbp - 8), and the caller's rbp is saved at rbp + 0, as when GCC realigns the stack. */
void by_expression(void (*call)(void));
__asm__(FUNCTION("by_expression") ".cfi_startproc\n"
                                  "leaq 8(%rsp), %r10\n.cfi_def_cfa %r10, 0\n"
                                  "andq $-64, %rsp\n"
                                  "pushq -8(%r10)\n"
                                  "pushq %rbp\n.cfi_escape 0x10, 6, 2, 0x76, 0\n"
                                  "movq %rsp, %rbp\n"
                                  "pushq %r10\n.cfi_escape 0x0f, 3, 0x76, 0x78, 0x06\n"
                                  "subq $8, %rsp\n"
                                  "call *%rdi\n"
                                  "addq $8, %rsp\n"
                                  "popq %r10\n.cfi_def_cfa %r10, 0\n"
                                  "popq %rbp\n"
                                  "leaq -8(%r10), %rsp\n.cfi_def_cfa %rsp, 8\n"
                                  "ret\n.cfi_endproc\n" END("by_expression"));

/* rbp is saved far from the return address, below other data. */
void saved_elsewhere(void (*call)(void));
__asm__(FUNCTION("saved_elsewhere") ".cfi_startproc\n"
                                    "subq $520, %rsp\n.cfi_def_cfa_offset 528\n"
                                    "movq %rbp, 16(%rsp)\n.cfi_offset %rbp, -512\n"
                                    "movq $1, %rbp\n"
                                    "call *%rdi\n"
                                    "movq 16(%rsp), %rbp\n.cfi_restore %rbp\n"
                                    "addq $520, %rsp\n.cfi_def_cfa_offset 8\n"
                                    "ret\n.cfi_endproc\n" END("saved_elsewhere"));

/* The function returns in the middle; the call comes after that return. */
void remembered(void (*call)(void));
__asm__(FUNCTION("remembered") ".cfi_startproc\n"
                               "subq $24, %rsp\n.cfi_def_cfa_offset 32\n"
                               "testq %rdi, %rdi\njnz 1f\n"
                               ".cfi_remember_state\naddq $24, %rsp\n.cfi_def_cfa_offset 8\nret\n.cfi_restore_state\n"
                               "1: call *%rdi\n"
                               "addq $24, %rsp\n.cfi_def_cfa_offset 8\n"
                               "ret\n.cfi_endproc\n" END("remembered"));

/* This one has no unwind data, and its frame contains false return addresses. */
void without(void (*call)(void));
__asm__(FUNCTION("without") "subq $24, %rsp\n"
                            "leaq without(%rip), %rax\nmovq %rax, (%rsp)\nmovq %rax, 8(%rsp)\nmovq %rax, 16(%rsp)\n"
                            "call *%rdi\n"
                            "addq $24, %rsp\nret\n" END("without"));

/* The unwind data of this function says that its caller is undefined, so the stack ends here. */
void bottom(void (*call)(void));
__asm__(FUNCTION("bottom") ".cfi_startproc\n.cfi_undefined %rip\n"
                           "subq $8, %rsp\ncall *%rdi\naddq $8, %rsp\nret\n.cfi_endproc\n" END("bottom"));

FRAME static void through(unsigned bytes, void (*function)(void (*)(void)), void (*call)(void)) {
    size = bytes;
    function(call);
    STAY;
}

int main(void) {
    through(PUSHES, pushes, allocate);
    through(FRAME_POINTER, frame_pointer, allocate);
    through(EXPRESSION, by_expression, allocate);
    through(SAVED_ELSEWHERE, saved_elsewhere, allocate);
    through(REMEMBERED, remembered, allocate);
    through(WITHOUT, without, allocate);
    through(BELOW_WITHOUT, without, below);
    through(BROKEN, bottom, allocate);
    EXPECT_STACK(PUSHES, "allocate<pushes<through<main");
    EXPECT_STACK(FRAME_POINTER, "allocate<frame_pointer<through<main");
    EXPECT_STACK(EXPRESSION, "allocate<by_expression<through<main");
    EXPECT_STACK(SAVED_ELSEWHERE, "allocate<saved_elsewhere<through<main");
    EXPECT_STACK(REMEMBERED, "allocate<remembered<through<main");
    EXPECT_STACK(WITHOUT, "allocate<without<?<through<main");
    EXPECT_STACK(BELOW_WITHOUT, "allocate<below<without<?<through<main");
    EXPECT_STACK(BROKEN, "allocate<bottom<.");
    return 0;
}
