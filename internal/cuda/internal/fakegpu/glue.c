//go:build cuda && linux && cgo

#include "glue.h"

#include "_cgo_export.h"

static _Thread_local long current;

void fk_set_current(long context) { current = context; }
long fk_current(void) { return current; }

#define CALL(name, function) {name, (void *)function}

static const struct {
  const char *name;
  void *call;
} calls[] = {
    CALL("cuDriverGetVersion", fkDriverGetVersion),
    CALL("cuDeviceGetCount", fkDeviceGetCount),
    CALL("cuDeviceGet", fkDeviceGet),
    CALL("cuDeviceGetName", fkDeviceGetName),
    CALL("cuDeviceGetUuid", fkDeviceGetUuid),
    CALL("cuDeviceTotalMem_v2", fkDeviceTotalMem),
    CALL("cuDeviceGetAttribute", fkDeviceGetAttribute),
    CALL("cuDevicePrimaryCtxRetain", fkPrimaryCtxRetain),
    CALL("cuDevicePrimaryCtxRelease_v2", fkPrimaryCtxRelease),
    CALL("cuCtxSetCurrent", fkCtxSetCurrent),
    CALL("cuCtxGetCurrent", fkCtxGetCurrent),
    CALL("cuCtxSynchronize", fkCtxSynchronize),
    CALL("cuCtxGetStreamPriorityRange", fkCtxGetStreamPriorityRange),
    CALL("cuMemGetInfo_v2", fkMemGetInfo),
    CALL("cuMemAlloc_v2", fkMemAlloc),
    CALL("cuMemFree_v2", fkMemFree),
    CALL("cuMemHostAlloc", fkMemHostAlloc),
    CALL("cuMemFreeHost", fkMemFreeHost),
    CALL("cuMemHostRegister_v2", fkMemHostRegister),
    CALL("cuMemHostUnregister", fkMemHostUnregister),
    CALL("cuMemHostGetDevicePointer_v2", fkMemHostGetDevicePointer),
    CALL("cuMemcpyHtoDAsync_v2", fkMemcpyHtoDAsync),
    CALL("cuMemcpyDtoHAsync_v2", fkMemcpyDtoHAsync),
    CALL("cuMemcpyDtoDAsync_v2", fkMemcpyDtoDAsync),
    CALL("cuMemsetD8Async", fkMemsetD8Async),
    CALL("cuMemsetD32Async", fkMemsetD32Async),
    CALL("cuStreamCreateWithPriority", fkStreamCreateWithPriority),
    CALL("cuStreamDestroy_v2", fkStreamDestroy),
    CALL("cuStreamSynchronize", fkStreamSynchronize),
    CALL("cuStreamWaitEvent", fkStreamWaitEvent),
    CALL("cuEventCreate", fkEventCreate),
    CALL("cuEventDestroy_v2", fkEventDestroy),
    CALL("cuEventRecord", fkEventRecord),
    CALL("cuEventQuery", fkEventQuery),
    CALL("cuEventSynchronize", fkEventSynchronize),
    CALL("cuEventElapsedTime", fkEventElapsedTime),
    CALL("cuModuleLoadDataEx", fkModuleLoadDataEx),
    CALL("cuModuleUnload", fkModuleUnload),
    CALL("cuModuleGetFunction", fkModuleGetFunction),
    CALL("cuFuncSetAttribute", fkFuncSetAttribute),
    CALL("cuLaunchKernel", fkLaunchKernel),
};

int fk_len(void) { return sizeof calls / sizeof calls[0]; }
const char *fk_name(int i) { return calls[i].name; }
void *fk_call(int i) { return calls[i].call; }
