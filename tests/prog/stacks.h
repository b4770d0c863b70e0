/* stacks.h — how a program test says which call stack each of its blocks has (tests/expectations.py has the protocol).
 * Functions whose frames count are FRAME: neither inlined nor cloned nor, with STAY behind the call, left by a jump.
 * Each block has a size of its own, by which the report's site is found. */
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

/* A macro, so that no frame of ours is between. */
#define KEEP(size) ((void)(stacks_kept[__atomic_fetch_add(&stacks_count, 1, __ATOMIC_RELAXED)] = malloc(size)))

#define EXPECT_STACK(size, chain) say("expect stack %u %s", (unsigned)(size), chain)

#endif
