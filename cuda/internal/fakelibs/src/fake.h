/* How the test libraries reach package fakegpu, in whose process they are. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Puts a call on a stream: work(device, data) runs when the stream comes to it, and returns a CUresult. */
typedef int (*fake_work)(int device, void *data);

static int fake_enqueue(void *stream, fake_work work, void *data) {
  int (*f)(void *, fake_work, void *) = (int (*)(void *, fake_work, void *))dlsym(RTLD_DEFAULT, "fkEnqueue");
  return f ? f(stream, work, data) : 999;
}

/* The memory at an address of the device; within work only. write says that all of it will be written. */
static void *fake_bytes(int device, uint64_t at, size_t n, int write) {
  uintptr_t (*f)(int, uint64_t, size_t, int) = (uintptr_t(*)(int, uint64_t, size_t, int))dlsym(RTLD_DEFAULT, "fkBytes");
  return f ? (void *)f(device, at, n, write) : NULL;
}
