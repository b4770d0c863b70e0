/* cuda_table.h — every entry point of CUDA that memstow knows, once. Hooks, answers of resolvers, and tests are made
 * from it.
 *
 *   ENTRY(side, name, base, since, per_thread, (parameters), (arguments), before, after)
 *   RESOLVER(side, name, base, since, per_thread, (parameters), (arguments), after)
 *
 * side        RUNTIME or DRIVER: the library that exports `name`.
 * base        the name by which cuGetProcAddress knows the entry, without suffix; "" if no resolver knows the entry.
 * since       from this version of CUDA on, a request for `base` means this entry.
 * per_thread  1 if the entry's default stream is the thread's own.
 * before      a word for what is done before the call. For example, with TAKEN the block that is to be freed leaves the
 *             ledger, and goes back if the call fails. With ASKS the request is noted, in case the driver has no memory
 *             for it. With REGISTERS host memory is made ready to be registered.
 * after       a word for what is done after a call that succeeded. For example, with MADE a new block is noted, and
 *             with GONE the block that TAKEN took out of the ledger stays out.
 *
 * hook_cuda.c defines the words in before and after (TAKEN, MADE…). They act only in a thread's outermost call:
 * cudaMalloc calls cuMemAlloc, and that is one allocation. RESOLVERs answer at any depth.
 *
 * Some runtime entries have different arguments in different versions under one name (cudaGraphAddNode). They have no
 * hook here: the driver has a name for each version, and its entries are hooked. Define ENTRY and RESOLVER before you
 * include this file; it undefines them. */

/* --- the runtime: linear memory --- */
ENTRY(RUNTIME, cudaMalloc, "", 0, 0, (void **at, size_t bytes), (at, bytes), ASKS(DEVICE, bytes),
      MADE(DEVICE, *at, bytes))
ENTRY(RUNTIME, cudaMallocPitch, "", 0, 0, (void **at, size_t *pitch, size_t width, size_t height),
      (at, pitch, width, height), ASKS(DEVICE, width *height), MADE(DEVICE, *at, *pitch *height))
ENTRY(RUNTIME, cudaMalloc3D, "", 0, 0, (struct cuda_pitched * at, struct cuda_extent extent), (at, extent),
      ASKS(DEVICE, extent.width *extent.height *extent.depth),
      MADE(DEVICE, at->start, at->pitch *extent.height *extent.depth))
ENTRY(RUNTIME, cudaMallocManaged, "", 0, 0, (void **at, size_t bytes, unsigned flags), (at, bytes, flags),
      ASKS(MANAGED, bytes), MADE(MANAGED, *at, bytes))
ENTRY(RUNTIME, cudaFree, "", 0, 0, (void *at), (at), TAKEN(ADDRESS, at), GONE)

/* --- the runtime: memory in the order of streams --- */
ENTRY(RUNTIME, cudaMallocAsync, "", 0, 0, (void **at, size_t bytes, cuda_handle stream), (at, bytes, stream),
      ASKS(POOL, bytes), MADE_IN_POOL(*at, bytes, stream, NULL))
ENTRY(RUNTIME, cudaMallocAsync_ptsz, "", 0, 1, (void **at, size_t bytes, cuda_handle stream), (at, bytes, stream),
      ASKS(POOL, bytes), MADE_IN_POOL(*at, bytes, stream, NULL))
ENTRY(RUNTIME, cudaMallocFromPoolAsync, "", 0, 0, (void **at, size_t bytes, cuda_handle pool, cuda_handle stream),
      (at, bytes, pool, stream), ASKS(POOL, bytes), MADE_IN_POOL(*at, bytes, stream, pool))
ENTRY(RUNTIME, cudaMallocFromPoolAsync_ptsz, "", 0, 1, (void **at, size_t bytes, cuda_handle pool, cuda_handle stream),
      (at, bytes, pool, stream), ASKS(POOL, bytes), MADE_IN_POOL(*at, bytes, stream, pool))
ENTRY(RUNTIME, cudaFreeAsync, "", 0, 0, (void *at, cuda_handle stream), (at, stream), TAKEN(ADDRESS, at),
      GONE_IN_STREAM(stream))
ENTRY(RUNTIME, cudaFreeAsync_ptsz, "", 0, 1, (void *at, cuda_handle stream), (at, stream), TAKEN(ADDRESS, at),
      GONE_IN_STREAM(stream))

/* --- the runtime: arrays --- */
ENTRY(RUNTIME, cudaMallocArray, "", 0, 0,
      (cuda_handle * array, const struct cuda_channels *channels, size_t width, size_t height, unsigned flags),
      (array, channels, width, height, flags),
      ASKS(ARRAY, cuda_array_bytes(channels, (struct cuda_extent){width, height, 0}, 1, flags)),
      MADE(ARRAY, *array, cuda_array_bytes(channels, (struct cuda_extent){width, height, 0}, 1, flags)))
ENTRY(RUNTIME, cudaMalloc3DArray, "", 0, 0,
      (cuda_handle * array, const struct cuda_channels *channels, struct cuda_extent extent, unsigned flags),
      (array, channels, extent, flags), ASKS(ARRAY, cuda_array_bytes(channels, extent, 1, flags)),
      MADE(ARRAY, *array, cuda_array_bytes(channels, extent, 1, flags)))
ENTRY(RUNTIME, cudaFreeArray, "", 0, 0, (cuda_handle array), (array), TAKEN(ARRAY, array), GONE)
ENTRY(RUNTIME, cudaMallocMipmappedArray, "", 0, 0,
      (cuda_handle * array, const struct cuda_channels *channels, struct cuda_extent extent, unsigned levels,
       unsigned flags),
      (array, channels, extent, levels, flags), ASKS(ARRAY, cuda_array_bytes(channels, extent, levels, flags)),
      MADE(ARRAY, *array, cuda_array_bytes(channels, extent, levels, flags)))
ENTRY(RUNTIME, cudaFreeMipmappedArray, "", 0, 0, (cuda_handle array), (array), TAKEN(ARRAY, array), GONE)

/* --- the runtime: host memory --- */
ENTRY(RUNTIME, cudaMallocHost, "", 0, 0, (void **at, size_t bytes), (at, bytes), ASKS(PINNED, bytes),
      MADE(PINNED, *at, bytes))
ENTRY(RUNTIME, cudaHostAlloc, "", 0, 0, (void **at, size_t bytes, unsigned flags), (at, bytes, flags),
      ASKS(PINNED, bytes), MADE(PINNED, *at, bytes))
ENTRY(RUNTIME, cudaFreeHost, "", 0, 0, (void *at), (at), TAKEN(ADDRESS, at), GONE)
ENTRY(RUNTIME, cudaHostRegister, "", 0, 0, (void *at, size_t bytes, unsigned flags), (at, bytes, flags),
      REGISTERS(at, bytes), MADE(REGISTERED, at, bytes))
ENTRY(RUNTIME, cudaHostUnregister, "", 0, 0, (void *at), (at), TAKEN(ADDRESS, at), GONE)

/* --- the runtime: pools, other processes, graphs --- */
ENTRY(RUNTIME, cudaMemPoolCreate, "", 0, 0, (cuda_handle * pool, const struct cuda_properties *properties),
      (pool, properties), NOTHING, MADE_POOL(*pool, properties))
ENTRY(RUNTIME, cudaMemPoolDestroy, "", 0, 0, (cuda_handle pool), (pool), TAKEN(POOL, pool), GONE)
ENTRY(RUNTIME, cudaMemPoolImportPointer, "", 0, 0, (void **at, cuda_handle pool, void *data), (at, pool, data), NOTHING,
      MADE(IMPORTED, *at, 0))
ENTRY(RUNTIME, cudaMemPoolExportPointer, "", 0, 0, (void *data, void *at), (data, at), NOTHING,
      MARKED(ADDRESS, at, SNAP_CUDA_EXPORTED))
ENTRY(RUNTIME, cudaIpcGetMemHandle, "", 0, 0, (struct cuda_ipc_memory * handle, void *at), (handle, at), NOTHING,
      MARKED(ADDRESS, at, SNAP_CUDA_EXPORTED))
ENTRY(RUNTIME, cudaIpcOpenMemHandle, "", 0, 0, (void **at, struct cuda_ipc_memory handle, unsigned flags),
      (at, handle, flags), NOTHING, OPENED(*at))
ENTRY(RUNTIME, cudaIpcCloseMemHandle, "", 0, 0, (void *at), (at), TAKEN_ONE(ADDRESS, at), GONE)
ENTRY(RUNTIME, cudaGraphAddMemAllocNode, "", 0, 0,
      (cuda_handle * node, cuda_handle graph, const cuda_handle *after, size_t count, struct cuda_alloc_node *alloc),
      (node, graph, after, count, alloc), NOTHING, MADE_IN_GRAPH(alloc, graph))
ENTRY(RUNTIME, cudaGraphDestroy, "", 0, 0, (cuda_handle graph), (graph), GRAPH_ENDS(graph), ENDED)

/* --- the runtime: the life of a device, captures, figures --- */
ENTRY(RUNTIME, cudaDeviceReset, "", 0, 0, (void), (), RESETS(DEVICE_NOW), ENDED)
ENTRY(RUNTIME, cudaThreadExit, "", 0, 0, (void), (), RESETS(DEVICE_NOW), ENDED)
ENTRY(RUNTIME, cudaStreamBeginCapture, "", 0, 0, (cuda_handle stream, int mode), (stream, mode), CAPTURE(stream),
      NOTHING)
ENTRY(RUNTIME, cudaStreamBeginCapture_ptsz, "", 0, 1, (cuda_handle stream, int mode), (stream, mode), CAPTURE(stream),
      NOTHING)
ENTRY(RUNTIME, cudaStreamBeginCaptureToGraph, "", 0, 0,
      (cuda_handle stream, cuda_handle graph, const cuda_handle *after, const void *edges, size_t count, int mode),
      (stream, graph, after, edges, count, mode), CAPTURE(stream), NOTHING)
ENTRY(RUNTIME, cudaStreamBeginCaptureToGraph_ptsz, "", 0, 1,
      (cuda_handle stream, cuda_handle graph, const cuda_handle *after, const void *edges, size_t count, int mode),
      (stream, graph, after, edges, count, mode), CAPTURE(stream), NOTHING)
ENTRY(RUNTIME, cudaStreamEndCapture, "", 0, 0, (cuda_handle stream, cuda_handle *graph), (stream, graph),
      CAPTURE_ENDS(stream), CAPTURED(*graph))
ENTRY(RUNTIME, cudaStreamEndCapture_ptsz, "", 0, 1, (cuda_handle stream, cuda_handle *graph), (stream, graph),
      CAPTURE_ENDS(stream), CAPTURED(*graph))
ENTRY(RUNTIME, cudaStreamDestroy, "", 0, 0, (cuda_handle stream), (stream), STREAM_ENDS(stream), NOTHING)
ENTRY(RUNTIME, cudaMemGetInfo, "", 0, 0, (size_t * available, size_t *total), (available, total), NOTHING,
      FIGURES(*available, *total))

/* --- the driver: linear memory --- */
ENTRY(DRIVER, cuMemAlloc, "cuMemAlloc", 2000, 0, (unsigned *at, unsigned bytes), (at, bytes), ASKS(DEVICE, bytes),
      MADE(DEVICE, *at, bytes))
ENTRY(DRIVER, cuMemAlloc_v2, "cuMemAlloc", 3020, 0, (cuda_address * at, size_t bytes), (at, bytes), ASKS(DEVICE, bytes),
      MADE(DEVICE, *at, bytes))
ENTRY(DRIVER, cuMemAllocPitch_v2, "cuMemAllocPitch", 3020, 0,
      (cuda_address * at, size_t *pitch, size_t width, size_t height, unsigned element),
      (at, pitch, width, height, element), ASKS(DEVICE, width *height), MADE(DEVICE, *at, *pitch *height))
ENTRY(DRIVER, cuMemAllocManaged, "cuMemAllocManaged", 6000, 0, (cuda_address * at, size_t bytes, unsigned flags),
      (at, bytes, flags), ASKS(MANAGED, bytes), MADE(MANAGED, *at, bytes))
ENTRY(DRIVER, cuMemFree, "cuMemFree", 2000, 0, (unsigned at), (at), TAKEN(ADDRESS, at), GONE)
ENTRY(DRIVER, cuMemFree_v2, "cuMemFree", 3020, 0, (cuda_address at), (at), TAKEN(ADDRESS, at), GONE)

/* --- the driver: memory in the order of streams --- */
ENTRY(DRIVER, cuMemAllocAsync, "cuMemAllocAsync", 11020, 0, (cuda_address * at, size_t bytes, cuda_handle stream),
      (at, bytes, stream), ASKS(POOL, bytes), MADE_IN_POOL(*at, bytes, stream, NULL))
ENTRY(DRIVER, cuMemAllocAsync_ptsz, "cuMemAllocAsync", 11020, 1, (cuda_address * at, size_t bytes, cuda_handle stream),
      (at, bytes, stream), ASKS(POOL, bytes), MADE_IN_POOL(*at, bytes, stream, NULL))
ENTRY(DRIVER, cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync", 11020, 0,
      (cuda_address * at, size_t bytes, cuda_handle pool, cuda_handle stream), (at, bytes, pool, stream),
      ASKS(POOL, bytes), MADE_IN_POOL(*at, bytes, stream, pool))
ENTRY(DRIVER, cuMemAllocFromPoolAsync_ptsz, "cuMemAllocFromPoolAsync", 11020, 1,
      (cuda_address * at, size_t bytes, cuda_handle pool, cuda_handle stream), (at, bytes, pool, stream),
      ASKS(POOL, bytes), MADE_IN_POOL(*at, bytes, stream, pool))
ENTRY(DRIVER, cuMemFreeAsync, "cuMemFreeAsync", 11020, 0, (cuda_address at, cuda_handle stream), (at, stream),
      TAKEN(ADDRESS, at), GONE_IN_STREAM(stream))
ENTRY(DRIVER, cuMemFreeAsync_ptsz, "cuMemFreeAsync", 11020, 1, (cuda_address at, cuda_handle stream), (at, stream),
      TAKEN(ADDRESS, at), GONE_IN_STREAM(stream))

/* --- the driver: arrays --- */
ENTRY(DRIVER, cuArrayCreate_v2, "cuArrayCreate", 3020, 0, (cuda_handle * array, const struct cuda_array_2d *is),
      (array, is), ASKS(ARRAY, cuda_array_2d_bytes(is)), MADE(ARRAY, *array, cuda_array_2d_bytes(is)))
ENTRY(DRIVER, cuArray3DCreate_v2, "cuArray3DCreate", 3020, 0, (cuda_handle * array, const struct cuda_array_3d *is),
      (array, is), ASKS(ARRAY, cuda_array_3d_bytes(is, 1)), MADE(ARRAY, *array, cuda_array_3d_bytes(is, 1)))
ENTRY(DRIVER, cuArrayDestroy, "cuArrayDestroy", 2000, 0, (cuda_handle array), (array), TAKEN(ARRAY, array), GONE)
ENTRY(DRIVER, cuMipmappedArrayCreate, "cuMipmappedArrayCreate", 5000, 0,
      (cuda_handle * array, const struct cuda_array_3d *is, unsigned levels), (array, is, levels),
      ASKS(ARRAY, cuda_array_3d_bytes(is, levels)), MADE(ARRAY, *array, cuda_array_3d_bytes(is, levels)))
ENTRY(DRIVER, cuMipmappedArrayDestroy, "cuMipmappedArrayDestroy", 5000, 0, (cuda_handle array), (array),
      TAKEN(ARRAY, array), GONE)

/* --- the driver: host memory --- */
ENTRY(DRIVER, cuMemAllocHost, "cuMemAllocHost", 2000, 0, (void **at, unsigned bytes), (at, bytes), ASKS(PINNED, bytes),
      MADE(PINNED, *at, bytes))
ENTRY(DRIVER, cuMemAllocHost_v2, "cuMemAllocHost", 3020, 0, (void **at, size_t bytes), (at, bytes), ASKS(PINNED, bytes),
      MADE(PINNED, *at, bytes))
ENTRY(DRIVER, cuMemHostAlloc, "cuMemHostAlloc", 2020, 0, (void **at, size_t bytes, unsigned flags), (at, bytes, flags),
      ASKS(PINNED, bytes), MADE(PINNED, *at, bytes))
ENTRY(DRIVER, cuMemFreeHost, "cuMemFreeHost", 2000, 0, (void *at), (at), TAKEN(ADDRESS, at), GONE)
ENTRY(DRIVER, cuMemHostRegister, "cuMemHostRegister", 4000, 0, (void *at, size_t bytes, unsigned flags),
      (at, bytes, flags), REGISTERS(at, bytes), MADE(REGISTERED, at, bytes))
ENTRY(DRIVER, cuMemHostRegister_v2, "cuMemHostRegister", 6050, 0, (void *at, size_t bytes, unsigned flags),
      (at, bytes, flags), REGISTERS(at, bytes), MADE(REGISTERED, at, bytes))
ENTRY(DRIVER, cuMemHostUnregister, "cuMemHostUnregister", 4000, 0, (void *at), (at), TAKEN(ADDRESS, at), GONE)

/* --- the driver: physical memory and addresses --- */
ENTRY(DRIVER, cuMemCreate, "cuMemCreate", 10020, 0,
      (cuda_memory * memory, size_t bytes, const struct cuda_properties *properties, unsigned long long flags),
      (memory, bytes, properties, flags), ASKS(PHYSICAL, bytes), MADE_PHYSICAL(*memory, bytes, properties))
ENTRY(DRIVER, cuMemRelease, "cuMemRelease", 10020, 0, (cuda_memory memory), (memory), TAKEN_ONE(HANDLE, memory),
      RELEASED)
ENTRY(DRIVER, cuMemRetainAllocationHandle, "cuMemRetainAllocationHandle", 11000, 0, (cuda_memory * memory, void *at),
      (memory, at), NOTHING, RETAINED(*memory, at))
ENTRY(DRIVER, cuMemMap, "cuMemMap", 10020, 0,
      (cuda_address at, size_t bytes, size_t offset, cuda_memory memory, unsigned long long flags),
      (at, bytes, offset, memory, flags), NOTHING, MAPPED(at, bytes, memory))
ENTRY(DRIVER, cuMemUnmap, "cuMemUnmap", 10020, 0, (cuda_address at, size_t bytes), (at, bytes), NOTHING,
      UNMAPPED(at, bytes))
ENTRY(DRIVER, cuMemAddressReserve, "cuMemAddressReserve", 10020, 0,
      (cuda_address * at, size_t bytes, size_t alignment, cuda_address wanted, unsigned long long flags),
      (at, bytes, alignment, wanted, flags), NOTHING, MADE(RESERVED, *at, bytes))
ENTRY(DRIVER, cuMemAddressFree, "cuMemAddressFree", 10020, 0, (cuda_address at, size_t bytes), (at, bytes),
      TAKEN(RANGE, at), GONE)
ENTRY(DRIVER, cuMemExportToShareableHandle, "cuMemExportToShareableHandle", 10020, 0,
      (void *shared, cuda_memory memory, int type, unsigned long long flags), (shared, memory, type, flags), NOTHING,
      MARKED_MEMORY(memory, SNAP_CUDA_EXPORTED))
ENTRY(DRIVER, cuMemImportFromShareableHandle, "cuMemImportFromShareableHandle", 10020, 0,
      (cuda_memory * memory, void *shared, int type), (memory, shared, type), NOTHING, MADE_OF_ANOTHER(*memory))
ENTRY(DRIVER, cuMulticastCreate, "cuMulticastCreate", 12010, 0, (cuda_memory * memory, const struct cuda_multicast *is),
      (memory, is), NOTHING, MADE_OF_ANOTHER(*memory))
ENTRY(DRIVER, cuMulticastBindMem, "cuMulticastBindMem", 12010, 0,
      (cuda_memory to, size_t offset, cuda_memory memory, size_t from, size_t bytes, unsigned long long flags),
      (to, offset, memory, from, bytes, flags), NOTHING, MARKED_MEMORY(memory, SNAP_CUDA_BOUND))
ENTRY(DRIVER, cuMemGetAddressRange_v2, "cuMemGetAddressRange", 3020, 0,
      (cuda_address * start, size_t *bytes, cuda_address at), (start, bytes, at), NOTHING, NOTHING)
ENTRY(DRIVER, cuPointerGetAttribute, "cuPointerGetAttribute", 4000, 0, (void *out, int which, cuda_address at),
      (out, which, at), NOTHING, NOTHING)
ENTRY(DRIVER, cuPointerGetAttributes, "cuPointerGetAttributes", 7000, 0,
      (unsigned count, int *which, void **out, cuda_address at), (count, which, out, at), NOTHING, NOTHING)
ENTRY(DRIVER, cuPointerSetAttribute, "cuPointerSetAttribute", 6000, 0, (const void *value, int which, cuda_address at),
      (value, which, at), NOTHING, NOTHING)
ENTRY(DRIVER, cuMulticastBindAddr, "cuMulticastBindAddr", 12010, 0,
      (cuda_memory to, size_t offset, cuda_address at, size_t bytes, unsigned long long flags),
      (to, offset, at, bytes, flags), NOTHING, MARKED(ADDRESS, at, SNAP_CUDA_BOUND))
ENTRY(DRIVER, cuMulticastBindMem_v2, "cuMulticastBindMem", 13010, 0,
      (cuda_memory to, int device, size_t offset, cuda_memory memory, size_t from, size_t bytes,
       unsigned long long flags),
      (to, device, offset, memory, from, bytes, flags), NOTHING, MARKED_MEMORY(memory, SNAP_CUDA_BOUND))
ENTRY(DRIVER, cuMulticastBindAddr_v2, "cuMulticastBindAddr", 13010, 0,
      (cuda_memory to, int device, size_t offset, cuda_address at, size_t bytes, unsigned long long flags),
      (to, device, offset, at, bytes, flags), NOTHING, MARKED(ADDRESS, at, SNAP_CUDA_BOUND))
ENTRY(DRIVER, cuLogicalEndpointBindMem, "cuLogicalEndpointBindMem", 13030, 0,
      (unsigned to, int device, uint64_t offset, cuda_memory memory, uint64_t from, uint64_t bytes,
       unsigned long long flags),
      (to, device, offset, memory, from, bytes, flags), NOTHING, MARKED_MEMORY(memory, SNAP_CUDA_BOUND))
ENTRY(DRIVER, cuLogicalEndpointBindAddr, "cuLogicalEndpointBindAddr", 13030, 0,
      (unsigned to, int device, uint64_t offset, void *at, uint64_t bytes, unsigned long long flags),
      (to, device, offset, at, bytes, flags), NOTHING, MARKED(ADDRESS, at, SNAP_CUDA_BOUND))
ENTRY(DRIVER, cuMemGetHandleForAddressRange, "cuMemGetHandleForAddressRange", 11070, 0,
      (void *shared, cuda_address at, size_t bytes, int type, unsigned long long flags),
      (shared, at, bytes, type, flags), NOTHING, MARKED(ADDRESS, at, SNAP_CUDA_EXPORTED))

/* --- the driver: pools, other processes, graphs --- */
ENTRY(DRIVER, cuMemPoolCreate, "cuMemPoolCreate", 11020, 0,
      (cuda_handle * pool, const struct cuda_properties *properties), (pool, properties), NOTHING,
      MADE_POOL(*pool, properties))
ENTRY(DRIVER, cuMemPoolGetAttribute, "cuMemPoolGetAttribute", 11020, 0, (cuda_handle pool, int which, void *value),
      (pool, which, value), NOTHING, NOTHING)
ENTRY(DRIVER, cuMemPoolSetAttribute, "cuMemPoolSetAttribute", 11020, 0, (cuda_handle pool, int which, void *value),
      (pool, which, value), NOTHING, NOTHING)
ENTRY(DRIVER, cuMemPoolSetAccess, "cuMemPoolSetAccess", 11020, 0, (cuda_handle pool, const void *access, size_t count),
      (pool, access, count), NOTHING, NOTHING)
ENTRY(DRIVER, cuMemPoolTrimTo, "cuMemPoolTrimTo", 11020, 0, (cuda_handle pool, size_t keep), (pool, keep), NOTHING,
      NOTHING)
ENTRY(DRIVER, cuMemPoolDestroy, "cuMemPoolDestroy", 11020, 0, (cuda_handle pool), (pool), TAKEN(POOL, pool), GONE)
ENTRY(DRIVER, cuMemPoolImportPointer, "cuMemPoolImportPointer", 11020, 0,
      (cuda_address * at, cuda_handle pool, void *data), (at, pool, data), NOTHING, MADE(IMPORTED, *at, 0))
ENTRY(DRIVER, cuMemPoolExportPointer, "cuMemPoolExportPointer", 11020, 0, (void *data, cuda_address at), (data, at),
      NOTHING, MARKED(ADDRESS, at, SNAP_CUDA_EXPORTED))
ENTRY(DRIVER, cuIpcGetMemHandle, "cuIpcGetMemHandle", 4010, 0, (struct cuda_ipc_memory * handle, cuda_address at),
      (handle, at), NOTHING, MARKED(ADDRESS, at, SNAP_CUDA_EXPORTED))
ENTRY(DRIVER, cuIpcOpenMemHandle, "cuIpcOpenMemHandle", 4010, 0,
      (cuda_address * at, struct cuda_ipc_memory handle, unsigned flags), (at, handle, flags), NOTHING, OPENED(*at))
ENTRY(DRIVER, cuIpcOpenMemHandle_v2, "cuIpcOpenMemHandle", 11000, 0,
      (cuda_address * at, struct cuda_ipc_memory handle, unsigned flags), (at, handle, flags), NOTHING, OPENED(*at))
ENTRY(DRIVER, cuIpcCloseMemHandle, "cuIpcCloseMemHandle", 4010, 0, (cuda_address at), (at), TAKEN_ONE(ADDRESS, at),
      GONE)
ENTRY(DRIVER, cuGraphAddMemAllocNode, "cuGraphAddMemAllocNode", 11040, 0,
      (cuda_handle * node, cuda_handle graph, const cuda_handle *after, size_t count, struct cuda_alloc_node *alloc),
      (node, graph, after, count, alloc), NOTHING, MADE_IN_GRAPH(alloc, graph))
ENTRY(DRIVER, cuGraphAddNode, "cuGraphAddNode", 12020, 0,
      (cuda_handle * node, cuda_handle graph, const cuda_handle *after, size_t count, struct cuda_node *is),
      (node, graph, after, count, is), NOTHING, MADE_NODE(is, graph))
ENTRY(DRIVER, cuGraphAddNode_v2, "cuGraphAddNode", 12030, 0,
      (cuda_handle * node, cuda_handle graph, const cuda_handle *after, const void *edges, size_t count,
       struct cuda_node *is),
      (node, graph, after, edges, count, is), NOTHING, MADE_NODE(is, graph))
ENTRY(DRIVER, cuGraphDestroy, "cuGraphDestroy", 10000, 0, (cuda_handle graph), (graph), GRAPH_ENDS(graph), ENDED)

/* --- the driver: the life of contexts, captures, figures --- */
ENTRY(DRIVER, cuCtxCreate_v2, "cuCtxCreate", 3020, 0, (cuda_handle * context, unsigned flags, int device),
      (context, flags, device), NOTHING, CONTEXT_MADE(*context, device))
ENTRY(DRIVER, cuCtxCreate_v3, "cuCtxCreate", 11040, 0,
      (cuda_handle * context, void *affinity, int count, unsigned flags, int device),
      (context, affinity, count, flags, device), NOTHING, CONTEXT_MADE(*context, device))
ENTRY(DRIVER, cuCtxCreate_v4, "cuCtxCreate", 12050, 0,
      (cuda_handle * context, void *parameters, unsigned flags, int device), (context, parameters, flags, device),
      NOTHING, CONTEXT_MADE(*context, device))
ENTRY(DRIVER, cuCtxDestroy, "cuCtxDestroy", 2000, 0, (cuda_handle context), (context), CONTEXT_ENDS(context), ENDED)
ENTRY(DRIVER, cuCtxDestroy_v2, "cuCtxDestroy", 4000, 0, (cuda_handle context), (context), CONTEXT_ENDS(context), ENDED)
ENTRY(DRIVER, cuCtxEnablePeerAccess, "cuCtxEnablePeerAccess", 4000, 0, (cuda_handle peer, unsigned flags),
      (peer, flags), NOTHING, NOTHING)
ENTRY(DRIVER, cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", 7000, 0, (cuda_handle * context, int device),
      (context, device), NOTHING, PRIMARY_IS(device, *context))
ENTRY(DRIVER, cuDevicePrimaryCtxReset, "cuDevicePrimaryCtxReset", 7000, 0, (int device), (device), RESETS(device),
      ENDED)
ENTRY(DRIVER, cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease", 7000, 0, (int device), (device), RELEASES(device),
      PRIMARY_RELEASED)
ENTRY(DRIVER, cuDevicePrimaryCtxReset_v2, "cuDevicePrimaryCtxReset", 11000, 0, (int device), (device), RESETS(device),
      ENDED)
ENTRY(DRIVER, cuDevicePrimaryCtxRelease_v2, "cuDevicePrimaryCtxRelease", 11000, 0, (int device), (device),
      RELEASES(device), PRIMARY_RELEASED)
ENTRY(DRIVER, cuStreamBeginCapture, "cuStreamBeginCapture", 10000, 0, (cuda_handle stream), (stream), CAPTURE(stream),
      NOTHING)
ENTRY(DRIVER, cuStreamBeginCapture_ptsz, "cuStreamBeginCapture", 10000, 1, (cuda_handle stream), (stream),
      CAPTURE(stream), NOTHING)
ENTRY(DRIVER, cuStreamBeginCapture_v2, "cuStreamBeginCapture", 10010, 0, (cuda_handle stream, int mode), (stream, mode),
      CAPTURE(stream), NOTHING)
ENTRY(DRIVER, cuStreamBeginCapture_v2_ptsz, "cuStreamBeginCapture", 10010, 1, (cuda_handle stream, int mode),
      (stream, mode), CAPTURE(stream), NOTHING)
ENTRY(DRIVER, cuStreamBeginCaptureToGraph, "cuStreamBeginCaptureToGraph", 12030, 0,
      (cuda_handle stream, cuda_handle graph, const cuda_handle *after, const void *edges, size_t count, int mode),
      (stream, graph, after, edges, count, mode), CAPTURE(stream), NOTHING)
ENTRY(DRIVER, cuStreamBeginCaptureToGraph_ptsz, "cuStreamBeginCaptureToGraph", 12030, 1,
      (cuda_handle stream, cuda_handle graph, const cuda_handle *after, const void *edges, size_t count, int mode),
      (stream, graph, after, edges, count, mode), CAPTURE(stream), NOTHING)
ENTRY(DRIVER, cuStreamBeginRecaptureToGraph, "cuStreamBeginRecaptureToGraph", 13030, 0,
      (cuda_handle stream, int mode, cuda_handle graph, void *callback, void *data),
      (stream, mode, graph, callback, data), CAPTURE(stream), NOTHING)
ENTRY(DRIVER, cuStreamBeginRecaptureToGraph_ptsz, "cuStreamBeginRecaptureToGraph", 13030, 1,
      (cuda_handle stream, int mode, cuda_handle graph, void *callback, void *data),
      (stream, mode, graph, callback, data), CAPTURE(stream), NOTHING)
ENTRY(DRIVER, cuStreamBeginCaptureToCig, "cuStreamBeginCaptureToCig", 13010, 0, (cuda_handle stream, void *parameters),
      (stream, parameters), CAPTURE(stream), NOTHING)
ENTRY(DRIVER, cuStreamBeginCaptureToCig_ptsz, "cuStreamBeginCaptureToCig", 13010, 1,
      (cuda_handle stream, void *parameters), (stream, parameters), CAPTURE(stream), NOTHING)
ENTRY(DRIVER, cuStreamEndCaptureToCig, "cuStreamEndCaptureToCig", 13010, 0, (cuda_handle stream), (stream),
      CAPTURE_ENDS(stream), NOTHING)
ENTRY(DRIVER, cuStreamEndCaptureToCig_ptsz, "cuStreamEndCaptureToCig", 13010, 1, (cuda_handle stream), (stream),
      CAPTURE_ENDS(stream), NOTHING)
ENTRY(DRIVER, cuStreamEndCapture, "cuStreamEndCapture", 10000, 0, (cuda_handle stream, cuda_handle *graph),
      (stream, graph), CAPTURE_ENDS(stream), CAPTURED(*graph))
ENTRY(DRIVER, cuStreamEndCapture_ptsz, "cuStreamEndCapture", 10000, 1, (cuda_handle stream, cuda_handle *graph),
      (stream, graph), CAPTURE_ENDS(stream), CAPTURED(*graph))
ENTRY(DRIVER, cuStreamDestroy, "cuStreamDestroy", 2000, 0, (cuda_handle stream), (stream), STREAM_ENDS(stream), NOTHING)
ENTRY(DRIVER, cuStreamDestroy_v2, "cuStreamDestroy", 4000, 0, (cuda_handle stream), (stream), STREAM_ENDS(stream),
      NOTHING)
ENTRY(DRIVER, cuMemGetInfo_v2, "cuMemGetInfo", 3020, 0, (size_t * available, size_t *total), (available, total),
      NOTHING, FIGURES(*available, *total))

/* --- the driver: waits, which are often the first to return the error of a kernel --- */
ENTRY(DRIVER, cuCtxSynchronize, "cuCtxSynchronize", 2000, 0, (void), (), NOTHING, NOTHING)
ENTRY(DRIVER, cuCtxSynchronize_v2, "cuCtxSynchronize", 13000, 0, (cuda_handle context), (context), NOTHING, NOTHING)
ENTRY(DRIVER, cuStreamSynchronize, "cuStreamSynchronize", 2000, 0, (cuda_handle stream), (stream), NOTHING, NOTHING)
ENTRY(DRIVER, cuStreamSynchronize_ptsz, "cuStreamSynchronize", 7000, 1, (cuda_handle stream), (stream), NOTHING,
      NOTHING)
ENTRY(DRIVER, cuEventSynchronize, "cuEventSynchronize", 2000, 0, (cuda_handle event), (event), NOTHING, NOTHING)

/* --- the driver: texts of errors. The first call that returns the error of a kernel may be one that has no line here
 * (cuMemcpyDtoH, cuLaunchKernel). memstow notices such an error when the program asks for the error's text, as programs
 * do before they give up. --- */
ENTRY(DRIVER, cuGetErrorName, "cuGetErrorName", 6000, 0, (int code, const char **text), (code, text),
      ASKED_ABOUT(cuGetErrorName, code), NOTHING)
ENTRY(DRIVER, cuGetErrorString, "cuGetErrorString", 6000, 0, (int code, const char **text), (code, text),
      ASKED_ABOUT(cuGetErrorString, code), NOTHING)

/* --- functions that answer with addresses of entries --- */
RESOLVER(DRIVER, cuGetProcAddress, "cuGetProcAddress", 11030, 0,
         (const char *symbol, void **found, int version, uint64_t flags), (symbol, found, version, flags),
         ANSWERED(symbol, found, version, flags))
RESOLVER(DRIVER, cuGetProcAddress_v2, "cuGetProcAddress", 12000, 0,
         (const char *symbol, void **found, int version, uint64_t flags, int *status),
         (symbol, found, version, flags, status), ANSWERED(symbol, found, version, flags))
RESOLVER(RUNTIME, cudaGetDriverEntryPoint, "", 0, 0,
         (const char *symbol, void **found, unsigned long long flags, int *status), (symbol, found, flags, status),
         ANSWERED_BY_RUNTIME(symbol, found, flags))
RESOLVER(RUNTIME, cudaGetDriverEntryPoint_ptsz, "", 0, 1,
         (const char *symbol, void **found, unsigned long long flags, int *status), (symbol, found, flags, status),
         ANSWERED_BY_RUNTIME(symbol, found, flags ? flags : CUDA_FLAG_PER_THREAD_STREAM))
RESOLVER(RUNTIME, cudaGetDriverEntryPointByVersion, "", 0, 0,
         (const char *symbol, void **found, unsigned version, unsigned long long flags, int *status),
         (symbol, found, version, flags, status), ANSWERED(symbol, found, (int)version, flags))
RESOLVER(RUNTIME, cudaGetDriverEntryPointByVersion_ptsz, "", 0, 1,
         (const char *symbol, void **found, unsigned version, unsigned long long flags, int *status),
         (symbol, found, version, flags, status),
         ANSWERED(symbol, found, (int)version, flags ? flags : CUDA_FLAG_PER_THREAD_STREAM))

#undef ENTRY
#undef RESOLVER
