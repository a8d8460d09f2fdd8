// What the kernels of sampling share: the batch's state, tiles and sums over them.
#include "philox.cuh"

// The state of a batch, which no host has to read between hops: state[0] is what went wrong first (see
// fault), state[1+2h] the nodes known before hop h, state[2+2h] the edges of hop h.
#define KNOWN(state, hop) state[1 + 2 * (hop)]
#define EDGES(state, hop) state[2 + 2 * (hop)]

// A tile is the work of a block of 256 threads in kernels that add up.
#define TILE 1024

// Sums that a thread, and a block of 256, add up at once.
#define SCAN 8
#define PART (SCAN * 256)

// The table has a word for each node of the graph: its row in the batch, or FRESH plus the number of the
// first edge of the hop at work that reaches it, or EMPTY. Rows are less than FRESH, so atomicMin keeps them.
#define FRESH 0x80000000u
#define EMPTY 0xffffffffu

// Faults by their number, which Go names: the lowest counts, so that it does not depend on the order of threads.
#define REPEATED_SEED 1
#define DAMAGED_OFFSETS 2
#define DAMAGED_EDGE 3
#define BAD_WEIGHT 4
#define OVER_CAPACITY 5

__device__ __forceinline__ void fault(i64 *state, u64 kind, i64 where) { atomicMin((u64 *)state, kind << 56 | (u64)where); }

// Range is a node's in-edges: n positions of the graph from at on.
struct Range {
  i64 at, n;
};

__device__ __forceinline__ Range inEdges(const i64 *__restrict__ indptr, i64 edges, int node, i64 *state) {
  i64 at = indptr[node], end = indptr[node + 1];
  if ((at | (end - at) | (edges - end)) < 0) {
    fault(state, DAMAGED_OFFSETS, node);
    return {0, 0};
  }
  return {at, end - at};
}

__device__ __forceinline__ i64 warpSum(i64 v) {
#pragma unroll
  for (int o = 1; o < 32; o *= 2) {
    i64 below = __shfl_up_sync(~0u, v, o);
    if ((threadIdx.x & 31) >= o) v += below;
  }
  return v;
}

// Sums is a value's place: the sum of those of lower threads, and of all.
struct Sums {
  i64 before, all;
};

// blockSums is for blocks of 256 threads in one dimension, all of which call it.
__device__ __forceinline__ Sums blockSums(i64 v) {
  __shared__ i64 warps[8];
  i64 upTo = warpSum(v);
  int warp = threadIdx.x / 32;
  if ((threadIdx.x & 31) == 31) warps[warp] = upTo;
  __syncthreads();
  Sums s = {upTo - v, 0};
#pragma unroll
  for (int w = 0; w < 8; w++) {
    i64 sum = warps[w];
    if (w < warp) s.before += sum;
    s.all += sum;
  }
  __syncthreads();
  return s;
}
