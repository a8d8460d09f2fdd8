/* A test library with cuBLAS's interface: cublasGemmEx for float32, which adds in the order of a plain loop. */
#include "fake.h"

#include <stdio.h>
#include <string.h>

#ifndef VERSION
#define VERSION 120405
#endif

enum { OK = 0, NOT_INITIALIZED = 1, INVALID_VALUE = 7, EXECUTION_FAILED = 13, NOT_SUPPORTED = 15 };
enum { COMPUTE_32F = 68, FAST_BF16 = 75, FAST_TF32 = 77 };

struct handle {
  void *stream;
  void *workspace;
};

int cublasCreate_v2(void **h) {
#ifdef FAIL_CREATE
  return FAIL_CREATE;
#endif
  *h = calloc(1, sizeof(struct handle));
  return OK;
}

int cublasDestroy_v2(void *h) {
  free(h);
  return OK;
}

int cublasGetVersion_v2(void *h, int *v) {
  *v = VERSION;
  return OK;
}

int cublasSetStream_v2(void *h, void *stream) {
  ((struct handle *)h)->stream = stream;
  ((struct handle *)h)->workspace = NULL;
  return OK;
}

int cublasSetWorkspace_v2(void *h, void *p, size_t n) {
  ((struct handle *)h)->workspace = p;
  return OK;
}

struct product {
  int ta, tb, m, n, k, lda, ldb, ldc, keep;
  float alpha, beta;
  uint64_t a, b, c;
};

/* Rounds the mantissa of x to `keep` bits after the point. */
static float rounded(float x, int keep) {
  if (keep >= 23) return x;
  uint32_t u, half = 1u << (22 - keep);
  memcpy(&u, &x, 4);
  u = (u + half - 1 + ((u >> (23 - keep)) & 1)) & ~(2 * half - 1);
  memcpy(&x, &u, 4);
  return x;
}

/* The number of bytes from the start of a matrix's first element to the end of its last. */
static size_t span(int rows, int cols, int ld) { return rows && cols ? 4 * ((size_t)(cols - 1) * ld + rows) : 0; }

static int multiply(int device, void *data) {
  struct product p = *(struct product *)data;
  free(data);
  const float *a = NULL, *b = NULL;
  if (p.k > 0 && p.alpha != 0) {
    a = fake_bytes(device, p.a, span(p.ta ? p.k : p.m, p.ta ? p.m : p.k, p.lda), 0);
    b = fake_bytes(device, p.b, span(p.tb ? p.n : p.k, p.tb ? p.k : p.n, p.ldb), 0);
    if (!a || !b) return 700;
  }
  /* Column by column, because the memory between columns does not belong to the matrix. */
  for (int j = 0; j < p.n; j++) {
    uint64_t at = p.c + 4 * (uint64_t)j * p.ldc;
    if (p.beta != 0 && !fake_bytes(device, at, 4 * (size_t)p.m, 0)) return 700;
    float *c = fake_bytes(device, at, 4 * (size_t)p.m, 1);
    if (!c) return 700;
    for (int i = 0; i < p.m; i++) {
      float s = 0;
      if (a)
        for (int l = 0; l < p.k; l++) {
          float x = a[p.ta ? (size_t)i * p.lda + l : (size_t)l * p.lda + i];
          float y = b[p.tb ? (size_t)l * p.ldb + j : (size_t)j * p.ldb + l];
          s += rounded(x, p.keep) * rounded(y, p.keep);
        }
      c[i] = p.alpha * s + (p.beta != 0 ? p.beta * c[i] : 0);
    }
  }
  return 0;
}

int cublasGemmEx(void *handle, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int atype, int lda,
                 const void *b, int btype, int ldb, const void *beta, void *c, int ctype, int ldc, int compute, int algo) {
  struct handle *h = handle;
  if (!h->stream || !h->workspace) return NOT_INITIALIZED;
  if (atype || btype || ctype) return NOT_SUPPORTED;
  if (lda < (ta ? k : m) || ldb < (tb ? n : k) || ldc < m || m < 0 || n < 0 || k < 0) return INVALID_VALUE;
  int keep = compute == COMPUTE_32F ? 23 : compute == FAST_TF32 ? 10 : compute == FAST_BF16 ? 7 : -1;
  if (keep < 0) return NOT_SUPPORTED;
  struct product *p = malloc(sizeof *p);
  *p = (struct product){ta, tb, m, n, k, lda, ldb, ldc, keep, *(const float *)alpha, *(const float *)beta, (uint64_t)a, (uint64_t)b, (uint64_t)c};
  return fake_enqueue(h->stream, multiply, p) ? EXECUTION_FAILED : OK;
}
