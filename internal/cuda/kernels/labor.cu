// Layer-neighbour sampling with a fixed number of picks, with the same bits as sample.Labor: a destination takes the
// sources with the smallest numbers, and of equal numbers those at the first positions. A number depends on the
// source, the step and the hop alone. sample.cu has the other kernels of a hop.
//
// A warp handles a destination. It searches for a bound that as many numbers as there are picks lie below, by
// interpolation, because the numbers are uniform, and then by bisection; about five rounds look at all numbers. The
// first KEPT·32 of them are in registers, the others are computed again in each round.
#define RESIDENT 3
#include "pick.cuh"

#define KEPT 4

// Numbers has what the numbers of a hop have in common: sources whose x is above last are one step ahead.
struct Numbers {
  u64 seed;
  u32 step, last, c3;

  __device__ __forceinline__ u32 of(int source) const {
    u32 x = ((u32)source ^ (u32)seed) * 0x9E3779B1u;
    x = (x ^ x >> 15) * 0x85EBCA77u;
    return block(seed, (u32)source, 0, step + (x > last), c3).w[0];
  }
};

// Taken has the picks that a warp has seen, in the order of positions.
struct Taken {
  u64 bound; // numbers below it are picks, and the first equal ones that are it
  i64 equal, picks, same;
};

__device__ __forceinline__ u32 lanesSum(u32 v) {
#pragma unroll
  for (int o = 16; o > 0; o /= 2) v += __shfl_xor_sync(~0u, v, o);
  return v;
}

// take emits a lane's edge if its number is a pick. All lanes call it, for consecutive positions; there is none of a
// lane unless real.
__device__ __forceinline__ void take(Taken &t, bool real, u32 number, i64 pos, const Out &out, const Graph &g, u32 *table, i64 at, i64 total,
                                     i64 d, i64 *state) {
  u32 before = (1u << (threadIdx.x & 31)) - 1;
  u32 same = __ballot_sync(~0u, real && number == t.bound);
  bool picked = real && (number < t.bound || (number == t.bound && t.same + __popc(same & before) < t.equal));
  u32 all = __ballot_sync(~0u, picked);
  if (picked) emit(out, g, table, at + t.picks + __popc(all & before), total, d, pos, state);
  t.picks += __popc(all);
  t.same += __popc(same);
}

// Bytes: 32 + 20 a destination, 4 an in-edge, and again in each round beyond the kept ones, 32 + 12 + 64 (table, read
// and written) an edge; 10^6 edges of 5·10^6 in-edges: 140 MB, 29 µs. Work: 60 instructions for each number, that is an
// in-edge, and a round beyond the kept ones. A hub of 10^5 in-edges takes about a millisecond by itself.
KERNEL sample_pick_labor(PICK_ARGS, i64 last) {
  PICK_PREPARE;
  Numbers numbers = {seed, step, (u32)last, c3};
  int lane = threadIdx.x & 31;
  i64 k = fanout, stride = (i64)gridDim.x * (blockDim.x / 32);
  for (i64 d = (i64)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32; d < n; d += stride) {
    Range r = inEdges(g.indptr, g.edges, ids[d], state);
    i64 at = offset(out, local, tiles, d, n, total, lane == 0);
    if (r.n <= k) {
      for (i64 i = lane; i < r.n; i += 32) emit(out, g, table, at + i, total, d, r.at + i, state);
      continue;
    }
    if (k <= 0) continue;
    u32 kept[KEPT];
#pragma unroll
    for (int i = 0; i < KEPT; i++) kept[i] = 32 * i + lane < r.n ? numbers.of(g.indices[r.at + 32 * i + lane]) : 0;
    // fewer numbers than k are below lo, and more below hi.
    u64 lo = 0, hi = 1ull << 32;
    i64 fewer = 0, more = r.n;
    Taken t = {0, 0, 0, 0};
    for (int round = 0; hi - lo > 1; round++) {
      u64 bound = lo + (hi - lo) / 2;
      if (round < 8) {
        bound = lo + (hi - lo) * (u64)(2 * (k - fewer) + 1) / (u64)(2 * (more - fewer) + 2);
        if (bound <= lo) bound = lo + 1;
        if (bound >= hi) bound = hi - 1;
      }
      u32 mine = 0;
#pragma unroll
      for (int i = 0; i < KEPT; i++) mine += 32 * i + lane < r.n && kept[i] < bound;
      for (i64 i = 32 * KEPT + lane; i < r.n; i += 32) mine += numbers.of(g.indices[r.at + i]) < bound;
      i64 below = lanesSum(mine);
      if (below == k) {
        t.bound = bound;
        break;
      }
      if (below < k)
        lo = bound, fewer = below;
      else
        hi = bound, more = below;
    }
    if (t.bound == 0) t.bound = lo, t.equal = k - fewer; // equal numbers
#pragma unroll
    for (int i = 0; i < KEPT; i++)
      if (32 * i < r.n) take(t, 32 * i + lane < r.n, kept[i], r.at + 32 * i + lane, out, g, table, at, total, d, state);
    for (i64 first = 32 * KEPT; first < r.n && t.picks < k; first += 32) {
      bool real = first + lane < r.n;
      take(t, real, real ? numbers.of(g.indices[r.at + first + lane]) : 0, r.at + first + lane, out, g, table, at, total, d, state);
    }
  }
}
