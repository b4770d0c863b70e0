/* array.c — arrays and mipmapped arrays: device memory in rows, at addresses that the program does not get. */
#include "sim.h"

#include <stdlib.h>

struct sim_array {
    struct sim_array *next;
    struct sim_context *ctx;
    CUDA_ARRAY3D_DESCRIPTOR shape;
    struct block *block; /* a level of a mipmap has the mipmap's block */
    CUdeviceptr at;
    size_t pitch, height;
    struct sim_mipmap *mipmap;
};

enum { LEVELS = 16 };
struct sim_mipmap {
    struct sim_mipmap *next;
    struct sim_context *ctx;
    struct block *block;
    unsigned count;
    struct sim_array *levels[LEVELS];
};

static struct sim_array *arrays;
static struct sim_mipmap *mipmaps;

static size_t element_bytes(int format, unsigned channels) {
    size_t one = format == 0x01 || format == 0x08 ? 1 : format == 0x02 || format == 0x09 || format == 0x10 ? 2 : 4;
    return one * channels;
}

static bool shape_is_good(const CUDA_ARRAY3D_DESCRIPTOR *s) {
    return s && s->Width && s->Width <= 131072 && s->Height <= 65536 && s->Depth <= 16384 &&
           (s->NumChannels == 1 || s->NumChannels == 2 || s->NumChannels == 4);
}

static size_t measure(const CUDA_ARRAY3D_DESCRIPTOR *s, size_t *pitch, size_t *height) {
    *pitch = round_up(s->Width * element_bytes(s->Format, s->NumChannels), 64);
    *height = s->Height ? s->Height : 1;
    return *pitch * *height * (s->Depth ? s->Depth : 1);
}

static struct block *place(struct sim_context *ctx, size_t bytes) {
    size_t size = round_up(bytes, GRANULE);
    struct sim_phys *phys = phys_new(ctx->device, size, false);
    CUdeviceptr at;
    if (!phys) return NULL;
    if (space_reserve(size, 0, 0, &at)) {
        phys_unref(phys);
        return NULL;
    }
    uint64_t mask = (uint64_t)1 << ctx->device->id;
    return space_add((struct block){.at = at,
                                    .size = size,
                                    .asked = bytes,
                                    .kind = KIND_ARRAY,
                                    .device = ctx->device,
                                    .ctx = ctx,
                                    .phys = phys,
                                    .host = phys->host,
                                    .readable = mask,
                                    .writable = mask});
}

static struct sim_array *array_new(struct sim_context *ctx, CUDA_ARRAY3D_DESCRIPTOR shape) {
    struct sim_array *self = calloc(1, sizeof *self);
    if (!self) return NULL;
    *self = (struct sim_array){.next = arrays, .ctx = ctx, .shape = shape};
    measure(&shape, &self->pitch, &self->height);
    return arrays = self;
}

static void array_drop(struct sim_array *self) {
    struct sim_array **link = &arrays;
    while (*link != self) link = &(*link)->next;
    *link = self->next;
    if (self->block) memory_free(self->block);
    free(self);
}

static struct sim_array *array_get(CUarray handle) {
    for (struct sim_array *self = arrays; self; self = self->next)
        if (self == handle) return self;
    return NULL;
}

bool array_locate(CUarray handle, CUdeviceptr *at, size_t *pitch, size_t *height) {
    struct sim_array *self = array_get(handle);
    if (!self) return false;
    *at = self->at;
    *pitch = self->pitch;
    *height = self->height;
    return true;
}

static CUresult create(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *shape) {
    size_t pitch, height;
    if (!out || !shape_is_good(shape)) return CUDA_ERROR_INVALID_VALUE;
    size_t bytes = measure(shape, &pitch, &height);
    struct block *block = place(context_current(), bytes);
    if (!block) return CUDA_ERROR_OUT_OF_MEMORY;
    struct sim_array *self = array_new(context_current(), *shape);
    self->block = block;
    self->at = block->at;
    *out = self;
    call_details(bytes, block->at);
    return CUDA_SUCCESS;
}

API(cuArrayCreate_v2, NEEDS_CONTEXT | UNSAFE, (CUarray * out, const CUDA_ARRAY_DESCRIPTOR *s), (out, s)) {
    if (!s) return CUDA_ERROR_INVALID_VALUE;
    CUDA_ARRAY3D_DESCRIPTOR shape = {s->Width, s->Height, 0, s->Format, s->NumChannels, 0};
    return create(out, &shape);
}
SAME(cuArray3DCreate_v2, NEEDS_CONTEXT | UNSAFE, (CUarray * out, const CUDA_ARRAY3D_DESCRIPTOR *s), create(out, s))

API(cuArrayGetDescriptor_v2, NEEDS_CONTEXT, (CUDA_ARRAY_DESCRIPTOR * out, CUarray handle), (out, handle)) {
    struct sim_array *self = array_get(handle);
    if (!self || !out) return CUDA_ERROR_INVALID_HANDLE;
    *out = (CUDA_ARRAY_DESCRIPTOR){self->shape.Width, self->shape.Height, self->shape.Format, self->shape.NumChannels};
    return CUDA_SUCCESS;
}

API(cuArray3DGetDescriptor_v2, NEEDS_CONTEXT, (CUDA_ARRAY3D_DESCRIPTOR * out, CUarray handle), (out, handle)) {
    struct sim_array *self = array_get(handle);
    if (!self || !out) return CUDA_ERROR_INVALID_HANDLE;
    *out = self->shape;
    return CUDA_SUCCESS;
}

API(cuArrayDestroy, NEEDS_CONTEXT | UNSAFE, (CUarray handle), (handle)) {
    struct sim_array *self = array_get(handle);
    if (!self || self->mipmap) return CUDA_ERROR_INVALID_HANDLE;
    engine_drain_context(context_current());
    array_drop(self);
    return CUDA_SUCCESS;
}

/* ---- mipmaps: all levels in one piece */

static CUDA_ARRAY3D_DESCRIPTOR level_shape(CUDA_ARRAY3D_DESCRIPTOR s, unsigned level) {
    s.Width = s.Width >> level ? s.Width >> level : 1;
    if (s.Height) s.Height = s.Height >> level ? s.Height >> level : 1;
    if (s.Depth) s.Depth = s.Depth >> level ? s.Depth >> level : 1;
    return s;
}

static size_t mipmap_bytes(const CUDA_ARRAY3D_DESCRIPTOR *shape, unsigned levels) {
    size_t sum = 0, pitch, height;
    for (unsigned i = 0; i < levels; i++) {
        CUDA_ARRAY3D_DESCRIPTOR s = level_shape(*shape, i);
        sum += measure(&s, &pitch, &height);
    }
    return sum;
}

API(cuMipmappedArrayCreate, NEEDS_CONTEXT | UNSAFE,
    (CUmipmappedArray * out, const CUDA_ARRAY3D_DESCRIPTOR *shape, unsigned levels), (out, shape, levels)) {
    if (!out || !shape_is_good(shape) || !levels || levels > LEVELS) return CUDA_ERROR_INVALID_VALUE;
    struct sim_context *ctx = context_current();
    struct block *block = place(ctx, mipmap_bytes(shape, levels));
    struct sim_mipmap *self = block ? calloc(1, sizeof *self) : NULL;
    if (!self) return CUDA_ERROR_OUT_OF_MEMORY;
    *self = (struct sim_mipmap){.next = mipmaps, .ctx = ctx, .block = block, .count = levels};
    CUdeviceptr at = block->at;
    for (unsigned i = 0; i < levels; i++) {
        size_t pitch, height;
        self->levels[i] = array_new(ctx, level_shape(*shape, i));
        self->levels[i]->mipmap = self;
        self->levels[i]->at = at;
        at += measure(&self->levels[i]->shape, &pitch, &height);
    }
    *out = mipmaps = self;
    call_details(block->asked, block->at);
    return CUDA_SUCCESS;
}

static struct sim_mipmap *mipmap_get(CUmipmappedArray handle) {
    for (struct sim_mipmap *self = mipmaps; self; self = self->next)
        if (self == handle) return self;
    return NULL;
}

API(cuMipmappedArrayGetLevel, NEEDS_CONTEXT, (CUarray * out, CUmipmappedArray handle, unsigned level),
    (out, handle, level)) {
    struct sim_mipmap *self = mipmap_get(handle);
    if (!self) return CUDA_ERROR_INVALID_HANDLE;
    if (!out || level >= self->count) return CUDA_ERROR_INVALID_VALUE;
    *out = self->levels[level];
    return CUDA_SUCCESS;
}

static void mipmap_drop(struct sim_mipmap *self) {
    struct sim_mipmap **link = &mipmaps;
    while (*link != self) link = &(*link)->next;
    *link = self->next;
    for (unsigned i = 0; i < self->count; i++) array_drop(self->levels[i]);
    memory_free(self->block);
    free(self);
}

API(cuMipmappedArrayDestroy, NEEDS_CONTEXT | UNSAFE, (CUmipmappedArray handle), (handle)) {
    struct sim_mipmap *self = mipmap_get(handle);
    if (!self) return CUDA_ERROR_INVALID_HANDLE;
    engine_drain_context(context_current());
    mipmap_drop(self);
    return CUDA_SUCCESS;
}

void array_forget(struct sim_context *ctx) {
    for (struct sim_mipmap *self = mipmaps, *next; self; self = next) {
        next = self->next;
        if (self->ctx == ctx) mipmap_drop(self);
    }
    for (struct sim_array *self = arrays, *next; self; self = next) {
        next = self->next;
        if (self->ctx == ctx) array_drop(self);
    }
}
