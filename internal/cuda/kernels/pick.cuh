// Code that all kernels that pick edges share, whichever way they choose the edges.
#include "sample.cuh"

// Out holds the arrays of a block that a kernel writes. dst[e] is the destination of edge e, for the transpose. dst
// and weights may be null.
struct Out {
  i64 *indptr, *edgePos;
  int *indices, *dst;
  float *weights;
};

// Graph holds the arrays that edges are read from. weights may be null.
struct Graph {
  const i64 *indptr;
  const int *indices;
  const float *weights;
  i64 nodes, edges;
};

// emit writes edge e of destination d, and records in table that the edge reaches its source. After a fault, total
// is 0, so emit writes nothing, whatever the offsets are.
__device__ __forceinline__ void emit(const Out &out, const Graph &g, u32 *table, i64 e, i64 total, i64 d, i64 pos, i64 *state) {
  if (e >= total) return;
  int u = g.indices[pos];
  if ((u32)u >= (u32)g.nodes) {
    fault(state, DAMAGED_EDGE, pos);
    u = 0;
  }
  out.edgePos[e] = pos;
  out.indices[e] = u;
  if (out.dst) out.dst[e] = (int)d;
  if (out.weights) out.weights[e] = g.weights[pos];
  // atomicMin keeps a row, and keeps a lower edge. Reading the word first avoids most atomics on hubs.
  if (*(volatile u32 *)&table[u] > (FRESH | (u32)e)) atomicMin(&table[u], FRESH | (u32)e);
}

// offset returns the position where the edges of d begin. If writes is true, it also stores the position in
// out.indptr, and for the last destination the end.
__device__ __forceinline__ i64 offset(const Out &out, const i64 *local, const i64 *tiles, i64 d, i64 n, i64 total, bool writes) {
  i64 at = local[d] + tiles[d / TILE];
  if (writes) {
    out.indptr[d] = at;
    if (d == n - 1) out.indptr[n] = total;
  }
  return at;
}

// draw returns random number i of a node's stream.
__device__ __forceinline__ u32 draw(u64 seed, int node, u32 i, u32 step, u32 c3) {
  Words w = block(seed, node, i / 4, step, c3);
  u32 low = i & 1 ? w.w[1] : w.w[0], high = i & 1 ? w.w[3] : w.w[2];
  return i & 2 ? high : low;
}

#define PICK_ARGS                                                                                                                            \
  i64 *outIndptr, i64 *outEdgePos, int *outIndices, int *outDst, float *outWeights, u32 *table, const int *ids, const i64 *indptr,            \
      const int *indices, const float *weights, i64 nodes, i64 edges, const i64 *local, const i64 *tiles, i64 hop, i64 fanout, u64 seed,      \
      u32 step, u32 c3, i64 *state
#define PICK_PREPARE                                                                                                                         \
  Out out = {outIndptr, outEdgePos, outIndices, outDst, outWeights};                                                                         \
  Graph g = {indptr, indices, weights, nodes, edges};                                                                                        \
  i64 n = KNOWN(state, hop), total = EDGES(state, hop);                                                                                      \
  if (n == 0 && blockIdx.x == 0 && threadIdx.x == 0) out.indptr[0] = 0
#define PICK_PASS                                                                                                                            \
  outIndptr, outEdgePos, outIndices, outDst, outWeights, table, ids, indptr, indices, weights, nodes, edges, local, tiles, hop, fanout, seed, \
      step, c3, state
