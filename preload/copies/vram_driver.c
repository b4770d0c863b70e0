/* vram_driver.c — see vram_driver.h. */
#include "preload/copies/vram_driver.h"

#include "preload/base/forked.h"

struct vram_driver vram_driver;
static bool on;

enum { RELAXED = 2 /* CU_STREAM_CAPTURE_MODE_RELAXED */ };

bool vram_driver_find(struct vram_driver *self, void *(*find)(const char *name)) {
#define F(name, parameters)                                                                                            \
    if (!(self->name = (int(*) parameters)find(#name))) return false;
    VRAM_FUNCTIONS(F)
#undef F
#define F(name, parameters) self->name = (int(*) parameters)find(#name);
    VRAM_KERNEL_FUNCTIONS(F)
#undef F
    return true;
}

bool vram_driver_begin(void *(*find)(const char *name)) { return on = vram_driver_find(&vram_driver, find); }

bool vram_driver_is_on(void) { return on; }

int vram_driver_enter(const struct vram_driver *self, cuda_handle context, struct vram_visit *visit) {
    visit->mode = RELAXED;
    int error = self->cuCtxGetCurrent(&visit->before);
    if (!error) error = self->cuThreadExchangeStreamCaptureMode(&visit->mode);
    if (error) return error;
    if (!context || context == visit->before || !(error = self->cuCtxSetCurrent(context))) return 0;
    self->cuThreadExchangeStreamCaptureMode(&visit->mode);
    return error;
}

/* Restores the thread's context and capture mode. A failed call is repeated once, because a thread that is left in
 * another context does harm. */
void vram_driver_leave(const struct vram_driver *self, struct vram_visit *visit) {
    if (self->cuCtxSetCurrent(visit->before)) self->cuCtxSetCurrent(visit->before);
    int mode = visit->mode;
    if (self->cuThreadExchangeStreamCaptureMode(&mode)) self->cuThreadExchangeStreamCaptureMode(&visit->mode);
}

static void vram_driver_abandon(void) { on = false; }
FORKED(vram_driver_abandon);
