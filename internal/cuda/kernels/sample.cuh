// Declarations that the sampling kernels share: the batch's state, tiles, and prefix sums.
#include "philox.cuh"

// The state of a batch stays on the device, so the host need not read it between hops. state[0] is -1 or a fault
// (see fault), state[1+2h] the number of nodes known before hop h, and state[2+2h] the number of edges of hop h.
#define KNOWN(state, hop) state[1 + 2 * (hop)]
#define EDGES(state, hop) state[2 + 2 * (hop)]

// TILE is the number of items that a block of 256 threads counts or sums together.
#define TILE 1024

// SCAN is the number of sums that a thread scans at once, PART the number that a block of 256 threads does.
#define SCAN 8
#define PART (SCAN * 256)

// The table has a word for each node of the graph: the node's row in the batch; or FRESH plus the number of the
// first edge of the current hop that reaches the node; or EMPTY. Rows are less than FRESH, so atomicMin keeps them.
#define FRESH 0x80000000u
#define EMPTY 0xffffffffu

// Codes of faults, which Go code turns into errors. The lowest code is kept, then the lowest position, so the
// reported fault does not depend on the order of threads.
#define REPEATED_SEED 1
#define DAMAGED_OFFSETS 2
#define DAMAGED_EDGE 3
#define BAD_WEIGHT 4
#define OVER_CAPACITY 5

__device__ __forceinline__ void fault(i64 *state, u64 kind, i64 where) { atomicMin((u64 *)state, kind << 56 | (u64)where); }

// Range is a node's in-edges: the positions [at, at+n) of the graph.
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

// Sums has the sum of the values of lower threads, and the sum of the values of all threads.
struct Sums {
  i64 before, all;
};

// blockSums computes Sums over a block of 256 threads in one dimension. All threads of the block must call it.
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
