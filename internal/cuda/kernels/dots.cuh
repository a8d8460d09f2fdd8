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
// destination's row of dout. A lane reads V columns at a time.
template <int V = 1>
__device__ __forceinline__ void dots(float *__restrict__ dw, const int *__restrict__ indices, const float *__restrict__ g, const float *__restrict__ x, i64 next,
                                     i64 to, i64 first, i64 cols, i64 heads, i64 k, u32 group, i64 acc) {
  i64 width = cols / heads;
  const float *row[BATCH];
  float sum[BATCH] = {};
#pragma unroll
  for (int j = 0; j < BATCH; j++) row[j] = x + indices[next + j < to ? next + j : to - 1] * cols + k * width;
#pragma unroll 1
  for (i64 c = V * threadIdx.x; c < width; c += V * blockDim.x) {
    Columns<V> a, b[BATCH];
    load(g + c, a);
#pragma unroll
    for (int j = 0; j < BATCH; j++) load(row[j] + c, b[j]);
#pragma unroll
    for (int j = 0; j < BATCH; j++)
#pragma unroll
      for (int i = 0; i < V; i++) sum[j] += a.v[i] * b[j].v[i];
  }
#pragma unroll
  for (int o = 16; o > 0; o /= 2)
    if (o < blockDim.x)
#pragma unroll
      for (int j = 0; j < BATCH; j++) sum[j] += __shfl_xor_sync(group, sum[j], o);
#pragma unroll
  for (int j = 0; j < BATCH; j++)
    if (threadIdx.x == 0 && next + j < to) put(dw, (next + j - first) * heads + k, sum[j], once(acc));
}
