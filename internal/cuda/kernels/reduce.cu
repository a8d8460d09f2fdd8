// Sums of many elements, in an order that depends on sizes alone: chunks of fixed length are summed, then the
// chunks' sums.
#include "common.cuh"

#define AHEAD 8  // loads that a thread has in flight

// sumBlock returns the sum over a block's 256 threads to the first thread. The order of additions is a fixed tree.
__device__ __forceinline__ double sumBlock(double v) {
  __shared__ double part[8];
  v = sumLanes(v, 32);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  double sum = threadIdx.x < 8 ? part[threadIdx.x] : 0;
  __syncthreads();
  return sumLanes(sum, 8);
}

// sum_chunks_f32: parts[k] = Σ x[i] over the k-th chunk of length chunk. Grid: chunks, striding. Bytes: 4 an
// element; 2^28 elements: 1.07 GB, 0.22 ms.
KERNEL sum_chunks_f32(double *__restrict__ parts, const float *__restrict__ x, i64 n, i64 chunk) {
  for (i64 k = blockIdx.x; k * chunk < n; k += gridDim.x) {
    i64 end = (k + 1) * chunk < n ? (k + 1) * chunk : n;
    double sum = 0;
    for (i64 base = k * chunk + threadIdx.x; base < end; base = at(base, AHEAD)) {
      float v[AHEAD];
#pragma unroll
      for (int j = 0; j < AHEAD; j++) v[j] = at(base, j) < end ? x[at(base, j)] : 0;
#pragma unroll
      for (int j = 0; j < AHEAD; j++) sum += v[j];
    }
    sum = sumBlock(sum);
    if (threadIdx.x == 0) parts[k] = sum;
  }
}

// sum_parts_f32: out[0] = Σ parts. Grid: one block. It takes the time of a launch. Bytes: 8 a chunk; 8192 chunks:
// 64 KB, 14 ns.
KERNEL sum_parts_f32(float *__restrict__ out, const double *__restrict__ parts, i64 n, i64 acc) {
  double sum = 0;
  for (i64 i = threadIdx.x; i < n; i += blockDim.x) sum += parts[i];
  sum = sumBlock(sum);
  if (threadIdx.x == 0) put(out, 0, (float)sum, acc);
}

// column sets v to AHEAD elements of a column, `step` elements apart, and to 0 from the n-th on. Elements count by
// `rows`.
__device__ __forceinline__ void column(float *v, const float *x, i64 step, int rows, i64 n) {
#pragma unroll
  for (int j = 0; j < AHEAD; j++) {
    v[j] = j * rows < n ? *x : 0;
    x += step;
  }
}

// col_dot_f32: out[k,c] = Σ x[r,c]·y[r,c] over the k-th chunk of rows of length chunk, or Σ x[r,c] if y is null.
// With one chunk, out is the sum over all rows; with several, a second launch sums the chunks.
//
// Grid: chunks times tiles of width columns, with blocks of (width, 256/width) threads. 256/width threads take a
// column's rows in turn, and a fixed tree adds their sums, in double precision. Bytes: 4 or 8 an element;
// [2^20, 256] without y: 1.07 GB, 0.22 ms.
KERNEL col_dot_f32(float *__restrict__ out, const float *__restrict__ x, const float *__restrict__ y, i64 rows, i64 cols, i64 chunk, i64 acc) {
  __shared__ double part[256];
  int width = blockDim.x, thread = threadIdx.y * width + threadIdx.x;
  i64 tiles = (cols + width - 1) / width, chunks = rows > chunk ? (rows + chunk - 1) / chunk : 1;
  for (i64 item = blockIdx.x; item < tiles * chunks; item += gridDim.x) {
    i64 k = item / tiles, c = (item - k * tiles) * width + threadIdx.x;
    i64 end = c >= cols ? 0 : (k + 1) * chunk < rows ? (k + 1) * chunk : rows;
    double sum = 0;
#pragma unroll 1
    for (i64 r = k * chunk + threadIdx.y; r < end; r += AHEAD * blockDim.y) {
      float v[AHEAD], w[AHEAD];
      column(v, x + r * cols + c, blockDim.y * cols, blockDim.y, end - r);
      if (once((i64)y)) {
        column(w, y + r * cols + c, blockDim.y * cols, blockDim.y, end - r);
#pragma unroll
        for (int j = 0; j < AHEAD; j++) sum += (double)v[j] * w[j];
        continue;
      }
#pragma unroll
      for (int j = 0; j < AHEAD; j++) sum += v[j];
    }
    part[thread] = sum;
    __syncthreads();
    for (int step = blockDim.y / 2; step > 0; step /= 2) {
      if (threadIdx.y < step) part[thread] += part[thread + step * width];
      __syncthreads();
    }
    if (threadIdx.y == 0 && c < cols) put(out, k * cols + c, (float)part[thread], acc);
    __syncthreads();
  }
}
