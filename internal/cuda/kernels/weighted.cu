// Weighted sampling without replacement, with the same bits as sample.Hop.Weighted. Weights become integers, and k
// of them are drawn one after the other from the sum of those that are left. sample_weigh takes the place of
// counting in-edges; sample.cu has the other kernels.
//
// A warp handles a node. It sums the node's weights once, in at most SEGMENTS pieces of equal length. A draw finds
// its piece, and then its position in the piece. k draws of n in-edges read n + k·n/SEGMENTS weights, with 128
// loads in flight in the first pass. A hub of 10^5 in-edges takes under a millisecond by itself, of which ten draws
// take 50 µs.
#define RESIDENT 3
#include "pick.cuh"

#define SEGMENTS 256
#define BATCH 4
#define WIDE (32 * BATCH)  // weights that a warp loads at once

// Fixed converts a node's weights to integers by subtracting shift from their exponents.
struct Fixed {
  int shift;

  // mantissa splits w > 0 into m·2^e, with m of 24 bits.
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
  // top is the largest weight, n the number of weights. The largest integer has 62 bits minus those of n, so the
  // sum fits in 62 bits.
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

// counts[d] = the number of edges that destination d takes: all in-edges if they are at most fanout, else at most
// as many as have a positive weight. tops[d] = the largest weight, if d has more in-edges than fanout. Grid: a warp
// a destination. Bytes: 24 a destination, 4 an in-edge; 10^6 in-edges: 4 MB, 1 µs.
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
      for (i64 i = lane; i < r.n; i += WIDE) {
        float w[BATCH];
#pragma unroll
        for (int j = 0; j < BATCH; j++) w[j] = i + 32 * j < r.n ? weights[r.at + i + 32 * j] : 0;
#pragma unroll
        for (int j = 0; j < BATCH; j++) {
          if (!(w[j] >= 0) || w[j] == INFINITY) {
            fault(state, BAD_WEIGHT, r.at + i + 32 * j);
            w[j] = 0;
          }
          some += w[j] > 0;
          top = fmaxf(top, w[j]);
        }
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

// Pick is an edge that was drawn: its position, its weight, and the sum of the weights before it.
struct Pick {
  u64 before, weight;
  i64 at;
};

// Pieces holds the sums of a node's weights, in pieces of length weights each. length is a multiple of WIDE. The
// sums are in shared memory.
struct Pieces {
  const float *weights;
  i64 n, length;
  Fixed fixed;
  u64 *sums;

  __device__ __forceinline__ Pieces(const float *weights, i64 n, float top, u64 *sums)
      : weights(weights), n(n), length((n + SEGMENTS * WIDE - 1) / (SEGMENTS * WIDE) * WIDE), fixed(top, n), sums(sums) {}

  __device__ __forceinline__ u64 of(i64 i) const { return i < n ? fixed.of(weights[i]) : 0; }

  // add sums the pieces and returns the sum of all weights. All lanes must call it, and __syncwarp after it.
  __device__ __forceinline__ u64 add() const {
    u32 lane = threadIdx.x & 31;
    u64 all = 0;
    for (i64 from = 0; from < n; from += length) {
      u64 sum = 0;
      i64 to = from + length;
      for (i64 i = from + lane; i < to; i += WIDE) {
        float w[BATCH];
#pragma unroll
        for (int j = 0; j < BATCH; j++) w[j] = i + 32 * j < n ? weights[i + 32 * j] : 0;
#pragma unroll
        for (int j = 0; j < BATCH; j++) sum += fixed.of(w[j]);
      }
#pragma unroll
      for (int o = 16; o; o /= 2) sum += __shfl_xor_sync(~0u, sum, o);
      if (lane == 0) sums[from / length] = sum;
      all += sum;
    }
    return all;
  }

  // find returns the edge whose weight covers r in the sum of all weights. All lanes must call it.
  __device__ __forceinline__ Pick find(u64 r) const {
    u32 lane = threadIdx.x & 31;
    i64 pieces = (n + length - 1) / length, piece = pieces;
    u64 base = 0;
    for (i64 from = 0; from < pieces; from += 32) {
      u64 mine = from + lane < pieces ? sums[from + lane] : 0, upTo = base + (u64)warpSum((i64)mine);
      u32 over = __ballot_sync(~0u, upTo > r);
      base = over ? __shfl_sync(~0u, upTo - mine, __ffs(over) - 1) : __shfl_sync(~0u, upTo, 31);
      if (over) {
        piece = from + __ffs(over) - 1;
        break;
      }
    }
    for (i64 from = piece * length; from < n && from < (piece + 1) * length; from += 32) {
      u64 mine = of(from + lane), upTo = base + (u64)warpSum((i64)mine);
      u32 over = __ballot_sync(~0u, upTo > r);
      if (over) {
        int first = __ffs(over) - 1;
        return {__shfl_sync(~0u, upTo - mine, first), __shfl_sync(~0u, mine, first), from + first};
      }
      base = __shfl_sync(~0u, upTo, 31);
    }
    return {0, 0, n};  // not reached if r is below the sum
  }
};

// A warp handles a destination. In shared memory it has room for SEGMENTS sums, and for fanout picks of 24 bytes,
// which it keeps in ascending order. A drawn number is a position in the sum of the weights that are left; each
// earlier pick at or below it moves it up by that pick's weight. weights and tops are those of sample_weigh. Bytes:
// those of sample_pick_many, and 4 an in-edge of the destinations that draw: 26 µs for 10^6 edges.
KERNEL sample_pick_weighted(PICK_ARGS, const float *__restrict__ tops) {
  extern __shared__ u64 room[];
  PICK_PREPARE;
  u32 lane = threadIdx.x & 31;
  u64 *sums = room + threadIdx.x / 32 * (SEGMENTS + fanout * (sizeof(Pick) / 8));
  Pick *picks = (Pick *)(sums + SEGMENTS);
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
    Pieces pieces(g.weights + r.at, r.n, top, sums);
    u64 sum = pieces.add();
    __syncwarp();
    int have = 0;
    for (; have < fanout && sum; have++) {
      u64 high = draw(seed, v, 2 * have, step, c3), low = draw(seed, v, 2 * have + 1, step, c3);
      u64 u = __umul64hi(high << 32 | low, sum);
      for (int i = 0; i < have && picks[i].before <= u; i++) u += picks[i].weight;
      Pick p = pieces.find(u);
      __syncwarp(); // all lanes have read the picks
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
