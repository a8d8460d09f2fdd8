// Neighbour sampling with the same bits as package sample, hop by hop without the host:
//
//   sample_seeds                      gives the seeds their rows
//   for each hop:
//   sample_count, sample_scan         count the edges that each destination takes, and compute their offsets
//   sample_pick_*, sample_pick_all    pick the edges, and find the first edge that reaches each node
//   sample_first, sample_scan         count the new nodes, tile by tile
//   sample_number                     gives new nodes their rows, in the order of edges
//   sample_relabel                    replaces sources by their rows
//   at the end:
//   sample_clear                      empties the table
//
// Sizes are in the state (sample.cuh). The host knows only upper bounds of them, from which it makes grids; kernels
// stride over the actual sizes. The graph is in device memory, or in pinned memory of the host. Nothing depends on
// the order of threads. Arrays: table u32 [nodes]; ids i32, the batch's nodes by row; indptr i64 and indices i32,
// of the graph; local i64 [destinations], offsets within tiles; tiles i64, first the sum of each tile, then the sum
// of the tiles before it; out*, the block's. Bytes in the comments are for a batch of 1024 seeds by [15, 10, 5] on
// 2.4·10^6 nodes (about 10^6 edges, 0.55·10^6 nodes). Accesses to the graph and the table are random, and each
// counts as a sector of 32 bytes.
#include "pick.cuh"

// The seeds get the rows from 0 on. Bytes: 40 a seed; 41 KB, 9 ns: it takes the time of a launch.
KERNEL sample_seeds(int *__restrict__ ids, u32 *__restrict__ table, const int *__restrict__ seeds, i64 n, i64 *__restrict__ state) {
  for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (i64)gridDim.x * blockDim.x) {
    int v = seeds[i];
    ids[i] = v;
    u32 other = atomicMin(&table[v], (u32)i);
    if (other != EMPTY) fault(state, REPEATED_SEED, other < i ? i : other);
    if (i == 0) KNOWN(state, 0) = n;
  }
}

// local[d] = the number of edges of the tile's destinations before d; tiles[t] = that of all destinations of tile
// t. given, unless null, holds each destination's number of edges. Bytes: 32 + 12 a destination; 0.2·10^6: 9 MB,
// 2 µs.
KERNEL sample_count(i64 *__restrict__ local, i64 *__restrict__ tiles, const int *__restrict__ ids, const i64 *__restrict__ indptr,
                    const i64 *__restrict__ given, i64 edges, i64 fanout, i64 hop, i64 *state) {
  i64 n = KNOWN(state, hop);
  for (i64 tile = blockIdx.x; tile * TILE < n; tile += gridDim.x) {
    i64 first = tile * TILE + threadIdx.x * 4, count[4], sum = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) {
      count[i] = 0;
      if (first + i < n) {
        if (given)
          count[i] = given[first + i];
        else {
          count[i] = inEdges(indptr, edges, ids[first + i], state).n;
          if (fanout >= 0 && count[i] > fanout) count[i] = fanout;
        }
      }
      sum += count[i];
    }
    Sums s = blockSums(sum);
    for (int i = 0; i < 4; i++) {
      if (first + i < n) local[first + i] = s.before;
      s.before += count[i];
    }
    if (threadIdx.x == 0) tiles[tile] = s.all;
  }
}

// scan replaces each of the sums from first on and below n by base plus the sums before it. A thread handles SCAN
// sums. scan returns the total of the block's sums.
__device__ __forceinline__ i64 scan(i64 *__restrict__ sums, i64 first, i64 n, i64 base) {
  i64 v[SCAN], sum = 0;
  first += SCAN * threadIdx.x;
#pragma unroll
  for (int i = 0; i < SCAN; i++) {
    v[i] = first + i < n ? sums[first + i] : 0;
    sum += v[i];
  }
  Sums s = blockSums(sum);
  i64 before = base + s.before;
#pragma unroll
  for (int i = 0; i < SCAN; i++) {
    if (first + i < n) sums[first + i] = before;
    before += v[i];
  }
  return s.all;
}

// sums[t] becomes the sum of those before t. The number of sums is items/TILE (rounded up) times tilesOf, divided
// by of (rounded up). *total gets the sum of all of them, plus *plus unless plus is null. A total above limit is a
// fault, and *total gets 0. Grid: one block, in which a thread handles SCAN sums a round, so that few rounds wait
// for each other. Bytes: 16 a sum; 10^6 edges: 16 KB in one round of about 2 µs.
KERNEL sample_scan(i64 *__restrict__ sums, const i64 *__restrict__ items, i64 tilesOf, i64 of, const i64 *plus, i64 *total, i64 limit, i64 *state) {
  i64 n = ((*items + TILE - 1) / TILE * tilesOf + of - 1) / of, base = 0;
  for (i64 from = 0; from < n; from += PART) base += scan(sums, from, n, base);
  if (threadIdx.x == 0 && total) {
    if (plus) base += *plus;
    if (base > limit) {
      fault(state, OVER_CAPACITY, base);
      base = 0;
    }
    *total = base;
  }
}

// sample_scan for many sums, by many blocks. Each sum becomes the sum of those before it in its part of PART sums,
// and parts[p] gets the total of part p. sample_scan then scans parts, and a kernel that reads a sum adds that of
// its part. Bytes: 16 a sum; the digits of 10^6 edges: 4 MB, 1 µs.
KERNEL sample_scan_parts(i64 *__restrict__ sums, i64 *__restrict__ parts, const i64 *__restrict__ items, i64 tilesOf) {
  i64 n = (*items + TILE - 1) / TILE * tilesOf;
  for (i64 part = blockIdx.x; part * PART < n; part += gridDim.x) {
    i64 all = scan(sums, part * PART, n, 0);
    if (threadIdx.x == 0) parts[part] = all;
  }
}

// G lanes pick the edges of a destination, for a fanout k of at most G, with Floyd's algorithm: draw i is taken
// unless an earlier pick is the same, else n-k+i is taken. A lane has a draw, and each step compares one draw with
// all earlier picks at once. A pick's place is the number of picks below it. Bytes: 32 + 20 a destination, 32 + 12
// + 64 (table, read and written) an edge; 10^6 edges: 120 MB, 25 µs.
template <int G>
__device__ __forceinline__ void pick(PICK_ARGS) {
  PICK_PREPARE;
  int lane = threadIdx.x & 31, mine = lane % G, group = lane / G, k = (int)fanout;
  i64 stride = (i64)gridDim.x * (blockDim.x / 32) * (32 / G);
  for (i64 first = ((i64)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32) * (32 / G); first < n; first += stride) {
    i64 d = first + group, at = 0;
    Range r = {0, 0};
    int v = 0;
    if (d < n) {
      v = ids[d];
      r = inEdges(g.indptr, g.edges, v, state);
      at = offset(out, local, tiles, d, n, total, mine == 0);
    }
    bool draws = r.n > k;
    u32 place = mine, chosen = mine;
    if (__any_sync(~0u, draws)) {
      u32 last = (u32)(r.n - k) + mine, t = 0, picked = EMPTY;
      if (draws && mine < k) t = __umulhi(draw(seed, v, mine, step, c3), last + 1);
      for (int i = 0; i < k; i++) {
        u32 candidate = __shfl_sync(~0u, t, i, G);
        u32 taken = __ballot_sync(~0u, picked == candidate) >> (group * G) & (u32)((1ull << G) - 1);
        if (mine == i) picked = taken ? last : candidate;
      }
      u32 below = 0;
      for (int i = 0; i < k; i++) below += __shfl_sync(~0u, picked, i, G) < picked;
      if (draws) place = below, chosen = picked;
    }
    if (mine < (draws ? k : r.n)) emit(out, g, table, at + place, total, d, r.at + chosen, state);
  }
}

KERNEL sample_pick_8(PICK_ARGS) { pick<8>(PICK_PASS); }
KERNEL sample_pick_16(PICK_ARGS) { pick<16>(PICK_PASS); }
KERNEL sample_pick_32(PICK_ARGS) { pick<32>(PICK_PASS); }

// sample_pick_many picks for any fanout, with a warp for each destination. It keeps the unsorted picks in the array
// where the edges' sources will be. Work: fanout²/32 comparisons a lane. Bytes: as above, 25 µs for 10^6 edges, and
// 4·fanout a pick from the cache.
KERNEL sample_pick_many(PICK_ARGS) {
  PICK_PREPARE;
  u32 mine = threadIdx.x & 31, k = (u32)fanout;
  i64 stride = (i64)gridDim.x * (blockDim.x / 32);
  for (i64 d = (i64)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32; d < n; d += stride) {
    int v = ids[d];
    Range r = inEdges(g.indptr, g.edges, v, state);
    i64 at = offset(out, local, tiles, d, n, total, mine == 0);
    if (r.n <= k) {
      for (i64 i = mine; i < r.n; i += 32) emit(out, g, table, at + i, total, d, r.at + i, state);
      continue;
    }
    if (at + k > total) continue;
    int *picks = out.indices + at;
    for (u32 from = 0; from < k; from += 32) {
      u32 last = (u32)(r.n - k) + from + mine, picked = EMPTY;
      u32 t = from + mine < k ? __umulhi(draw(seed, v, from + mine, step, c3), last + 1) : 0;
      for (u32 i = 0; i < 32 && from + i < k; i++) {
        u32 candidate = __shfl_sync(~0u, t, i);
        bool same = picked == candidate;
        for (u32 j = mine; j < from; j += 32) same |= (u32)picks[j] == candidate;
        bool taken = __any_sync(~0u, same);
        if (mine == i) picked = taken ? last : candidate;
      }
      if (from + mine < k) picks[from + mine] = (int)picked;
      __syncwarp();
    }
    for (u32 i = mine; i < k; i += 32) {
      u32 picked = (u32)picks[i], below = 0;
      for (u32 j = 0; j < k; j++) below += (u32)picks[j] < picked;
      out.edgePos[at + below] = r.at + picked;
    }
    __syncwarp();
    for (u32 i = mine; i < k; i += 32) emit(out, g, table, at + i, total, d, out.edgePos[at + i], state);
    __syncwarp();
  }
}

// Writes only the offsets, for sample_pick_all. Bytes: 24 a destination; 0.2·10^6: 5 MB, 1 µs.
KERNEL sample_offsets(PICK_ARGS) {
  Out out = {outIndptr};
  i64 n = KNOWN(state, hop), total = EDGES(state, hop);
  if (n == 0 && blockIdx.x == 0 && threadIdx.x == 0) out.indptr[0] = 0;
  for (i64 d = (i64)blockIdx.x * blockDim.x + threadIdx.x; d < n; d += (i64)gridDim.x * blockDim.x)
    offset(out, local, tiles, d, n, total, true);
}

// Picks all in-edges of every destination. A thread handles an edge and finds its destination by bisection, so that
// hubs do not delay other destinations. Bytes: 44 + 64 an edge, and 8·log2(destinations) from the cache; 10^6
// edges: 110 MB, 23 µs.
KERNEL sample_pick_all(PICK_ARGS) {
  PICK_PREPARE;
  for (i64 e = (i64)blockIdx.x * blockDim.x + threadIdx.x; e < total; e += (i64)gridDim.x * blockDim.x) {
    i64 low = 0, high = n; // indptr[low] <= e < indptr[high]
    while (high - low > 1) {
      i64 mid = (low + high) / 2;
      if (out.indptr[mid] <= e)
        low = mid;
      else
        high = mid;
    }
    emit(out, g, table, e, total, low, inEdges(g.indptr, g.edges, ids[low], state).at + (e - out.indptr[low]), state);
  }
}

// bits gets a bit for each edge, set if the edge is the first that reaches its source; tiles[t] is the number of
// set bits of tile t. Bytes: 4 + 32 an edge; 36 MB, 8 µs.
KERNEL sample_first(u32 *__restrict__ bits, i64 *__restrict__ tiles, const int *__restrict__ sources, const u32 *__restrict__ table, i64 hop,
                    const i64 *__restrict__ state) {
  i64 n = EDGES(state, hop);
  for (i64 tile = blockIdx.x; tile * TILE < n; tile += gridDim.x) {
    i64 sum = 0;
    for (int i = 0; i < TILE; i += 256) {
      i64 e = tile * TILE + i + threadIdx.x;
      u32 word = __ballot_sync(~0u, e < n && table[sources[e < n ? e : 0]] == (FRESH | (u32)e));
      if ((threadIdx.x & 31) == 0) {
        bits[e / 32] = word;
        sum += __popc(word);
      }
    }
    Sums s = blockSums(sum);
    if (threadIdx.x == 0) tiles[tile] = s.all;
  }
}

// New nodes get the rows that follow those of the known nodes, in the order of edges. Bytes: 4 an edge, 40 a new
// node; 20 MB, 4 µs.
KERNEL sample_number(int *__restrict__ ids, u32 *__restrict__ table, const int *__restrict__ sources, const u32 *__restrict__ bits,
                     const i64 *__restrict__ tiles, i64 hop, const i64 *__restrict__ state) {
  i64 n = EDGES(state, hop), known = KNOWN(state, hop);
  u32 lane = threadIdx.x & 31;
  for (i64 tile = blockIdx.x; tile * TILE < n; tile += gridDim.x) {
    // Each warp sums the tile's 32 words.
    u32 mine = (tile * 32 + lane) * 32 < n ? bits[tile * 32 + lane] : 0;
    u32 before = (u32)warpSum(__popc(mine)) - __popc(mine);
    for (int i = 0; i < TILE; i += 256) {
      int w = (i + threadIdx.x) / 32;
      u32 word = __shfl_sync(~0u, mine, w), rank = __shfl_sync(~0u, before, w) + __popc(word & ((1u << lane) - 1));
      if (word >> lane & 1) {
        int u = sources[tile * TILE + i + threadIdx.x];
        i64 row = known + tiles[tile] + rank;
        ids[row] = u;
        table[u] = (u32)row;
      }
    }
  }
}

// Replaces sources by their rows. Bytes: 8 + 32 an edge; 10^6: 40 MB, 8 µs.
KERNEL sample_relabel(int *__restrict__ indices, const u32 *__restrict__ table, i64 hop, const i64 *__restrict__ state) {
  i64 n = EDGES(state, hop);
  for (i64 e = (i64)blockIdx.x * blockDim.x + threadIdx.x; e < n; e += (i64)gridDim.x * blockDim.x) indices[e] = (int)table[indices[e]];
}

// Removes the nodes of a batch from the table. After a fault it does nothing, and the host fills the table with
// EMPTY. Bytes: 36 a node; 0.55·10^6: 20 MB, 4 µs.
KERNEL sample_clear(u32 *__restrict__ table, const int *__restrict__ ids, i64 hops, const i64 *__restrict__ state) {
  i64 n = state[0] == -1 ? KNOWN(state, hops) : 0;
  for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (i64)gridDim.x * blockDim.x) table[ids[i]] = EMPTY;
}
