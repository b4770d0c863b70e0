/* memstow.h — the registration ABI of libmemstow.so.
 *
 * A program that runs under `memstow run` finds these functions by dlsym(RTLD_DEFAULT, …) or, from Python, by
 * ctypes.CDLL(None). Without memstow they are not there: look before you call.
 *
 * Every function may be called from any thread at any time, before and after fork, and keeps errno. */
#ifndef MEMSTOW_H
#define MEMSTOW_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of this interface: major << 16 | minor. Functions are added with a new minor, never changed. */
#define MEMSTOW_ABI_VERSION 0x00010000u

/* The version that the library in the process implements. */
uint32_t memstow_abi_version(void);

/* 1 when the process keeps a ledger, 0 when it does not (left out by --follow, or no memory for one). */
int32_t memstow_is_tracking(void);

#ifdef __cplusplus
}
#endif
#endif
