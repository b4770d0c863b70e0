/* vram_ahead.h — pins memory for moves before the first move needs it, so that no move waits until memory is pinned.
 * In: blocks that were served, and moments at which a model may be complete. Out: pinned memory for these blocks, in
 * large pieces, within the limit for pinned memory (vram_stock.h); and the copy buffers of moves. Only the device
 * thread (vram_thread.h) pins ahead. No thread of the program waits for the device thread, with one exception: a thread
 * that moves device memory or ends a context waits until the present piece is pinned. While a stream is in capture, no
 * pinning begins. After pinned memory was given back because memory was short, nothing is pinned ahead until a move has
 * pinned new memory itself. */
#ifndef MEMSTOW_VRAM_AHEAD_H
#define MEMSTOW_VRAM_AHEAD_H

#include "preload/vram/vram_backup.h"
#include "preload/vram/vram_memory.h"

#pragma GCC visibility push(hidden)

/* Whether memory is pinned ahead at all: a setting. */
extern bool vram_ahead_wanted;

/* Call it when a block was served. Pinning begins when a whole piece (VRAM_PIECE) of pinned memory is missing, even
 * before vram_ahead_loaded. */
void vram_ahead_served(const struct vram_request *request, const struct vram_limits *limits);
/* Call it when a model may be complete. Then the device thread pins as much memory as is missing. */
void vram_ahead_loaded(void);
/* Whether blocks were served since the last vram_ahead_loaded. */
extern uint32_t vram_ahead_news;
static inline bool vram_ahead_has_news(void) { return __atomic_load_n(&vram_ahead_news, __ATOMIC_RELAXED); }

/* The device thread's own work: pins the next piece. Returns what `step` of vram_thread_run returns: how long to wait
 * before the next call. */
uint32_t vram_ahead_step(void);

/* Call it when the context has ended. The caller holds the lock of the table. */
void vram_ahead_forget(cuda_handle context);

#pragma GCC visibility pop

#endif
