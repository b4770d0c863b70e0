/* vram_hash_text.h — the kernel that hashes device memory, as text of NVIDIA's PTX. The driver translates it for its
 * device (vram_hash.h).
 * In: memstow_hash(at, units, seed1, seed2, sheet): `units` of 16 bytes from `at` on, any number of threads. Out: each
 * block of threads has 32 bytes of the sheet, and writes three words of 64 bits there: two sums, and how many units it
 * has hashed.
 *
 * A 64-bit word w with the number i becomes x, and x becomes y. The two sums are of all x, and of all y:
 *
 *     x = w ^ (seed1 + i * G);  x = (x ^ x >> 32) * M1;  x = (x ^ x >> 29) * M2;  x = x ^ x >> 32
 *     y = x ^ seed2;            y = (y ^ y >> 31) * M3;  y = y ^ y >> 33
 *
 * For a given i, different words have different x. So a change of one word always changes the hash. A sum does not
 * depend on the order in which threads add to it. */
#ifndef MEMSTOW_VRAM_HASH_TEXT_H
#define MEMSTOW_VRAM_HASH_TEXT_H

#define VRAM_HASH_G "0x9e3779b97f4a7c15"
#define VRAM_HASH_2G "0x3c6ef372fe94f82a" /* the step from one unit to the next */
#define VRAM_HASH_M1 "0xbf58476d1ce4e5b9"
#define VRAM_HASH_M2 "0x94d049bb133111eb"
#define VRAM_HASH_M3 "0xff51afd7ed558ccd"

/* Adds a word to both sums: %x is the word, %k is seed1 + i * G. */
#define VRAM_HASH_WORD                                                                                                 \
    "xor.b64 %x, %x, %k;\n"                                                                                            \
    "shr.u64 %t, %x, 32;\nxor.b64 %x, %x, %t;\nmul.lo.u64 %x, %x, %m1;\n"                                              \
    "shr.u64 %t, %x, 29;\nxor.b64 %x, %x, %t;\nmul.lo.u64 %x, %x, %m2;\n"                                              \
    "shr.u64 %t, %x, 32;\nxor.b64 %x, %x, %t;\nadd.u64 %sx, %sx, %x;\n"                                                \
    "xor.b64 %x, %x, %s2;\n"                                                                                           \
    "shr.u64 %t, %x, 31;\nxor.b64 %x, %x, %t;\nmul.lo.u64 %x, %x, %m3;\n"                                              \
    "shr.u64 %t, %x, 33;\nxor.b64 %x, %x, %t;\nadd.u64 %sy, %sy, %x;\n"

#define VRAM_HASH_TEXT                                                                                                 \
    ".version 6.0\n.target sm_52\n.address_size 64\n"                                                                  \
    ".visible .entry memstow_hash(.param .u64 at, .param .u64 units, .param .u64 seed1, .param .u64 seed2, "           \
    ".param .u64 sheet)\n"                                                                                             \
    "{\n"                                                                                                              \
    ".reg .u32 %thread, %threads, %block, %blocks;\n"                                                                  \
    ".reg .u64 %at, %end, %u, %step, %far, %k, %kstep, %g, %m1, %m2, %m3, %s1, %s2;\n"                                 \
    ".reg .u64 %x, %second, %t, %sx, %sy, %n, %zero;\n"                                                                \
    ".reg .pred %p;\n"                                                                                                 \
    ".shared .align 8 .b8 sums[24];\n"                                                                                 \
    "mov.u32 %thread, %tid.x;\nmov.u32 %threads, %ntid.x;\nmov.u32 %block, %ctaid.x;\nmov.u32 %blocks, %nctaid.x;\n"   \
    "setp.ne.u32 %p, %thread, 0;\n@%p bra begin;\n" /* the block's first thread empties the block's sums */            \
    "mov.u64 %zero, 0;\n"                                                                                              \
    "st.shared.u64 [sums], %zero;\nst.shared.u64 [sums+8], %zero;\nst.shared.u64 [sums+16], %zero;\n"                  \
    "begin:\nbar.sync 0;\n"                                                                                            \
    "ld.param.u64 %at, [at];\ncvta.to.global.u64 %at, %at;\nld.param.u64 %end, [units];\n"                             \
    "ld.param.u64 %s1, [seed1];\nld.param.u64 %s2, [seed2];\n"                                                         \
    "mov.u64 %g, " VRAM_HASH_G ";\nmov.u64 %m1, " VRAM_HASH_M1 ";\nmov.u64 %m2, " VRAM_HASH_M2 ";\n"                   \
    "mov.u64 %m3, " VRAM_HASH_M3 ";\nmov.u64 %t, " VRAM_HASH_2G ";\n"                                                  \
    "mul.wide.u32 %u, %block, %threads;\ncvt.u64.u32 %x, %thread;\nadd.u64 %u, %u, %x;\n" /* the first unit */         \
    "mul.wide.u32 %step, %blocks, %threads;\nshl.b64 %far, %step, 4;\n"                                                \
    "mul.lo.u64 %k, %u, %t;\nadd.u64 %k, %k, %s1;\nmul.lo.u64 %kstep, %step, %t;\n"                                    \
    "shl.b64 %x, %u, 4;\nadd.u64 %at, %at, %x;\n"                                                                      \
    "mov.u64 %sx, 0;\nmov.u64 %sy, 0;\nmov.u64 %n, 0;\n"                                                               \
    "next:\nsetp.ge.u64 %p, %u, %end;\n@%p bra sum;\n"                                                                 \
    "ld.global.v2.u64 {%x, %second}, [%at];\n" VRAM_HASH_WORD "add.u64 %k, %k, %g;\n"                                  \
    "mov.u64 %x, %second;\n" VRAM_HASH_WORD "sub.u64 %k, %k, %g;\n"                                                    \
    "add.u64 %n, %n, 1;\nadd.u64 %u, %u, %step;\nadd.u64 %k, %k, %kstep;\nadd.u64 %at, %at, %far;\n"                   \
    "bra next;\n"                                                                                                      \
    "sum:\nred.shared.add.u64 [sums], %sx;\nred.shared.add.u64 [sums+8], %sy;\n"                                       \
    "red.shared.add.u64 [sums+16], %n;\nbar.sync 0;\n"                                                                 \
    "setp.ne.u32 %p, %thread, 0;\n@%p bra over;\n"                                                                     \
    "ld.param.u64 %at, [sheet];\ncvta.to.global.u64 %at, %at;\nmul.wide.u32 %x, %block, 32;\nadd.u64 %at, %at, %x;\n"  \
    "ld.shared.u64 %sx, [sums];\nld.shared.u64 %sy, [sums+8];\nld.shared.u64 %n, [sums+16];\n"                         \
    "st.global.u64 [%at], %sx;\nst.global.u64 [%at+8], %sy;\nst.global.u64 [%at+16], %n;\n"                            \
    "over:\nret;\n}\n"

#endif
