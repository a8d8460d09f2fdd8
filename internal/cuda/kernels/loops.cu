// Makes the block with self-loops of a sampled block, as graphops.Block.SelfLooped does: a destination's edges from
// itself are removed, and one is added behind its other edges.
//
//   loops_find, sample_scan    find the edges to remove, and count them tile by tile
//   loops_place                writes the edges, in the order of destinations
//   loops_by_source            writes the edges grouped by source, from those of the sampled block
//
// A kept edge e of destination d gets the number e, less the removed edges before it, plus d, the added ones of the
// destinations before. bits has a bit for each edge, set if the edge is removed; before[w] is the number of bits in
// the words of the tile before word w; tiles[t] is the number of removed edges of tile t, and after sample_scan that
// of the tiles before it. Bytes in the comments are for a batch of 10^6 edges, 0.2·10^6 destinations and 0.55·10^6
// sources, as those of sample.cu.
#include "sample.cuh"

// Removed are the arrays that say which edges are removed.
struct Removed {
  const u32 *bits, *before;
  const i64 *tiles;

  __device__ __forceinline__ bool has(i64 e) const { return bits[e / 32] >> (e & 31) & 1; }
  // below returns how many edges before e are removed. e may be the number of edges.
  __device__ __forceinline__ i64 below(i64 e) const {
    if (e <= 0) return 0;
    i64 last = e - 1; // an edge that exists
    return tiles[last / TILE] + before[last / 32] + __popc(bits[last / 32] << (31 - (last & 31)));
  }
};

// startOf returns the number of the first edge of destination d. If the graph changes while it is sampled, indptr can hold
// anything.
__device__ __forceinline__ i64 startOf(const i64 *__restrict__ indptr, i64 d, i64 n) {
  i64 at = indptr[d];
  return (u64)at > (u64)n ? n : at;
}

// loopsBefore returns how many more edges row v and later ones have before them than before: the added ones of the
// destinations before v, less the removed ones.
__device__ __forceinline__ i64 loopsBefore(const Removed &removed, const i64 *__restrict__ indptr, i64 v, i64 n, i64 rows) {
  i64 d = v < rows ? v : rows;
  return d - removed.below(startOf(indptr, d, n));
}

// Bytes: 8 an edge; 8 MB, 2 µs.
KERNEL loops_find(u32 *__restrict__ bits, u32 *__restrict__ before, i64 *__restrict__ tiles, const int *__restrict__ indices,
                  const int *__restrict__ dst, i64 hop, const i64 *__restrict__ state) {
  __shared__ u32 counts[32];
  i64 n = EDGES(state, hop);
  for (i64 tile = blockIdx.x; tile * TILE < n; tile += gridDim.x) {
    for (int i = 0; i < TILE; i += 256) {
      i64 e = tile * TILE + i + threadIdx.x;
      u32 word = __ballot_sync(~0u, e < n && indices[e] == dst[e]);
      if ((threadIdx.x & 31) == 0) {
        bits[e / 32] = word;
        counts[(i + threadIdx.x) / 32] = __popc(word);
      }
    }
    __syncthreads();
    if (threadIdx.x < 32) {
      u32 mine = counts[threadIdx.x], upTo = (u32)warpSum(mine);
      before[tile * 32 + threadIdx.x] = upTo - mine;
      if (threadIdx.x == 31) tiles[tile] = upTo;
    }
    __syncthreads();
  }
}

// Writes the block. *total gets its number of edges. ids are the batch's nodes by row. outDst, unless null, gets the
// destination of each edge. If the graph changes while it is sampled, dst can hold anything, but no write leaves the
// arrays. Bytes: 16 + 20 an edge, 16 + 28 a destination; 45 MB, 9 µs.
KERNEL loops_place(i64 *__restrict__ outIndptr, int *__restrict__ outIndices, i64 *__restrict__ outEdgePos, int *__restrict__ outDst,
                   const i64 *__restrict__ indptr, const int *__restrict__ indices, const i64 *__restrict__ edgePos, const int *__restrict__ dst,
                   const int *__restrict__ ids, const u32 *__restrict__ bits, const u32 *__restrict__ before, const i64 *__restrict__ tiles,
                   i64 hop, i64 *__restrict__ total, const i64 *__restrict__ state) {
  const i64 LOOP = (i64)1 << 47; // graphops.LoopPos
  Removed removed = {bits, before, tiles};
  i64 n = EDGES(state, hop), rows = KNOWN(state, hop), stride = (i64)gridDim.x * blockDim.x, first = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  for (i64 e = first; e < n; e += stride) {
    int d = dst[e];
    if (removed.has(e) || (u64)(i64)d >= (u64)rows) continue;
    i64 to = e - removed.below(e) + d;
    outIndices[to] = indices[e];
    outEdgePos[to] = edgePos[e];
    if (outDst) outDst[to] = d;
  }
  for (i64 d = first; d <= rows; d += stride) {
    i64 to = startOf(indptr, d, n) + loopsBefore(removed, indptr, d, n, rows);
    outIndptr[d] = to;
    if (d == rows) *total = to;
    if (d == 0) continue;
    outIndices[to - 1] = (int)d - 1;
    outEdgePos[to - 1] = LOOP | ids[d - 1];
    if (outDst) outDst[to - 1] = (int)d - 1;
  }
}

// Writes the block's edges by source. tIndptr, tDst and tEdge are those of the sampled block, in which row[i] is the
// source of entry i; indptr are the offsets of its destinations. outRow[i] gets the source of the new entry i. A source
// that is a destination has its removed edges together, where its loop goes. Bytes: 12 + 12 an edge, 16 + 8 a source,
// 8 + 12 a destination, and 24 an edge and log2(edges of a source) reads a destination from the cache; 10^6 edges: 41
// MB, 9 µs.
KERNEL loops_by_source(i64 *__restrict__ outTIndptr, int *__restrict__ outTDst, int *__restrict__ outTEdge, int *__restrict__ outRow,
                       const i64 *__restrict__ tIndptr, const int *__restrict__ tDst, const int *__restrict__ tEdge, const int *__restrict__ row,
                       const i64 *__restrict__ indptr, const u32 *__restrict__ bits, const u32 *__restrict__ before, const i64 *__restrict__ tiles,
                       i64 hop, const i64 *__restrict__ state) {
  Removed removed = {bits, before, tiles};
  i64 n = EDGES(state, hop), rows = KNOWN(state, hop), sources = KNOWN(state, hop + 1);
  i64 stride = (i64)gridDim.x * blockDim.x, first = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  for (i64 i = first; i < n; i += stride) {
    i64 s = row[i], d = tDst[i], e = tEdge[i];
    if (s == d || (u64)s >= (u64)sources || (u64)d >= (u64)rows) continue;
    i64 to = i + loopsBefore(removed, indptr, s < rows && d > s ? s + 1 : s, n, rows);
    if ((u64)to >= (u64)(n + rows)) continue;
    outTDst[to] = (int)d;
    outTEdge[to] = (int)(e - removed.below(e) + d);
    outRow[to] = (int)s;
  }
  for (i64 s = first; s <= sources; s += stride) {
    i64 low = tIndptr[s], shift = loopsBefore(removed, indptr, s, n, rows);
    outTIndptr[s] = low + shift;
    if (s >= rows) continue;
    for (i64 high = tIndptr[s + 1]; low < high;) { // destinations before low are less than s
      i64 mid = (low + high) / 2;
      if (tDst[mid] < s)
        low = mid + 1;
      else
        high = mid;
    }
    i64 to = low + shift;
    if ((u64)to >= (u64)(n + rows)) continue;
    outTDst[to] = (int)s;
    outTEdge[to] = (int)(startOf(indptr, s + 1, n) + loopsBefore(removed, indptr, s + 1, n, rows) - 1);
    outRow[to] = (int)s;
  }
}
