// out [cols,rows] = xᵀ of x [rows,cols].
//
// Grid: tiles of 32×32, striding, by blocks of (32, 8) threads. An extra column in shared memory avoids bank
// conflicts. Bytes: 8 an element; [2^20, 256]: 2.1 GB, 0.45 ms.
#include "common.cuh"

KERNEL transpose_f32(float *__restrict__ out, const float *__restrict__ x, i64 rows, i64 cols, i64 acc) {
  __shared__ float tile[32][33];
  i64 across = (cols + 31) / 32, tiles = across * ((rows + 31) / 32);
  for (i64 t = blockIdx.x; t < tiles; t += gridDim.x) {
    i64 top = t / across * 32, left = t % across * 32;
    for (int i = threadIdx.y; i < 32; i += 8) {
      i64 r = top + i, c = left + threadIdx.x;
      if (r < rows && c < cols) tile[i][threadIdx.x] = x[r * cols + c];
    }
    __syncthreads();
    for (int i = threadIdx.y; i < 32; i += 8) {
      i64 r = top + threadIdx.x, c = left + i;
      if (r < rows && c < cols) put(out, c * rows + r, tile[threadIdx.x][i], acc);
    }
    __syncthreads();
  }
}
