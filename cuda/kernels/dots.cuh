// Dot products of the rows at the two ends of each edge, computed by a group of lanes.
#include "rowsof.cuh"

#define BATCH 4  // edges whose rows are loaded at once

// groupMask returns the mask of the lanes of a thread's group in its warp. The groups of a warp shuffle
// independently of each other.
__device__ __forceinline__ u32 groupMask() {
  u32 lane = (threadIdx.y * blockDim.x + threadIdx.x) % 32;
  return blockDim.x == 32 ? ~0u : ((1u << blockDim.x) - 1) << lane / blockDim.x * blockDim.x;
}

// dots writes dw[e,k] for the edges e in [next, min(next+BATCH, to)) of one destination. g points to head k of the
// destination's row of dout.
__device__ __forceinline__ void dots(float *__restrict__ dw, const int *__restrict__ indices, const float *__restrict__ g, const float *__restrict__ x, i64 next,
                                     i64 to, i64 first, i64 cols, i64 heads, i64 k, u32 group, i64 acc) {
  i64 width = cols / heads;
  const float *v[BATCH];
  float sum[BATCH] = {};
#pragma unroll
  for (int j = 0; j < BATCH; j++) v[j] = x + indices[next + j < to ? next + j : to - 1] * cols + k * width;
  FOR_COLS(c, width) {
#pragma unroll
    for (int j = 0; j < BATCH; j++) sum[j] += g[c] * v[j][c];
  }
#pragma unroll
  for (int j = 0; j < BATCH; j++) {
    for (int o = blockDim.x / 2; o > 0; o /= 2) sum[j] += __shfl_xor_sync(group, sum[j], o);
    if (threadIdx.x == 0 && next + j < to) put(dw, (next + j - first) * heads + k, sum[j], acc);
  }
}
