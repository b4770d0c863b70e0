/* cfi.h — reads .eh_frame: from a code address to the rule that finds the caller's frame.
 * In: an object's unwind tables and an address. Out: a rule, or the reason why there is none. Even if the tables are
 * damaged or hostile, this code must never read outside the given range, allocate, lock, touch errno or loop for
 * long. */
#ifndef MEMSTOW_CFI_H
#define MEMSTOW_CFI_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* How the CFA of a frame follows from its registers. The CFA is the value of rsp before the call that made this frame.
 * The return address lies at CFA - 8, and the caller's rsp is the CFA, unless a kind says otherwise. */
enum cfi_kind {
    CFI_UNKNOWN,  /* `why` gives the reason */
    CFI_SP,       /* rsp + cfa */
    CFI_BP,       /* rbp + cfa */
    CFI_BP_DEREF, /* the word at rbp + cfa: the frame was realigned */
    /* rsp points to a ucontext_t with all registers of the interrupted code. The rip in the ucontext_t is the address
     * of the interrupted instruction, not a return address */
    CFI_SIGNAL,
    CFI_END /* the outermost frame: it has no caller */
};

enum cfi_why {
    CFI_KNOWN,
    CFI_NO_TABLE,       /* the program or library has no unwind table that can be read */
    CFI_NO_ENTRY,       /* the table says nothing about this address */
    CFI_TOO_LONG,       /* the search for the entry or for its row exceeds a limit of cfi.c */
    CFI_FORMAT,         /* x86-64 Linux does not use this version, augmentation or encoding */
    CFI_REGISTER,       /* the CFA comes from a register other than rsp and rbp, or the caller's rsp is not the CFA */
    CFI_EXPRESSION,     /* the CFA comes from an expression of unknown form */
    CFI_RETURN_ADDRESS, /* the return address is not at CFA - 8 */
    CFI_FRAME_POINTER,  /* the caller's rbp is not saved at a fixed distance from the CFA or rbp */
    CFI_OFFSET,         /* a distance is too large, or is not a multiple of 8 */
    CFI_ODD_SIGNAL,     /* a signal frame that is not the kernel's */
    CFI_MALFORMED,
    CFI_WHYS
};

enum { CFI_SAME = INT32_MIN }; /* the caller's rbp is the same as this frame's */

struct cfi_rule {
    uint8_t kind;
    uint8_t why;     /* CFI_KNOWN unless kind is CFI_UNKNOWN */
    bool bp_at_bp;   /* the caller's rbp was saved at rbp + bp rather than at CFA + bp */
    int32_t cfa, bp; /* bytes; bp may be CFI_SAME. Both are unused for CFI_UNKNOWN, CFI_SIGNAL and CFI_END */
};

/* Where CFI_SIGNAL finds the interrupted registers, in bytes from rsp. */
enum { CFI_SIGNAL_BP = 120, CFI_SIGNAL_SP = 160, CFI_SIGNAL_PC = 168 };

/* The .eh_frame_hdr of an object (the program or a library), and the range of memory in which its tables may be
 * read. */
struct cfi_object {
    uintptr_t header, start, end; /* header 0: the object has none */
};

/* Finds the object that contains the code at pc. False: the loader knows none. The object's range is the loaded segment
 * that holds its header, because memory between segments may be unreadable. */
bool cfi_object_of(uintptr_t pc, struct cfi_object *object);

/* The rule for the instruction at pc. For a return address the caller passes the byte before it. For an interrupted
 * instruction the caller passes the address of the instruction. Any thread may call this at any time, also in a signal
 * handler. */
struct cfi_rule cfi_find(const struct cfi_object *object, uintptr_t pc);

#pragma GCC visibility pop

#endif
