// max_f32 and max_grad_f32 of max.cu for rows of more than LONG edges, which max.cu leaves out. hub.cuh says how blocks
// divide a row. The maximum and its edge are those of max.cu, whatever the order; sums of the gradient round
// differently. Bytes: as max.cu, 4·cols and 4 an edge, for the gradient 8·cols and 8; 131072 edges of 256 columns to
// one row: 0.13 GB, 28 µs, and 0.27 GB, 56 µs for memory, in 2048 blocks.
#define RESIDENT 3
#include "hub.cuh"

// Best is the greatest of some values of a column, and its edge's number, or NONE.
struct Best {
  float v;
  u32 edge;
};

#define NONE 0xffffffffu

// better returns the one of two values that max_f32 would keep.
__device__ __forceinline__ Best better(Best a, Best b) {
  if (a.edge == NONE || b.edge == NONE) return a.edge == NONE ? b : a;
  Best earlier = a.edge < b.edge ? a : b, later = a.edge < b.edge ? b : a;
  return later.v > earlier.v || later.v != later.v ? later : earlier;
}

__device__ __forceinline__ void putBest(float *__restrict__ out, u32 *__restrict__ arg, i64 i, Best best, i64 acc) {
  put(out, i, best.v, acc);
  if (arg) arg[i] = best.edge;
}

// hub_max_f32 computes max_f32 of the long rows. values f32 and edges u32 [·, cols] get the partial results.
KERNEL hub_max_f32(float *__restrict__ out, u32 *__restrict__ arg, const i64 *__restrict__ indptr, const int *__restrict__ indices,
                   const float *__restrict__ x, i64 first, const Chunk *__restrict__ list, i64 n, i64 cols, i64 acc, float *__restrict__ values,
                   u32 *__restrict__ edges) {
  __shared__ i64 rows[CHUNK];
  __shared__ Best room[256];
  eachChunk<1>(list, n, indptr, cols, [&](const Chunk &k, i64 from, int count, i64 c, bool has) {
    __syncthreads();  // all threads have read the rows of the previous chunk
#pragma unroll
    for (int i = thread(); i < CHUNK; i += 256)
      if (i < count) rows[i] = (indices ? indices[from + i] : from + i - first) * cols;
    __syncthreads();
    const float *column = x + c;
    u32 number = (u32)(from - first);
    Best best = {0, NONE};
    eachRound<1>(count, [&](int base, bool full) {
      const int DEEP = Deep<1>::ROWS;
      float v[DEEP];
#pragma unroll
      for (int j = 0; j < DEEP; j++) {
        int i = base + j * blockDim.y;
        v[j] = full || i < count ? column[rows[i]] : 0;
      }
#pragma unroll
      for (int j = 0; j < DEEP; j++) {
        int i = base + j * blockDim.y;
        if ((full || i < count) && (best.edge == NONE || v[j] > best.v || v[j] != v[j])) best = {v[j], number + i};
      }
    });
    best = overGroups(best, room, better);
    if (threadIdx.y > 0 || !has) return;
    if (k.of > 1) {
      values[k.part * cols + c] = best.v;
      edges[k.part * cols + c] = best.edge;
    } else {
      putBest(out, arg, k.row * cols + c, best, acc);
    }
  });
}

// hub_max_join_f32 combines the partial results of the rows of several chunks. Grid: as in hub.cuh. Bytes: 8·cols a
// chunk; 256 chunks of 256 columns: 0.5 MB, but a few rounds of loads from the cache take about 3 µs.
KERNEL hub_max_join_f32(float *__restrict__ out, u32 *__restrict__ arg, const Chunk *__restrict__ list, i64 n, i64 cols, i64 acc,
                        const float *__restrict__ values, const u32 *__restrict__ edges) {
  __shared__ Best room[256];
  eachJoin(list, n, cols, [&](const Chunk &k, i64 c, bool has) {
    Best best = {0, NONE};
#pragma unroll 8
    for (int i = threadIdx.y; i < k.of; i += blockDim.y) {
      i64 at = (k.part + i) * cols + c;
      best = better(best, Best{values[at], edges[at]});
    }
    best = overGroups(best, room, better);
    if (threadIdx.y == 0 && has) putBest(out, arg, k.row * cols + c, best, acc);
  });
}

// hub_max_grad_f32 computes max_grad_f32 of the long rows. parts f32 [·, cols] gets the partial sums, which
// hub_join_f32 adds.
KERNEL hub_max_grad_f32(float *__restrict__ dx, const float *__restrict__ dout, const u32 *__restrict__ arg, const i64 *__restrict__ indptr,
                        const int *__restrict__ dst, const int *__restrict__ edge, const Chunk *__restrict__ list, i64 n, i64 cols, i64 acc,
                        float *__restrict__ parts) {
  __shared__ i64 rows[CHUNK];
  __shared__ u32 edges[CHUNK];
  __shared__ float room[256];
  eachChunk<1>(list, n, indptr, cols, [&](const Chunk &k, i64 from, int count, i64 c, bool has) {
    __syncthreads();  // all threads have read the rows of the previous chunk
#pragma unroll
    for (int i = thread(); i < CHUNK; i += 256) {
      if (i >= count) continue;
      rows[i] = dst[from + i] * cols;
      edges[i] = (u32)edge[from + i];
    }
    __syncthreads();
    const u32 *winner = arg + c;
    const float *gradient = dout + c;
    float sum = 0;
    eachRound<1>(count, [&](int base, bool full) {
      const int DEEP = Deep<1>::ROWS;
      u32 who[DEEP];
      float v[DEEP];
#pragma unroll
      for (int j = 0; j < DEEP; j++) {
        int i = base + j * blockDim.y;
        who[j] = full || i < count ? winner[rows[i]] : 0;
      }
      // Where another edge won, adding 0 changes nothing, because a sum that starts at +0 is never -0.
#pragma unroll
      for (int j = 0; j < DEEP; j++) {
        int i = base + j * blockDim.y;
        v[j] = (full || i < count) && who[j] == edges[i] ? gradient[rows[i]] : 0;
      }
#pragma unroll
      for (int j = 0; j < DEEP; j++) sum += v[j];
    });
    sum = overGroups(sum, room, [](float a, float b) { return a + b; });
    if (threadIdx.y > 0 || !has) return;
    if (k.of > 1)
      parts[k.part * cols + c] = sum;
    else
      put(dx, k.row * cols + c, sum, acc);
  });
}
