/* cfi.h — reads .eh_frame: one code address → the rule by which the caller's frame is found there.
 * In: an object's unwind tables and an address. Out: a rule, or why there is none. It must never read outside the range
 * given, allocate, lock, touch errno or loop for long, whatever the tables hold. */
#ifndef MEMSTOW_CFI_H
#define MEMSTOW_CFI_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* How the CFA (the value of rsp before the call that made this frame) follows from the registers of this frame. The
 * return address lies at CFA - 8 and the caller's rsp is the CFA, except where said otherwise. */
enum cfi_kind {
    CFI_UNKNOWN,  /* `why` says why */
    CFI_SP,       /* rsp + cfa */
    CFI_BP,       /* rbp + cfa */
    CFI_BP_DEREF, /* the word at rbp + cfa: a frame that was realigned */
    CFI_SIGNAL,   /* rsp points to a ucontext_t: all registers of the interrupted code are in it, its rip is exact */
    CFI_END       /* nobody called this */
};

enum cfi_why {
    CFI_KNOWN,
    CFI_NO_TABLE,       /* the object has no unwind table that can be read */
    CFI_NO_ENTRY,       /* the table says nothing about this address */
    CFI_TOO_LONG,       /* a table without index, or a row, that takes too long to find */
    CFI_FORMAT,         /* a version, augmentation or encoding that x86-64 Linux has no use for */
    CFI_REGISTER,       /* the CFA comes from a register other than rsp and rbp, or the caller's rsp is not the CFA */
    CFI_EXPRESSION,     /* the CFA comes from an expression of no known form */
    CFI_RETURN_ADDRESS, /* it is not at CFA - 8 */
    CFI_FRAME_POINTER,  /* the caller's rbp is not in memory at a distance from CFA or rbp */
    CFI_OFFSET,         /* a distance that is absurd, or no multiple of 8 */
    CFI_ODD_SIGNAL,     /* a signal frame, and not the kernel's */
    CFI_MALFORMED,
    CFI_WHYS
};

enum { CFI_SAME = INT32_MIN }; /* the caller's rbp is this frame's */

struct cfi_rule {
    uint8_t kind;
    uint8_t why;     /* CFI_KNOWN unless kind is CFI_UNKNOWN */
    bool bp_at_bp;   /* the caller's rbp was saved at rbp + bp rather than at CFA + bp */
    int32_t cfa, bp; /* bytes; bp may be CFI_SAME. Both say nothing for CFI_UNKNOWN, CFI_SIGNAL and CFI_END */
};

/* Where CFI_SIGNAL finds the interrupted registers, in bytes from rsp. */
enum { CFI_SIGNAL_BP = 120, CFI_SIGNAL_SP = 160, CFI_SIGNAL_PC = 168 };

/* An object's .eh_frame_hdr, and all that may be read to follow it. */
struct cfi_object {
    uintptr_t header, start, end; /* header 0: it has none */
};

/* The object that the code at pc belongs to; false when the loader knows none. The range is the loaded segment that
 * holds the header: what lies between segments need not be readable. */
bool cfi_object_of(uintptr_t pc, struct cfi_object *object);

/* The rule for the instruction at pc. For a return address the caller passes the byte before it, except for the one
 * that a signal interrupted. Any thread, any time, signal handlers included. */
struct cfi_rule cfi_find(const struct cfi_object *object, uintptr_t pc);

#pragma GCC visibility pop

#endif
