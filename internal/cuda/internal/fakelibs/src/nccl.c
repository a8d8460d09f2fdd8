/* A test library with NCCL's interface: sums, broadcasts and exchanges of float32 between processes that share a file
   system. They communicate through a mapped file that the id names.


   It reports an error where NCCL may deadlock. If two ranks launch the operations of their communicators in different
   orders, one gets an error that says so, and the other an error that a remote rank failed. A call while an earlier
   one is in progress is an error.


   The environment variable FAKE_NCCL injects a fault:
     async:RANK:AFTER  the rank reports a remote error after AFTER operations
     hang:RANK:AFTER   the rank hangs after AFTER operations
     never:RANK        the rank never joins
     init              initialisation fails
     stuck             ncclCommAbort returns only after TIMEOUT_SECONDS
     shared            initialisation fails, as for ranks that share a device, unless NCCL_MULTI_RANK_GPU_ENABLE is 1 */
#include "fake.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
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

enum { OK = 0, CUDA_FAILED = 1, SYSTEM = 2, INTERNAL = 3, INVALID_ARGUMENT = 4, INVALID_USAGE = 5, REMOTE = 6, IN_PROGRESS = 7 };
enum { FLOAT32 = 7, SUM = 0, SLOT = 1 << 16, PIECE = 1 << 13, RANKS = 16, LOG = 1 << 10, GROUP = 2 * RANKS, TIMEOUT_SECONDS = 20 };

/* A message from one rank to another travels in pieces. */
struct channel {
  atomic_int full;
  float piece[PIECE];
};

/* The operations that a rank has launched and another rank takes part in, to compare their orders. */
struct order {
  atomic_long n;
  atomic_uint log[LOG];
};

struct shared {
  atomic_int joined;
  atomic_int arrived, round; /* of a barrier */
  atomic_int failed;
  struct order orders[RANKS][RANKS]; /* [rank][peer]; those of a rank's first communicator serve all its communicators */
  float slots[RANKS][SLOT];
  struct channel channels[RANKS][RANKS]; /* [from][to] */
};

struct comm {
  struct shared *mem;
  char name[160];
  int rank, world, done, hang;
  int blocking, joined;
  atomic_int async, aborted, busy; /* busy: without blocking, 2 before the first operation and 1 during it; else 0 */
  struct comm *first, *next;       /* first: the rank's first communicator, which has the orders */
};

struct id {
  char name[128];
};

struct config { /* since NCCL 2.14 */
  size_t size;
  unsigned magic, version;
  int blocking;
};

int ncclGetVersion(int *v) {
  *v = VERSION;
  return OK;
}

const char *ncclGetErrorString(int r) {
  static const char *text[] = {"no error", "unhandled cuda error", "unhandled system error", "internal error", "invalid argument", "invalid usage", "remote process exited or there was a network error", "operation in progress"};
  return r >= 0 && r <= IN_PROGRESS ? text[r] : "unknown";
}

static char last[300] = "";
const char *ncclGetLastError(void *comm) { return last; }

static int refuse(int status, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(last, sizeof last, format, args);
  va_end(args);
  return status;
}

/* Returns the number after "NAME:" in FAKE_NCCL, 0 if there is only NAME, or -1 without NAME. Sets *then, if then is not
   null, to the second number. */
static int planned(const char *name, int *then) {
  const char *plan = getenv("FAKE_NCCL");
  size_t n = strlen(name);
  int a;
  if (!plan || strncmp(plan, name, n)) return -1;
  if (plan[n] == 0) return 0;
  if (plan[n] != ':' || sscanf(plan + n + 1, then ? "%d:%d" : "%d", &a, then) < (then ? 2 : 1)) return -1;
  return a;
}

int ncclGetUniqueId(struct id *id) {
  static atomic_int made;
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  memset(id, 0, sizeof *id);
  const char *dir = getenv("TMPDIR");
  int n = snprintf(id->name, sizeof id->name, "%s/fake-nccl-%d-%ld-%d", dir ? dir : "/tmp", getpid(), t.tv_nsec, atomic_fetch_add(&made, 1));
  if (n >= (int)sizeof id->name) return refuse(SYSTEM, "TMPDIR is too long");
  return OK;
}

/* Polls a condition. The result is false after a timeout, or if the communicator is aborted or has failed. */
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

/* The communicators of this process, which may hold several ranks. */
static struct comm *all;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void add(struct comm *c) {
  pthread_mutex_lock(&lock);
  c->first = c;
  for (struct comm *o = all; o; o = o->next)
    if (o->rank == c->rank && o->world == c->world && !atomic_load(&o->aborted)) c->first = o->first;
  c->next = all;
  all = c;
  pthread_mutex_unlock(&lock);
}

static int have_all(struct comm *c) {
  if (c->joined) return 1;
  if (atomic_load(&c->mem->joined) < c->world) return 0;
  unlink(c->name); /* all ranks have opened the file */
  c->joined = 1;
  return 1;
}

static int init(void **out, int world, struct id id, int rank, int blocking) {
  if (planned("init", NULL) >= 0) return refuse(SYSTEM, "no socket interface found");
  const char *share = getenv("NCCL_MULTI_RANK_GPU_ENABLE");
  if (planned("shared", NULL) >= 0 && (!share || strcmp(share, "1"))) return refuse(INVALID_USAGE, "several ranks are on one device");
  if (world < 1 || world > RANKS || rank < 0 || rank >= world) return INVALID_ARGUMENT;
  struct comm *c = calloc(1, sizeof *c);
  c->rank = rank;
  c->world = world;
  c->hang = -1;
  c->blocking = blocking;
  snprintf(c->name, sizeof c->name, "%s-%d", id.name, world);
  int fd = open(c->name, O_CREAT | O_RDWR, 0600);
  if (fd < 0 || ftruncate(fd, sizeof(struct shared))) return refuse(SYSTEM, "%s cannot be made", c->name);
  c->mem = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (c->mem == MAP_FAILED) return SYSTEM;
  int after;
  if (planned("async", &after) == rank) c->async = -after - 1;
  if (planned("hang", &after) == rank) c->hang = after;
  if (planned("never", NULL) == rank)
    c->world = RANKS + 1; /* more than ever join */
  else
    atomic_fetch_add(&c->mem->joined, 1);
  *out = c;
  add(c);
  if (!blocking) {
    atomic_store(&c->busy, 2); /* the first operation will return IN_PROGRESS */
    return IN_PROGRESS;
  }
  if (!WAIT(c, have_all(c))) {
    unlink(c->name);
    return refuse(REMOTE, "timed out waiting for the other ranks");
  }
  return OK;
}

int ncclCommInitRank(void **out, int world, struct id id, int rank) { return init(out, world, id, rank, 1); }

#if VERSION >= 21400
int ncclCommInitRankConfig(void **out, int world, struct id id, int rank, struct config *config) {
  if (config->magic != 0xcafebeef || config->size != sizeof *config) return refuse(INVALID_ARGUMENT, "the configuration has a wrong magic number or size");
  return init(out, world, id, rank, config->blocking);
}
#endif

/* Records an operation that this rank launches together with a peer. If the peer has already launched its operation of
   the same number, both must be the same. */
static int ordered(struct comm *c, int peer, unsigned what) {
  struct comm *f = c->first;
  const char *s = c->name; /* the name is the same on all ranks, the address is not */
  unsigned h = 2166136261u ^ what;
  while (*s) h = (h ^ (unsigned char)*s++) * 16777619u;
  h |= 1;
  struct order *mine = &f->mem->orders[c->rank][peer], *theirs = &f->mem->orders[peer][c->rank];
  long n = atomic_load(&mine->n);
  atomic_store(&mine->log[n % LOG], h);
  atomic_store(&mine->n, n + 1);
  long ahead = atomic_load(&theirs->n) - n;
  if (ahead <= 0 || ahead > LOG || atomic_load(&theirs->log[n % LOG]) == h) return OK;
  pthread_mutex_lock(&lock);
  for (struct comm *o = all; o; o = o->next)
    if (o->first == f) atomic_store(&o->mem->failed, 1); /* because the peer may wait in any of them */
  pthread_mutex_unlock(&lock);
  return refuse(INVALID_USAGE, "ranks %d and %d launch the operations of their communicators in different orders: operation %ld differs", c->rank, peer, n);
}

struct part {
  uint64_t at;
  size_t n, done;
  int peer, receives;
};

struct work {
  struct comm *c;
  uint64_t from, to;
  size_t n;
  int root;  /* -1 for a sum */
  int parts; /* the number of parts of an exchange, else 0 */
  struct part part[GROUP];
};

/* Moves one piece of a part, if possible now. Returns 1 if it moved a piece, 0 if not, -1 on an error. */
static int move(struct comm *c, int device, struct part *p) {
  struct channel *ch = p->receives ? &c->mem->channels[p->peer][c->rank] : &c->mem->channels[c->rank][p->peer];
  if (p->done == p->n || atomic_load(&ch->full) != p->receives) return 0;
  size_t n = p->n - p->done < PIECE ? p->n - p->done : PIECE;
  float *mine = fake_bytes(device, p->at + 4 * p->done, 4 * n, p->receives);
  if (!mine) return -1;
  memcpy(p->receives ? mine : ch->piece, p->receives ? ch->piece : mine, 4 * n);
  atomic_store(&ch->full, !p->receives);
  p->done += n;
  return 1;
}

/* Returns 1 if all parts are done, 0 if the communicator was aborted, failed or timed out, -1 on an error. */
static int exchange(struct comm *c, int device, struct work *w) {
  for (long idle = 0;; idle++) {
    size_t left = 0;
    for (int i = 0; i < w->parts; i++) {
      int moved = move(c, device, &w->part[i]);
      if (moved < 0) return -1;
      if (moved) idle = 0;
      left += w->part[i].n - w->part[i].done;
    }
    if (!left) return 1;
    if (atomic_load(&c->aborted) || atomic_load(&c->mem->failed) || idle > TIMEOUT_SECONDS * 20000L) return 0;
    if (idle) usleep(50);
  }
}

static int run(int device, void *data) {
  struct work w = *(struct work *)data;
  struct comm *c = w.c;
  free(data);
  if (c->done++ == c->hang) {
    WAIT(c, 0);
    goto lost;
  }
  if (atomic_load(&c->async) < 0 && atomic_fetch_add(&c->async, 1) == -1) {
    atomic_store(&c->async, REMOTE);
    atomic_store(&c->mem->failed, 1);
  }
  if (w.parts) {
    int done = exchange(c, device, &w);
    if (done < 0) return 700;
    if (!done) goto lost;
    return 0;
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
lost: /* as with NCCL, the stream continues only when the communicator is aborted */
  if (!atomic_load(&c->aborted) && atomic_load(&c->async) <= 0) atomic_store(&c->async, REMOTE);
  for (int n = 0; !atomic_load(&c->aborted) && n < TIMEOUT_SECONDS * 20000; n++) usleep(50);
  return 0;
}

static int ready(struct comm *c) {
  if (atomic_load(&c->aborted)) return refuse(INVALID_USAGE, "the communicator was aborted");
  if (!have_all(c)) return refuse(INVALID_USAGE, "not all ranks have joined the communicator");
  int busy = atomic_load(&c->busy);
  if (busy == 1) return refuse(INVALID_USAGE, "an earlier call is in progress");
  return OK;
}

static int put(struct comm *c, void *stream, struct work w) {
  struct work *p = malloc(sizeof *p);
  *p = w;
  if (fake_enqueue(stream, run, p)) return CUDA_FAILED;
  if (atomic_load(&c->busy) != 2) return OK;
  atomic_store(&c->busy, 1); /* the first operation connects the ranks */
  return IN_PROGRESS;
}

static int collective(struct comm *c, void *stream, struct work w) {
  int r = ready(c);
  for (int peer = 0; peer < c->world && !r; peer++)
    if (peer != c->rank) r = ordered(c, peer, (unsigned)w.n * 31 + (unsigned)w.root + 2);
  return r ? r : put(c, stream, w);
}

int ncclAllReduce(const void *from, void *to, size_t n, int type, int op, void *comm, void *stream) {
  if (type != FLOAT32 || op != SUM) return INVALID_ARGUMENT;
  return collective(comm, stream, (struct work){comm, (uint64_t)from, (uint64_t)to, n, -1});
}

int ncclBroadcast(const void *from, void *to, size_t n, int type, int root, void *comm, void *stream) {
  if (type != FLOAT32) return INVALID_ARGUMENT;
  return collective(comm, stream, (struct work){comm, (uint64_t)from, (uint64_t)to, n, root});
}

/* A group holds sends and receives of one communicator, on one stream. */
static _Thread_local struct {
  int open;
  struct work w;
  void *stream;
} group;

int ncclGroupStart(void) {
  if (group.open) return refuse(INVALID_USAGE, "ncclGroupStart was called within a group");
  memset(&group, 0, sizeof group);
  group.open = 1;
  return OK;
}

static int piece(void *comm, void *stream, struct part p, int type) {
  if (!group.open) return refuse(INVALID_USAGE, "a send or receive outside a group may deadlock");
  if (type != FLOAT32 || group.w.parts == GROUP) return INVALID_ARGUMENT;
  if (group.w.parts && (group.w.c != comm || group.stream != stream)) return refuse(INVALID_USAGE, "a group has several communicators or streams");
  group.w.c = comm;
  group.stream = stream;
  group.w.part[group.w.parts++] = p;
  return OK;
}

int ncclSend(const void *from, size_t n, int type, int peer, void *comm, void *stream) {
  return piece(comm, stream, (struct part){(uint64_t)from, n, 0, peer, 0}, type);
}

int ncclRecv(void *to, size_t n, int type, int peer, void *comm, void *stream) {
  return piece(comm, stream, (struct part){(uint64_t)to, n, 0, peer, 1}, type);
}

int ncclGroupEnd(void) {
  if (!group.open) return INVALID_USAGE;
  group.open = 0;
  struct comm *c = group.w.c;
  if (!group.w.parts) return OK;
  int r = ready(c);
  for (int peer = 0; peer < c->world && !r; peer++) {
    unsigned up = 0, down = 0, any = 0; /* elements sent to the greater rank, and to the smaller one */
    for (int i = 0; i < group.w.parts; i++) {
      struct part *p = &group.w.part[i];
      if (p->peer != peer) continue;
      any = 1;
      if ((c->rank < peer) != p->receives)
        up += p->n;
      else
        down += p->n;
    }
    if (any && peer != c->rank) r = ordered(c, peer, 0x80000000u ^ up * 31 ^ down * 17);
  }
  return r ? r : put(c, group.stream, group.w);
}

int ncclCommGetAsyncError(void *comm, int *r) {
  struct comm *c = comm;
  int a = atomic_load(&c->async);
  *r = a > 0 ? a : OK;
  if (*r == OK && !have_all(c)) *r = IN_PROGRESS;
  if (*r == OK && atomic_load(&c->busy) == 1) {
    atomic_store(&c->busy, 0);
    *r = IN_PROGRESS;
  }
  return OK;
}

int ncclCommAbort(void *comm) {
  struct comm *c = comm;
  atomic_store(&c->aborted, 1);
  if (!c->joined) unlink(c->name);
  if (planned("stuck", NULL) >= 0) sleep(TIMEOUT_SECONDS);
  return OK; /* work in progress still reads c */
}

int ncclCommDestroy(void *comm) {
  struct comm *c = comm;
  pthread_mutex_lock(&lock);
  for (struct comm **p = &all; *p; p = &(*p)->next)
    if (*p == c) {
      *p = c->next;
      break;
    }
  for (struct comm *o = all; o; o = o->next)
    if (o->first == c) o->first = o; /* the orders restart, in the same way on all ranks */
  pthread_mutex_unlock(&lock);
  munmap(c->mem, sizeof(struct shared));
  free(c);
  return OK;
}
