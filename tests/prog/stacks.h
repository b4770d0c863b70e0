/* stacks.h — how a program test states the expected call stack of each of its blocks (tests/expectations.py has the
 * protocol). Functions that must be on the stack are FRAME: they are neither inlined nor cloned. STAY behind a call
 * prevents a tail call, so the function stays on the stack. Each block has a size of its own, by which the report's
 * site is found. */
#ifndef STACKS_H
#define STACKS_H

#include "expect.h"

#include <stdbool.h>
#include <stdint.h>

#if defined(__clang__)
#define FRAME __attribute__((noinline))
#else
#define FRAME __attribute__((noipa))
#endif
#define STAY __asm__ volatile("" ::: "memory")

static void *volatile stacks_kept[64];
static unsigned stacks_count;

/* A macro, so that no frame of ours is in between. */
#define KEEP(size) ((void)(stacks_kept[__atomic_fetch_add(&stacks_count, 1, __ATOMIC_RELAXED)] = malloc(size)))

#define EXPECT_STACK(size, chain) say("expect stack %u %s", (unsigned)(size), chain)

#endif
