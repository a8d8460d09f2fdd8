/* The test libraries call package fakegpu, which is in the same process, through these functions. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Puts a call on a stream: work(device, data) runs when the stream reaches it, and returns a CUresult. */
typedef int (*fake_work)(int device, void *data);

static int fake_enqueue(void *stream, fake_work work, void *data) {
  int (*f)(void *, fake_work, void *) = (int (*)(void *, fake_work, void *))dlsym(RTLD_DEFAULT, "fkEnqueue");
  return f ? f(stream, work, data) : 999;
}

/* Returns the memory at an address of the device. Only work may call it. write means that work writes all n bytes. */
static void *fake_bytes(int device, uint64_t at, size_t n, int write) {
  uintptr_t (*f)(int, uint64_t, size_t, int) = (uintptr_t(*)(int, uint64_t, size_t, int))dlsym(RTLD_DEFAULT, "fkBytes");
  return f ? (void *)f(device, at, n, write) : NULL;
}
