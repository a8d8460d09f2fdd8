// Dropout, and the epilogue of a matrix product: bias, ReLU and dropout in one pass. Results have the bits of
// package tensor.
//
// A work item is eight columns of a row: one Philox block and one byte of the mask. Grid: items, striding. Philox
// costs about 9 instructions an element, which take less time than the element's memory accesses.
#include "philox.cuh"

// Eight holds eight consecutive elements. load8 and store8 access the first n of them, in two pieces if n is at
// least 8 and the address is aligned.
struct Eight {
  float v[8];
};

// NOTHING changes no value that it is added to. It is -0, because adding +0 would turn -0 into +0.
#define NOTHING {{-0.f, -0.f, -0.f, -0.f, -0.f, -0.f, -0.f, -0.f}}

__device__ __forceinline__ bool aligned(const float *p) { return ((u64)p & 15) == 0; }

__device__ __forceinline__ Eight load8(const float *p, i64 n) {
  Eight e;
  if (n >= 8 && aligned(p)) {
    float4 a = *(const float4 *)p, b = *(const float4 *)(p + 4);
    return {{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}};
  }
#pragma unroll
  for (int l = 0; l < 8; l++) e.v[l] = l < n ? p[l] : 0;
  return e;
}

__device__ __forceinline__ void store8(float *p, i64 n, const Eight &e) {
  if (n >= 8 && aligned(p)) {
    *(float4 *)p = make_float4(e.v[0], e.v[1], e.v[2], e.v[3]);
    *(float4 *)(p + 4) = make_float4(e.v[4], e.v[5], e.v[6], e.v[7]);
    return;
  }
#pragma unroll
  for (int l = 0; l < 8; l++)
    if (l < n) p[l] = e.v[l];
}

// dropout_f32: out[r,c] = x[r,c]·scale if the element is kept, else 0; mask gets a set bit for each element that is
// kept. Bytes: 8⅛ an element; [2^20, 256]: 2.2 GB, 0.45 ms.
KERNEL dropout_f32(float *__restrict__ out, u8 *__restrict__ mask, const float *__restrict__ x, i64 rows, i64 cols, const int *__restrict__ ids32,
                   const i64 *__restrict__ ids64, i64 start, u64 seed, u32 step, u32 c3, u32 threshold, float scale) {
  i64 width = (cols + 7) / 8;
  for (i64 item = (i64)blockIdx.x * blockDim.x + threadIdx.x; item < rows * width; item += (i64)gridDim.x * blockDim.x) {
    i64 r = item / width, b = item - r * width, n = cols - 8 * b;
    u32 bits = kept(block(seed, idOf(ids32, ids64, start, r), (u32)b, step, c3), threshold);
    if (n < 8) bits &= (1u << n) - 1;
    mask[item] = (u8)bits;
    Eight e = load8(x + r * cols + 8 * b, n);
#pragma unroll
    for (int l = 0; l < 8; l++) e.v[l] = bits >> l & 1 ? e.v[l] * scale : 0;
    store8(out + r * cols + 8 * b, n, e);
  }
}

// mask_f32: out[r,c] = x[r,c]·scale if the mask's bit is set (bit c%8 of byte r·⌈cols/8⌉ + c/8), else 0, whatever
// x[r,c] is. out may be x. Bytes: 8⅛ an element; [2^20, 256]: 2.2 GB, 0.45 ms.
KERNEL mask_f32(float *out, const float *x, const u8 *__restrict__ mask, i64 rows, i64 cols, float scale, i64 acc) {
  i64 width = (cols + 7) / 8;
#pragma unroll 1
  for (i64 item = (i64)blockIdx.x * blockDim.x + threadIdx.x; item < rows * width; item += (i64)gridDim.x * blockDim.x) {
    i64 r = item / width, b = item - r * width, n = cols - 8 * b;
    u32 bits = mask[item];
    float none = 0;
    Eight e = load8(x + r * cols + 8 * b, n), old = NOTHING;
    if (once(acc)) old = load8(out + r * cols + 8 * b, n), none = -0.f;
#pragma unroll
    for (int l = 0; l < 8; l++) e.v[l] = (bits >> l & 1 ? e.v[l] * scale : none) + old.v[l];
    store8(out + r * cols + 8 * b, n, e);
  }
}

// epilogue_f32: x[r,c] = drop(relu(x[r,c] + bias[c])) in place; bias may be null. keep, unless null, gets a bit for
// each element, which is set unless the element is dropped or, with relu, is 0 or below. With relu and drop both 0,
// the kernel only adds the bias. Bytes: 8 an element, and ⅛ for keep; [2^18, 256]: 0.54 GB, 0.11 ms.
KERNEL epilogue_f32(float *__restrict__ x, const float *__restrict__ bias, u8 *__restrict__ keep, i64 rows, i64 cols, i64 relu, i64 drop,
                    const int *__restrict__ ids32, const i64 *__restrict__ ids64, i64 start, u64 seed, u32 step, u32 c3, u32 threshold, float scale) {
  i64 width = (cols + 7) / 8;
  for (i64 item = (i64)blockIdx.x * blockDim.x + threadIdx.x; item < rows * width; item += (i64)gridDim.x * blockDim.x) {
    i64 r = item / width, b = item - r * width, n = cols - 8 * b;
    u32 bits = 0xff;
    if (drop) bits = kept(block(seed, idOf(ids32, ids64, start, r), (u32)b, step, c3), threshold);
    float *to = x + r * cols + 8 * b;
    Eight e = load8(to, n), plus = NOTHING;
    if (bias) plus = load8(bias + 8 * b, n);
    u32 passed = 0;
#pragma unroll
    for (int l = 0; l < 8; l++) {
      float v = e.v[l] + plus.v[l];
      bool pass = l < n && bits >> l & 1 && !(relu && v <= 0);
      e.v[l] = pass ? v * scale : 0;
      passed |= (u32)pass << l;
    }
    store8(to, n, e);
    if (keep) keep[item] = (u8)passed;
  }
}

// sparse_dropout_f32: out[e] = values[e]·scale (scale if values is null) if element (d, indices[e]) of a sparse
// matrix is kept, else 0. Grid: rows as in common.cuh, with width from the mean row. Bytes: 12 an element and 8 a
// row; 10^7 elements: 0.12 GB, 25 µs. Each element needs a Philox block of its own, hence about 70 instructions.
KERNEL sparse_dropout_f32(float *__restrict__ out, const float *__restrict__ values, const i64 *__restrict__ indptr, const int *__restrict__ indices,
                          i64 first, i64 rows, const int *__restrict__ ids32, const i64 *__restrict__ ids64, i64 start, u64 seed, u32 step, u32 c3,
                          u32 threshold, float scale) {
  FOR_ROWS(r, live, rows) {
    if (!live) continue;
    i64 id = idOf(ids32, ids64, start, r);
    for (i64 e = indptr[r] + threadIdx.x; e < indptr[r + 1]; e += blockDim.x) {
      int c = indices[e];
      u32 bits = kept(block(seed, id, (u32)c / 8, step, c3), threshold);
      out[e - first] = bits >> (c & 7) & 1 ? (values ? values[e - first] * scale : scale) : 0;
    }
  }
}

// sparse_dense_f32: out[d, indices[e]] = values[e] (1 if values is null); out must hold zeros. Grid: rows as in
// common.cuh. Bytes: 8 read and 32 written an element, because a random write transfers a sector of 32; 10^7
// elements: 0.4 GB, 83 µs.
KERNEL sparse_dense_f32(float *__restrict__ out, const float *__restrict__ values, const i64 *__restrict__ indptr, const int *__restrict__ indices,
                        i64 first, i64 rows, i64 cols) {
  FOR_ROWS(r, live, rows) {
    if (!live) continue;
    for (i64 e = indptr[r] + threadIdx.x; e < indptr[r + 1]; e += blockDim.x) out[r * cols + indices[e]] = values ? values[e - first] : 1;
  }
}
