// Dropout, and what follows a product: bias, ReLU and dropout in one pass, with the bits of package tensor.
//
// Work items are eight columns of a row, one Philox block and one byte of the mask. Grid: items, striding.
// Philox costs about 9 instructions an element, under the time of its memory.
#include "philox.cuh"

// dropout_f32: out[r,c] = x[r,c]·scale where it is kept, else 0; mask gets a bit for each that is kept.
// Bytes: 8⅛ an element; [2^20, 256]: 2.2 GB, 0.45 ms.
KERNEL dropout_f32(float *__restrict__ out, u8 *__restrict__ mask, const float *__restrict__ x, i64 rows, i64 cols, const int *__restrict__ ids32,
                   const i64 *__restrict__ ids64, i64 start, u64 seed, u32 step, u32 c3, u32 threshold, float scale) {
  i64 width = (cols + 7) / 8;
  for (i64 item = (i64)blockIdx.x * blockDim.x + threadIdx.x; item < rows * width; item += (i64)gridDim.x * blockDim.x) {
    i64 r = item / width, b = item - r * width, n = cols - 8 * b;
    u32 bits = kept(block(seed, idOf(ids32, ids64, start, r), (u32)b, step, c3), threshold);
    if (n < 8) bits &= (1u << n) - 1;
    mask[item] = (u8)bits;
    const float *in = x + r * cols + 8 * b;
    float *to = out + r * cols + 8 * b;
#pragma unroll
    for (int l = 0; l < 8; l++)
      if (l < n) to[l] = bits >> l & 1 ? in[l] * scale : 0;
  }
}

// epilogue_f32: x[r,c] = drop(relu(x[r,c] + bias[c])) in place; bias null: none. keep, unless null, gets a
// bit for each element that is neither dropped nor, with relu, 0 or below. Without relu and with drop 0
// it adds the bias. Bytes: 8 an element, and ⅛ for keep; [2^18, 256]: 0.54 GB, 0.11 ms.
KERNEL epilogue_f32(float *__restrict__ x, const float *__restrict__ bias, u8 *__restrict__ keep, i64 rows, i64 cols, i64 relu, i64 drop,
                    const int *__restrict__ ids32, const i64 *__restrict__ ids64, i64 start, u64 seed, u32 step, u32 c3, u32 threshold, float scale) {
  i64 width = (cols + 7) / 8;
  for (i64 item = (i64)blockIdx.x * blockDim.x + threadIdx.x; item < rows * width; item += (i64)gridDim.x * blockDim.x) {
    i64 r = item / width, b = item - r * width, n = cols - 8 * b;
    u32 bits = 0xff;
    if (drop) bits = kept(block(seed, idOf(ids32, ids64, start, r), (u32)b, step, c3), threshold);
    float *at = x + r * cols + 8 * b;
    u32 passed = 0;
#pragma unroll
    for (int l = 0; l < 8; l++) {
      if (l >= n) continue;
      float v = at[l];
      if (bias) v += bias[8 * b + l];
      bool pass = bits >> l & 1 && !(relu && v <= 0);
      at[l] = pass ? v * scale : 0;
      passed |= (u32)pass << l;
    }
    if (keep) keep[item] = (u8)passed;
  }
}

// sparse_dropout_f32: out[e] = values[e]·scale (scale where values is null) where element (d, indices[e]) of
// a sparse matrix is kept, else 0. Grid: rows as in common.cuh, with width from the mean row. Bytes: 12 an
// element and 8 a row; one Philox block an element makes it 70 instructions.
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

// sparse_dense_f32: out[d, indices[e]] = values[e] (1 where values is null) over an out full of zeros. Grid:
// rows as in common.cuh. Bytes: 12 an element.
KERNEL sparse_dense_f32(float *__restrict__ out, const float *__restrict__ values, const i64 *__restrict__ indptr, const int *__restrict__ indices,
                        i64 first, i64 rows, i64 cols) {
  FOR_ROWS(r, live, rows) {
    if (!live) continue;
    for (i64 e = indptr[r] + threadIdx.x; e < indptr[r + 1]; e += blockDim.x) out[r * cols + indices[e]] = values ? values[e - first] : 1;
  }
}
