// Weighted sampling without replacement as sample.Hop.Weighted does it, bit for bit: weights become integers, k of
// them are drawn one after the other from the sum of those that are left. sample_weigh takes the place of counting
// in-edges; sample.cu has the rest.
//
// In place of a tree of sums, a warp reads a node's weights anew for each draw: k·n weights of n in-edges.
#include "pick.cuh"

// Fixed is how a node's weights become integers: by their exponent less shift.
struct Fixed {
  int shift;

  // w = m·2^e with m of 24 bits, w > 0.
  __device__ __forceinline__ static u64 mantissa(float w, int &e) {
    u32 b = __float_as_uint(w);
    e = (int)(b >> 23);
    if (e == 0) {
      int up = __clz(b) - 8; // a subnormal has the exponent of the smallest normal number
      e = -149 - up;
      return (u64)b << up;
    }
    e -= 150;
    return (b & ((1u << 23) - 1)) | 1u << 23;
  }
  // for the largest weight and the number of weights: the largest has 62 bits less those of the number.
  __device__ __forceinline__ Fixed(float top, i64 n) {
    int e;
    mantissa(top, e);
    shift = e - (62 - (64 - __clzll(n)) - 24);
  }
  __device__ __forceinline__ u64 of(float w) const {
    if (w == 0) return 0;
    int e;
    u64 m = mantissa(w, e);
    int by = e - shift;
    if (by >= 0) return m << by;
    if (by <= -64) return 1;
    u64 v = m >> -by;
    return v ? v : 1;
  }
};

// counts[d] = how many edges destination d takes: all in-edges if they are at most fanout, else at most as many as
// have weights, and tops[d] the largest weight. A warp a destination. Bytes: 24 a destination, 4 an in-edge.
KERNEL sample_weigh(i64 *__restrict__ counts, float *__restrict__ tops, const int *__restrict__ ids, const i64 *__restrict__ indptr,
                    const float *__restrict__ weights, i64 edges, i64 fanout, i64 hop, i64 *state) {
  i64 n = KNOWN(state, hop), stride = (i64)gridDim.x * (blockDim.x / 32);
  int lane = threadIdx.x & 31;
  for (i64 d = (i64)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32; d < n; d += stride) {
    Range r = inEdges(indptr, edges, ids[d], state);
    i64 count = r.n;
    float top = 0;
    if (fanout >= 0 && r.n > fanout) {
      i64 some = 0;
      for (i64 i = lane; i < r.n; i += 32) {
        float w = weights[r.at + i];
        if (!(w >= 0) || w == INFINITY) {
          fault(state, BAD_WEIGHT, r.at + i);
          w = 0;
        }
        some += w > 0;
        top = fmaxf(top, w);
      }
#pragma unroll
      for (int o = 16; o; o /= 2) {
        some += __shfl_xor_sync(~0u, some, o);
        top = fmaxf(top, __shfl_xor_sync(~0u, top, o));
      }
      count = some < fanout ? some : fanout;
    }
    if (lane == 0) {
      counts[d] = count;
      tops[d] = top;
    }
  }
}

// Pick is one that was drawn: its position, its weight, and the sum of the weights before it.
struct Pick {
  u64 before, weight;
  i64 at;
};

// find is the position whose weight covers r in the sum of all weights, and the weight; all lanes call it.
__device__ __forceinline__ Pick find(const float *__restrict__ weights, i64 n, const Fixed &fixed, u64 r) {
  int lane = threadIdx.x & 31;
  u64 base = 0;
  for (i64 from = 0; from < n; from += 32) {
    u64 mine = from + lane < n ? fixed.of(weights[from + lane]) : 0;
    u64 upTo = base + (u64)warpSum((i64)mine);
    u32 over = __ballot_sync(~0u, upTo > r);
    if (over) {
      int first = __ffs(over) - 1;
      return {__shfl_sync(~0u, upTo - mine, first), __shfl_sync(~0u, mine, first), from + first};
    }
    base = __shfl_sync(~0u, upTo, 31);
  }
  return {0, 0, n}; // not while r is below the sum
}

// A warp a destination, with fanout picks of 24 bytes a warp in shared memory, ascending. What is drawn counts in
// the sum of those left; each pick below moves it up by its weight. weights and tops are those of sample_weigh.
// Bytes: those of sample_pick_many, and 4·fanout an in-edge of the destinations that draw.
KERNEL sample_pick_weighted(PICK_ARGS, const float *__restrict__ tops) {
  extern __shared__ Pick room[];
  PICK_PREPARE;
  u32 lane = threadIdx.x & 31;
  Pick *picks = room + threadIdx.x / 32 * fanout;
  i64 stride = (i64)gridDim.x * (blockDim.x / 32);
  for (i64 d = (i64)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32; d < n; d += stride) {
    int v = ids[d];
    Range r = inEdges(g.indptr, g.edges, v, state);
    i64 at = offset(out, local, tiles, d, n, total, lane == 0);
    if (r.n <= fanout) {
      for (i64 i = lane; i < r.n; i += 32) emit(out, g, table, at + i, total, d, r.at + i, state);
      continue;
    }
    float top = tops[d];
    if (top == 0) continue;
    Fixed fixed(top, r.n);
    const float *w = g.weights + r.at;
    u64 sum = 0;
    for (i64 i = lane; i < r.n; i += 32) sum += fixed.of(w[i]);
#pragma unroll
    for (int o = 16; o; o /= 2) sum += __shfl_xor_sync(~0u, sum, o);
    int have = 0;
    for (; have < fanout && sum; have++) {
      u64 high = draw(seed, v, 2 * have, step, c3), low = draw(seed, v, 2 * have + 1, step, c3);
      u64 u = __umul64hi(high << 32 | low, sum);
      for (int i = 0; i < have && picks[i].before <= u; i++) u += picks[i].weight;
      Pick p = find(w, r.n, fixed, u);
      __syncwarp(); // all have read the picks
      if (lane == 0) {
        int i = have;
        for (; i > 0 && picks[i - 1].at > p.at; i--) picks[i] = picks[i - 1];
        picks[i] = p;
      }
      __syncwarp();
      sum -= p.weight;
    }
    for (int i = lane; i < have; i += 32) emit(out, g, table, at + i, total, d, r.at + picks[i].at, state);
    __syncwarp();
  }
}
