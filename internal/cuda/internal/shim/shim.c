//go:build cuda && linux && cgo

#include "shim.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static const char *volatile last_absent;

HIDDEN int gnb_absent(const char *name) {
  last_absent = name;
  return 500; /* CUDA_ERROR_NOT_FOUND */
}

HIDDEN const char *gnb_last_absent(void) { return last_absent; }

/* gorgonia.org/cu calls cuInit at program start, and ends the process if it fails. No driver is
   loaded at that time; gnb_load calls the driver's cuInit. */
HIDDEN int cuInit(unsigned int flags) { return 0; }

HIDDEN int gnb_load(const char *library, char *why, int size) {
  void *driver = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!driver) {
    snprintf(why, size, "%s", dlerror());
    return -1;
  }
  int (*init)(unsigned int) = dlsym(driver, "cuInit");
  if (!init) {
    snprintf(why, size, "%s has no cuInit, so it is no CUDA driver", library);
    return -1;
  }
  for (int i = 0; i < gnb_table_len; i++) *gnb_table[i].call = dlsym(driver, gnb_table[i].name);
  return init(0);
}

HIDDEN int gnb_set(const char *name, void *call) {
  for (int i = 0; i < gnb_table_len; i++)
    if (!strcmp(gnb_table[i].name, name)) {
      *gnb_table[i].call = call;
      return 0;
    }
  return 1;
}
