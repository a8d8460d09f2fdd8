// out [cols,rows] = xᵀ of x [rows,cols].
//
// Grid: tiles of 64×32, striding, by blocks of (32, 8) threads. A thread has eight loads in flight, and a row of out
// gets 256 consecutive bytes of a tile. An extra column in shared memory avoids bank conflicts. Bytes: 8 an element;
// [2^20, 256]: 2.1 GB, 0.45 ms.
#include "common.cuh"

KERNEL transpose_f32(float *__restrict__ out, const float *__restrict__ x, i64 rows, i64 cols, i64 acc) {
  __shared__ float tile[64][33];
  i64 across = (cols + 31) / 32, tiles = across * ((rows + 63) / 64);
  for (i64 t = blockIdx.x; t < tiles; t += gridDim.x) {
    i64 down = t / across, top = down * 64, left = (t - down * across) * 32;
    float v[8];
#pragma unroll
    for (int k = 0; k < 8; k++) {
      i64 r = top + threadIdx.y + 8 * k, c = left + threadIdx.x;
      v[k] = r < rows && c < cols ? x[r * cols + c] : 0;
    }
#pragma unroll
    for (int k = 0; k < 8; k++) tile[threadIdx.y + 8 * k][threadIdx.x] = v[k];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 8; k++) {
      i64 r = top + threadIdx.x + k % 2 * 32, c = left + threadIdx.y + k / 2 * 8;
      v[k] = acc && r < rows && c < cols ? out[c * rows + r] : 0;
    }
#pragma unroll
    for (int k = 0; k < 8; k++) {
      i64 r = top + threadIdx.x + k % 2 * 32, c = left + threadIdx.y + k / 2 * 8;
      float e = tile[threadIdx.x + k % 2 * 32][threadIdx.y + k / 2 * 8];
      if (r < rows && c < cols) out[c * rows + r] = acc ? v[k] + e : e;
    }
    __syncthreads();
  }
}
