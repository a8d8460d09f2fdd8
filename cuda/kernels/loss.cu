// Softmax cross-entropy over the rows of logits whose label is not negative, with the number of correctly
// classified rows.
#include "common.cuh"

// Peak is a row's greatest logit and the first column that has it.
struct Peak {
  float top;
  int at;
};

// peakOf returns a row's Peak to all lanes of its group. It compares as a loop over the columns does: NaN is never
// greater, unless it comes first.
__device__ __forceinline__ Peak peakOf(const float *x, i64 cols, bool live) {
  float top = -INFINITY;
  int at = 0x7fffffff;
  if (live) FOR_COLS(c, cols)
    if (x[c] > top) top = x[c], at = (int)c;
  for (int o = blockDim.x / 2; o > 0; o /= 2) {
    float other = __shfl_xor_sync(0xffffffffu, top, o);
    int where = __shfl_xor_sync(0xffffffffu, at, o);
    if (other > top || other == top && where < at) top = other, at = where;
  }
  if (at == 0x7fffffff || live && x[0] != x[0]) at = 0;
  return {top, at};
}

// cross_entropy_f32: losses[k] = Σ log Σ_c e^x[r,c] - x[r,label] over the labelled rows of the k-th chunk of length
// chunk. right[k] is the number of these rows in which the label is the first of the greatest logits.
//
// Grid: chunks, striding, by blocks as in common.cuh: a group takes every 256/width-th row, and the groups' sums
// are added in order. Bytes: 4 an element, 4 a row; [2^20, 64]: 0.27 GB, 57 µs.
KERNEL cross_entropy_f32(double *__restrict__ losses, i64 *__restrict__ right, const float *__restrict__ x, const int *__restrict__ labels, i64 rows,
                         i64 cols, i64 chunk) {
  __shared__ double loss[256];
  __shared__ int hits[256];
  for (i64 k = blockIdx.x; k * chunk < rows; k += gridDim.x) {
    double sum = 0;
    int hit = 0;
    for (i64 r0 = k * chunk; r0 < (k + 1) * chunk; r0 += blockDim.y) {
      i64 r = r0 + threadIdx.y;
      bool live = r < rows && r < (k + 1) * chunk && labels[r < rows ? r : 0] >= 0;
      const float *row = x + (live ? r : 0) * cols;
      int y = live ? labels[r] : 0;
      Peak p = peakOf(row, cols, live);
      float others = 0;
      if (live) FOR_COLS(c, cols)
        if (c != y) others += expf(row[c] - p.top);
      others = sumLanes(others, blockDim.x);
      if (!live) continue;
      // If the label's logit is the greatest, its own term is 1. log1p then keeps a small loss that would vanish in
      // a sum with 1.
      float own = row[y] - p.top;
      sum += own == 0 ? (double)log1pf(others) : (double)logf(others + expf(own)) - own;
      hit += p.at == y;
    }
    if (threadIdx.x == 0) loss[threadIdx.y] = sum, hits[threadIdx.y] = hit;
    __syncthreads();
    if (threadIdx.x == 0 && threadIdx.y == 0) {
      i64 all = 0;
      for (int i = 1; i < blockDim.y; i++) sum += loss[i];
      for (int i = 0; i < blockDim.y; i++) all += hits[i];
      losses[k] = sum;
      right[k] = all;
    }
    __syncthreads();
  }
}

// cross_entropy_sum_f32: out = Σ losses, count[0] = Σ right, over the chunks in a fixed tree. Grid: one block. It
// takes the time of a launch. Bytes: 16 a chunk; 4096 chunks: 64 KB, 14 ns.
KERNEL cross_entropy_sum_f32(float *__restrict__ out, i64 *__restrict__ count, const double *__restrict__ losses, const i64 *__restrict__ right, i64 chunks) {
  __shared__ double loss[256];
  __shared__ i64 hits[256];
  double sum = 0;
  i64 hit = 0;
  for (i64 k = threadIdx.x; k < chunks; k += blockDim.x) sum += losses[k], hit += right[k];
  loss[threadIdx.x] = sum;
  hits[threadIdx.x] = hit;
  for (int step = 128; step > 0; step /= 2) {
    __syncthreads();
    if (threadIdx.x < step) loss[threadIdx.x] += loss[threadIdx.x + step], hits[threadIdx.x] += hits[threadIdx.x + step];
  }
  if (threadIdx.x == 0) out[0] = (float)loss[0], count[0] = hits[0];
}

// cross_entropy_grad_f32: dx[r,c] = d[0]·(p[r,c] - [c = label]) with p the softmax of x[r,:], and 0 for rows
// without a label. The label's own gradient is computed as minus the sum of the others, because p - 1 loses digits
// where p is near 1.
//
// Grid: rows as in common.cuh. Bytes: 8 an element, 4 a row; [2^20, 64]: 0.54 GB, 0.11 ms.
KERNEL cross_entropy_grad_f32(float *__restrict__ dx, const float *__restrict__ d, const float *__restrict__ x, const int *__restrict__ labels, i64 rows,
                              i64 cols, i64 acc) {
  float by = d[0];
  FOR_ROWS(r, live, rows) {
    int y = live ? labels[r] : -1;
    const float *row = x + r * cols;
    Peak p = peakOf(row, cols, live && y >= 0);
    float others = 0;
    if (live && y >= 0) FOR_COLS(c, cols)
      if (c != y) others += expf(row[c] - p.top);
    others = sumLanes(others, blockDim.x);
    if (!live) continue;
    float inv = y >= 0 ? 1 / (others + expf(row[y] - p.top)) : 0;
    FOR_COLS(c, cols) {
      float g = 0;
      if (y >= 0) g = c == y ? -others * inv : expf(row[c] - p.top) * inv;
      put(dx, r * cols + c, by * g, acc);
    }
  }
}
