//go:build cuda && linux && cgo

package cublas

/*
#include <stddef.h>

typedef int (*create_fn)(void **);
typedef int (*handle_fn)(void *);
typedef int (*version_fn)(void *, int *);
typedef int (*stream_fn)(void *, void *);
typedef int (*workspace_fn)(void *, void *, size_t);
typedef int (*gemm_fn)(void *, int, int, int, int, int, const void *, const void *, int, int, const void *, int,
                       int, const void *, void *, int, int, int, int);

static int create(void *f, void **h) { return ((create_fn)f)(h); }
static int destroy(void *f, void *h) { return ((handle_fn)f)(h); }
static int version(void *f, void *h, int *v) { return ((version_fn)f)(h, v); }
static int set_stream(void *f, void *h, size_t stream) { return ((stream_fn)f)(h, (void *)stream); }
static int set_workspace(void *f, void *h, unsigned long long p, size_t n) { return ((workspace_fn)f)(h, (void *)p, n); }

// cuBLAS uses column-major matrices, so it reads a row-major matrix as its transpose. C = op(A)·op(B) is
// therefore submitted as Cᵀ = op(B)ᵀ·op(A)ᵀ, and no matrix is copied.
static int gemm(void *f, void *h, int ta, int tb, int m, int n, int k, float alpha, unsigned long long a, int lda,
                unsigned long long b, int ldb, float beta, unsigned long long c, int ldc, int compute) {
  enum { F32 = 0, ALGO_DEFAULT = -1 };
  return ((gemm_fn)f)(h, tb, ta, n, m, k, &alpha, (const void *)b, F32, ldb, (const void *)a, F32, lda, &beta,
                      (void *)c, F32, ldc, compute, ALGO_DEFAULT);
}
*/
import "C"

import (
	"unsafe"

	"github.com/graphnb/graphnb/internal/cuda"
	"github.com/graphnb/graphnb/internal/cuda/libs"
)

// table holds the functions of a loaded cuBLAS.
type table struct {
	createF, destroyF, versionF, streamF, workspaceF, gemmF unsafe.Pointer
}

func load(file string) (library, error) {
	t := &table{}
	err := libs.Load(file, map[string]*unsafe.Pointer{
		"cublasCreate_v2":       &t.createF,
		"cublasDestroy_v2":      &t.destroyF,
		"cublasGetVersion_v2":   &t.versionF,
		"cublasSetStream_v2":    &t.streamF,
		"cublasSetWorkspace_v2": &t.workspaceF,
		"cublasGemmEx":          &t.gemmF, // has a compute type since CUDA 11
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

func result(code C.int) error {
	if code == 0 {
		return nil
	}
	return Status(code)
}

func (t *table) create() (h uintptr, version int, err error) {
	var p unsafe.Pointer
	if err := result(C.create(t.createF, &p)); err != nil {
		return 0, 0, err
	}
	var v C.int
	err = result(C.version(t.versionF, p, &v))
	return uintptr(p), int(v), err
}

// pointer converts a handle to C's pointer. It points to C's memory, which does not move.
func pointer(h uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&h)) }

func (t *table) destroy(h uintptr) error { return result(C.destroy(t.destroyF, pointer(h))) }

func (t *table) setWorkspace(h uintptr, p cuda.Ptr, n int64) error {
	return result(C.set_workspace(t.workspaceF, pointer(h), C.ulonglong(p), C.size_t(n)))
}

func (t *table) setStream(h, stream uintptr) error {
	return result(C.set_stream(t.streamF, pointer(h), C.size_t(stream)))
}

func (t *table) gemm(h uintptr, compute int, p Product) error {
	return result(C.gemm(t.gemmF, pointer(h), trans(p.TransA), trans(p.TransB), C.int(p.M), C.int(p.N), C.int(p.K),
		C.float(p.Alpha), C.ulonglong(p.A), C.int(p.LDA), C.ulonglong(p.B), C.int(p.LDB), C.float(p.Beta), C.ulonglong(p.C), C.int(p.LDC), C.int(compute)))
}

func trans(t bool) C.int {
	if t {
		return 1
	}
	return 0
}
