// Softmax cross-entropy over the rows of logits whose label is not negative, with the number of correctly
// classified rows.
#include "held.cuh"

// Peak is a row's greatest logit and the first column that has it.
struct Peak {
  float top;
  int at;
};

// peakOf returns a row's Peak to all lanes of its group, and leaves the row's only tile in v. It compares as a loop
// over the columns does: NaN is never greater, unless it comes first.
__device__ __forceinline__ Peak peakOf(const Held &h, float *v, const float *row, i64 live) {
  Peak p = {-INFINITY, 0x7fffffff};
  bool nan = live && h.cols > 0 && row[0] != row[0];
  h.each([&](i64 c0) {
    h.read(v, row, c0, live, -INFINITY);
    FOR_HELD(j) if (v[j] > p.top) p = {v[j], h.column(c0, j)};
  });
#pragma unroll
  for (int o = 16; o > 0; o /= 2) {
    if (o >= blockDim.x) continue;
    float other = __shfl_xor_sync(0xffffffffu, p.top, o);
    int where = __shfl_xor_sync(0xffffffffu, p.at, o);
    if (other > p.top || other == p.top && where < p.at) p = {other, where};
  }
  if (p.at == 0x7fffffff || nan) p.at = 0;
  return p;
}

// othersOf returns Σ e^(row[c] - top) over the columns c except y. It leaves the exponentials of the row's only
// tile in v.
__device__ __forceinline__ float othersOf(const Held &h, float *v, const float *row, i64 live, float top, int y) {
  float others = 0;
  h.each([&](i64 c0) {
    h.again(v, row, c0, live, -INFINITY);
    FOR_HELD(j) {
      v[j] = expf(v[j] - top);
      others += h.column(c0, j) != y ? v[j] : 0;
    }
  });
  return sumLanes(others, blockDim.x);
}

// cross_entropy_f32: losses[k] = Σ log Σ_c e^x[r,c] - x[r,label] over the labelled rows of the k-th chunk of length
// chunk. right[k] is the number of these rows in which the label is the first of the greatest logits.
//
// Grid: chunks, striding, by blocks as in held.cuh: a group takes every 256/width-th row, and the groups' sums are
// added in order. Bytes: 4 an element, 4 a row, 16 a chunk; [2^20, 64]: 0.27 GB, 57 µs.
KERNEL cross_entropy_f32(double *__restrict__ losses, i64 *__restrict__ right, const float *__restrict__ x, const int *__restrict__ labels, i64 rows,
                         i64 cols, i64 chunk) {
  __shared__ double loss[256];
  __shared__ int hits[256];
  Held h(cols, (u64)x);
  for (i64 k = blockIdx.x; k * chunk < rows; k += gridDim.x) {
    double sum = 0;
    int hit = 0;
    for (i64 r0 = k * chunk; r0 < (k + 1) * chunk; r0 += blockDim.y) {
      i64 r = r0 + threadIdx.y;
      bool live = r < rows && r < (k + 1) * chunk;
      const float *row = x + r * cols;
      int y = live ? labels[r] : -1;
      float v[HELD];
      Peak p = peakOf(h, v, row, live);
      float others = othersOf(h, v, row, live, p.top, y);
      if (y < 0) continue;
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
// Grid: rows as in held.cuh. A row is read without waiting for its label. Bytes: 8 an element, 4 a row; [2^20, 64]:
// 0.54 GB, 0.11 ms.
KERNEL cross_entropy_grad_f32(float *__restrict__ dx, const float *__restrict__ d, const float *__restrict__ x, const int *__restrict__ labels, i64 rows,
                              i64 cols, i64 acc) {
  Held h(cols, (u64)dx | (u64)x);
  float by = d[0];
  FOR_ROWS(r, live, rows) {
    int y = live ? labels[r] : -1;
    const float *row = x + r * cols;
    float v[HELD], top = -INFINITY;
    h.each([&](i64 c0) {
      h.read(v, row, c0, live, -INFINITY);
      FOR_HELD(j) top = fmaxf(top, v[j]);
    });
    top = maxLanes(top, blockDim.x);
    float others = othersOf(h, v, row, live, top, y);
    float inv = y >= 0 ? 1 / (others + expf(row[y] - top)) : 0;
    h.each([&](i64 c0) {
      if (h.again(v, row, c0, live, -INFINITY)) FOR_HELD(j) v[j] = expf(v[j] - top);
      FOR_HELD(j) v[j] = y < 0 ? 0 : by * (h.column(c0, j) == y ? -others * inv : v[j] * inv);
      h.write(dx + r * cols, c0, live, v, acc);
    });
  }
}
