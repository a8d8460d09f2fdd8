//go:build cuda && linux && cgo

package nccl

/*
#include <stddef.h>
#include <string.h>

typedef struct {
  char bytes[128];
} nccl_id;

typedef int (*version_fn)(int *);
typedef const char *(*text_fn)(int);
typedef const char *(*last_fn)(void *);
typedef int (*id_fn)(nccl_id *);
typedef int (*init_fn)(void **, int, nccl_id, int);

// The fields of version 2.14. A newer library recognises the version and uses its defaults for newer fields.
typedef struct {
  size_t size;
  unsigned int magic, version;
  int blocking;
} nccl_config;
typedef int (*init_config_fn)(void **, int, nccl_id, int, nccl_config *);
typedef int (*group_fn)(void);
typedef int (*send_fn)(const void *, size_t, int, int, void *, void *);
typedef int (*recv_fn)(void *, size_t, int, int, void *, void *);
typedef int (*reduce_fn)(const void *, void *, size_t, int, int, void *, void *);
typedef int (*broadcast_fn)(const void *, void *, size_t, int, int, void *, void *);
typedef int (*async_fn)(void *, int *);
typedef int (*comm_fn)(void *);

enum { FLOAT32 = 7, SUM = 0 };

static int version(void *f, int *v) { return ((version_fn)f)(v); }
static const char *text(void *f, int code) { return ((text_fn)f)(code); }
static const char *last(void *f, size_t comm) { return ((last_fn)f)((void *)comm); }
static int new_id(void *f, void *id) { return ((id_fn)f)(id); }

static int init(void *f, size_t *comm, int world, const void *id, int rank) {
  nccl_id copy;
  memcpy(&copy, id, sizeof copy);
  void *c = NULL;
  int r = ((init_fn)f)(&c, world, copy, rank);
  *comm = (size_t)c;
  return r;
}

// init_config returns at once, with a communicator that is still being set up.
static int init_config(void *f, size_t *comm, int world, const void *id, int rank) {
  nccl_config config = {sizeof config, 0xcafebeef, 21400, 0};
  nccl_id copy;
  memcpy(&copy, id, sizeof copy);
  void *c = NULL;
  int r = ((init_config_fn)f)(&c, world, copy, rank, &config);
  *comm = (size_t)c;
  return r;
}

static int group(void *f) { return ((group_fn)f)(); }

static int send(void *f, size_t comm, size_t stream, unsigned long long p, size_t n, int peer) {
  return ((send_fn)f)((void *)p, n, FLOAT32, peer, (void *)comm, (void *)stream);
}

static int recv(void *f, size_t comm, size_t stream, unsigned long long p, size_t n, int peer) {
  return ((recv_fn)f)((void *)p, n, FLOAT32, peer, (void *)comm, (void *)stream);
}

static int all_reduce(void *f, size_t comm, size_t stream, unsigned long long p, size_t n) {
  return ((reduce_fn)f)((void *)p, (void *)p, n, FLOAT32, SUM, (void *)comm, (void *)stream);
}

static int broadcast(void *f, size_t comm, size_t stream, unsigned long long p, size_t n, int root) {
  return ((broadcast_fn)f)((void *)p, (void *)p, n, FLOAT32, root, (void *)comm, (void *)stream);
}

static int async_error(void *f, size_t comm, int *r) { return ((async_fn)f)((void *)comm, r); }
static int on_comm(void *f, size_t comm) { return ((comm_fn)f)((void *)comm); }
*/
import "C"

import (
	"cmp"
	"errors"
	"fmt"
	"unsafe"

	"github.com/graphnb/graphnb/internal/cuda"
	"github.com/graphnb/graphnb/internal/cuda/libs"
)

// table holds the functions of a loaded NCCL.
type table struct {
	versionF, textF, lastF, idF, initF, configF, reduceF, broadcastF, startF, endF, sendF, recvF, asyncF, abortF, destroyF unsafe.Pointer
}

func load(file string) (library, error) {
	t := &table{}
	err := libs.Load(file, map[string]*unsafe.Pointer{
		"ncclGetVersion":        &t.versionF,
		"ncclGetErrorString":    &t.textF,
		"ncclGetLastError":      &t.lastF, // since 2.13
		"ncclGetUniqueId":       &t.idF,
		"ncclCommInitRank":      &t.initF,
		"ncclAllReduce":         &t.reduceF,
		"ncclBroadcast":         &t.broadcastF,
		"ncclGroupStart":        &t.startF,
		"ncclGroupEnd":          &t.endF,
		"ncclSend":              &t.sendF, // since 2.7
		"ncclRecv":              &t.recvF,
		"ncclCommGetAsyncError": &t.asyncF,
		"ncclCommAbort":         &t.abortF,
		"ncclCommDestroy":       &t.destroyF,

		"ncclCommInitRankConfig": &t.configF, // since 2.14
	}, &t.lastF, &t.configF)
	if err != nil {
		return nil, err
	}
	return t, nil
}

// status returns a code as an error, with the library's explanation.
func (t *table) status(code C.int, comm uintptr) error {
	const inProgress = 7
	switch code {
	case 0:
		return nil
	case inProgress:
		return errInProgress
	}
	text := fmt.Sprintf("error %d", int(code))
	if s := C.text(t.textF, code); s != nil {
		text = C.GoString(s)
	}
	if t.lastF != nil {
		if s := C.last(t.lastF, C.size_t(comm)); s != nil && *s != 0 {
			text += ": " + C.GoString(s)
		}
	}
	return Status{int(code), text}
}

func (t *table) version() (int, error) {
	var v C.int
	err := t.status(C.version(t.versionF, &v), 0)
	return int(v), err
}

func (t *table) newID() (id ID, err error) {
	err = t.status(C.new_id(t.idF, unsafe.Pointer(&id[0])), 0)
	return id, err
}

func (t *table) open(id ID, rank, world int) (uintptr, error) {
	var comm C.size_t
	var code C.int
	if t.configF != nil {
		code = C.init_config(t.configF, &comm, C.int(world), unsafe.Pointer(&id[0]), C.int(rank))
	} else {
		code = C.init(t.initF, &comm, C.int(world), unsafe.Pointer(&id[0]), C.int(rank))
	}
	return uintptr(comm), t.status(code, 0)
}

func (t *table) exchange(comm, stream uintptr, parts []part) error {
	if err := t.status(C.group(t.startF), comm); err != nil {
		return err
	}
	var first error
	for _, p := range parts {
		var code C.int
		if p.receives {
			code = C.recv(t.recvF, C.size_t(comm), C.size_t(stream), C.ulonglong(p.at), C.size_t(p.n), C.int(p.peer))
		} else {
			code = C.send(t.sendF, C.size_t(comm), C.size_t(stream), C.ulonglong(p.at), C.size_t(p.n), C.int(p.peer))
		}
		if err := t.status(code, comm); err != nil && !errors.Is(err, errInProgress) {
			first = cmp.Or(first, err)
		}
	}
	err := t.status(C.group(t.endF), comm) // also after an error, which it then returns
	return cmp.Or(first, err)
}

func (t *table) allReduce(comm, stream uintptr, p cuda.Ptr, n int) error {
	return t.status(C.all_reduce(t.reduceF, C.size_t(comm), C.size_t(stream), C.ulonglong(p), C.size_t(n)), comm)
}

func (t *table) broadcast(comm, stream uintptr, p cuda.Ptr, n, root int) error {
	return t.status(C.broadcast(t.broadcastF, C.size_t(comm), C.size_t(stream), C.ulonglong(p), C.size_t(n), C.int(root)), comm)
}

func (t *table) asyncError(comm uintptr) error {
	var r C.int
	if err := t.status(C.async_error(t.asyncF, C.size_t(comm), &r), comm); err != nil {
		return err
	}
	return t.status(r, comm)
}

func (t *table) abort(comm uintptr) error {
	return t.status(C.on_comm(t.abortF, C.size_t(comm)), comm)
}

func (t *table) destroy(comm uintptr) error {
	return t.status(C.on_comm(t.destroyF, C.size_t(comm)), comm)
}
