/* thunks.S — the exported symbols. Each is a prologue of its own, with room for clients that patch it, and goes on to
 * the entry. Resolvers answer with the entry itself. */
#if defined(__x86_64__)
#define E(name, symbol, since, per_thread) \
    .balign 64; .globl symbol; .type symbol, @function; symbol: endbr64; push %rbp; mov %rsp, %rbp; \
    .nops 16; pop %rbp; jmp sim_##symbol; .size symbol, . - symbol;
#elif defined(__aarch64__)
#define E(name, symbol, since, per_thread) \
    .balign 64; .globl symbol; .type symbol, %function; symbol: nop; nop; nop; nop; b sim_##symbol; \
    .size symbol, . - symbol;
#endif
    .text
#include "entries.def"
    .section .note.GNU-stack, "", %progbits
