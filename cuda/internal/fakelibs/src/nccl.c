/* A library in the shape of NCCL, for tests: sums and broadcasts of float32 between processes of this
   machine, over a mapped file that the id names. What goes wrong can be planted by the
   environment variable FAKE_NCCL: "async:RANK:AFTER" has that rank report a remote error once AFTER
   collectives are done; "hang:RANK:AFTER" has it never come to the next one; "init" refuses to start;
   "shared" refuses, as on one device, unless NCCL_MULTI_RANK_GPU_ENABLE is 1. */
#include "fake.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifndef VERSION
#define VERSION 22903
#endif

enum { OK = 0, CUDA_FAILED = 1, SYSTEM = 2, INTERNAL = 3, INVALID_ARGUMENT = 4, INVALID_USAGE = 5, REMOTE = 6 };
enum { FLOAT32 = 7, SUM = 0, SLOT = 1 << 16, RANKS = 16, TIMEOUT_SECONDS = 20 };

struct shared {
  atomic_int joined, left;
  atomic_int arrived, round; /* of a barrier */
  atomic_int failed;
  float slots[RANKS][SLOT];
};

struct comm {
  struct shared *mem;
  char name[160];
  int rank, world, done, hang;
  atomic_int async, aborted;
};

struct id {
  char name[128];
};

int ncclGetVersion(int *v) {
  *v = VERSION;
  return OK;
}

const char *ncclGetErrorString(int r) {
  static const char *text[] = {"no error", "unhandled cuda error", "unhandled system error", "internal error", "invalid argument", "invalid usage", "remote process exited or there was a network error"};
  return r >= 0 && r <= REMOTE ? text[r] : "unknown";
}

static const char *last = "";
const char *ncclGetLastError(void *comm) { return last; }

int ncclGetUniqueId(struct id *id) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  memset(id, 0, sizeof *id);
  const char *dir = getenv("TMPDIR");
  int n = snprintf(id->name, sizeof id->name, "%s/fake-nccl-%d-%ld", dir ? dir : "/tmp", getpid(), t.tv_nsec);
  if (n >= (int)sizeof id->name) return SYSTEM; /* too long a directory */
  return OK;
}

/* Waits for a condition a little at a time; false after too long or when the communicator is given up. */
#define WAIT(c, condition)                                                                     \
  ({                                                                                           \
    int ok = 1;                                                                                \
    for (long n = 0; !(condition); n++) {                                                      \
      if (atomic_load(&(c)->aborted) || atomic_load(&(c)->mem->failed) || n > TIMEOUT_SECONDS * 20000L) { \
        ok = 0;                                                                                \
        break;                                                                                 \
      }                                                                                        \
      usleep(50);                                                                              \
    }                                                                                          \
    ok;                                                                                        \
  })

static int barrier(struct comm *c) {
  struct shared *m = c->mem;
  int round = atomic_load(&m->round);
  if (atomic_fetch_add(&m->arrived, 1) == c->world - 1) {
    atomic_store(&m->arrived, 0);
    atomic_fetch_add(&m->round, 1);
    return 1;
  }
  return WAIT(c, atomic_load(&m->round) != round);
}

int ncclCommInitRank(void **out, int world, struct id id, int rank) {
  const char *plan = getenv("FAKE_NCCL");
  if (plan && !strcmp(plan, "init")) {
    last = "no socket interface found";
    return SYSTEM;
  }
  const char *share = getenv("NCCL_MULTI_RANK_GPU_ENABLE");
  if (plan && !strcmp(plan, "shared") && (!share || strcmp(share, "1"))) {
    last = "several ranks are on one device";
    return INVALID_USAGE;
  }
  if (world < 1 || world > RANKS || rank < 0 || rank >= world) return INVALID_ARGUMENT;
  struct comm *c = calloc(1, sizeof *c);
  c->rank = rank;
  c->world = world;
  c->hang = -1;
  snprintf(c->name, sizeof c->name, "%s-%d", id.name, world);
  int fd = open(c->name, O_CREAT | O_RDWR, 0600);
  if (fd < 0 || ftruncate(fd, sizeof(struct shared))) return SYSTEM;
  c->mem = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (c->mem == MAP_FAILED) return SYSTEM;
  int r, after;
  if (plan && sscanf(plan, "async:%d:%d", &r, &after) == 2 && r == rank) c->async = -after - 1;
  if (plan && sscanf(plan, "hang:%d:%d", &r, &after) == 2 && r == rank) c->hang = after;
  atomic_fetch_add(&c->mem->joined, 1);
  if (!WAIT(c, atomic_load(&c->mem->joined) >= world)) {
    unlink(c->name);
    last = "not every rank has come";
    return REMOTE;
  }
  unlink(c->name); /* all have it open */
  *out = c;
  return OK;
}

struct work {
  struct comm *c;
  uint64_t from, to;
  size_t n;
  int root; /* -1: a sum */
};

static int run(int device, void *data) {
  struct work w = *(struct work *)data;
  struct comm *c = w.c;
  free(data);
  if (c->done++ == c->hang) WAIT(c, 0);
  if (atomic_load(&c->async) < 0 && atomic_fetch_add(&c->async, 1) == -1) {
    atomic_store(&c->async, REMOTE);
    atomic_store(&c->mem->failed, 1);
  }
  for (size_t at = 0; at < w.n; at += SLOT) {
    size_t n = w.n - at < SLOT ? w.n - at : SLOT;
    if (w.root < 0 || w.root == c->rank) {
      float *from = fake_bytes(device, w.from + 4 * at, 4 * n, 0);
      if (!from) return 700;
      memcpy(c->mem->slots[c->rank], from, 4 * n);
    }
    if (!barrier(c)) goto lost;
    float *to = fake_bytes(device, w.to + 4 * at, 4 * n, 1);
    if (!to) return 700;
    if (w.root >= 0)
      memcpy(to, c->mem->slots[w.root], 4 * n);
    else
      for (size_t i = 0; i < n; i++) {
        float s = 0;
        for (int r = 0; r < c->world; r++) s += c->mem->slots[r][i];
        to[i] = s;
      }
    if (!barrier(c)) goto lost;
  }
  return 0;
lost: /* as with NCCL the stream goes on when the communicator is given up, and not before */
  if (!atomic_load(&c->aborted) && atomic_load(&c->async) <= 0) atomic_store(&c->async, REMOTE);
  for (int n = 0; !atomic_load(&c->aborted) && n < TIMEOUT_SECONDS * 20000; n++) usleep(50);
  return 0;
}

static int put(struct comm *c, void *stream, struct work w) {
  if (atomic_load(&c->aborted)) return INVALID_USAGE;
  struct work *p = malloc(sizeof *p);
  *p = w;
  return fake_enqueue(stream, run, p) ? CUDA_FAILED : OK;
}

int ncclAllReduce(const void *from, void *to, size_t n, int type, int op, void *comm, void *stream) {
  if (type != FLOAT32 || op != SUM) return INVALID_ARGUMENT;
  return put(comm, stream, (struct work){comm, (uint64_t)from, (uint64_t)to, n, -1});
}

int ncclBroadcast(const void *from, void *to, size_t n, int type, int root, void *comm, void *stream) {
  if (type != FLOAT32) return INVALID_ARGUMENT;
  return put(comm, stream, (struct work){comm, (uint64_t)from, (uint64_t)to, n, root});
}

int ncclCommGetAsyncError(void *comm, int *r) {
  int a = atomic_load(&((struct comm *)comm)->async);
  *r = a > 0 ? a : OK;
  return OK;
}

int ncclCommAbort(void *comm) {
  atomic_store(&((struct comm *)comm)->aborted, 1);
  return OK; /* work that is under way still looks at it */
}

int ncclCommDestroy(void *comm) {
  struct comm *c = comm;
  munmap(c->mem, sizeof(struct shared));
  free(c);
  return OK;
}
