/* hook_cuda_text.c — the functions of the CUDA runtime that return the text of an error. They are not in
 * cuda_table.h, because the functions in that table return an error number.
 * In: calls of the program and of libraries. Out: the same calls to the real functions. If the text of error 700 is
 * asked for, memstow names the memory that may have caused it (cuda_fault.h). */
#include "preload/cuda/cuda_route.h"
#include "preload/events/cuda_fault.h"
#include "preload/life/process.h"

#define HOOK __attribute__((visibility("default")))

typedef const char *text_of(int error);

static text_of *hook_cuda_text(const char *name, int error, struct caller caller) {
    const struct cuda_call call = {.caller = caller};
    if (process_tracked()) cuda_fault_asked(&call, name, error);
    return (text_of *)cuda_route_bound(name, caller.address);
}

const char *cudaGetErrorName(int error);
HOOK const char *cudaGetErrorName(int error) {
    static const char name[] = "cudaGetErrorName";
    text_of *real = hook_cuda_text(name, error, CALLER);
    return real ? real(error) : "cudaErrorSharedObjectSymbolNotFound";
}

const char *cudaGetErrorString(int error);
HOOK const char *cudaGetErrorString(int error) {
    static const char name[] = "cudaGetErrorString";
    text_of *real = hook_cuda_text(name, error, CALLER);
    return real ? real(error) : "there is no CUDA runtime in this process";
}
