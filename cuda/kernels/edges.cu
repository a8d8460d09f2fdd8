// Operations of attention on each edge: the dot product of two rows, and the softmax over the edges of a
// destination.
#include "dots.cuh"

// edge_dot_f32: dw[e,k] = Σ over the columns c of head k of dout[d,c]·x[indices[e],c], for each edge e of d.
//
// Grid: pairs (row, head) by groups of lanes as in common.cuh, for cols/heads columns; a fixed tree adds the lanes'
// sums. Bytes: 4·cols, 4·heads and 4 an edge, 4·cols a row. 10^6 edges of 256 columns: 1.06 GB, 0.22 ms.
// hubedges.cu handles destinations of more than LONG edges.
KERNEL edge_dot_f32(float *__restrict__ dw, const i64 *__restrict__ indptr, const int *__restrict__ indices, const float *__restrict__ dout,
                    const float *__restrict__ x, i64 first, i64 rows, i64 cols, i64 heads, i64 acc) {
  u32 group = groupMask();  // the groups of a warp have different numbers of edges
  FOR_ROWS(item, live, rows * heads) {
    if (!live) continue;
    i64 d = item / heads, k = item - d * heads, from = indptr[d], to = indptr[d + 1];
    if (to - from > LONG) continue;
    const float *g = dout + d * cols + k * (cols / heads);
    for (i64 next = from; next < to; next += BATCH) dots(dw, indices, g, x, next, to, first, cols, heads, k, group, acc);
  }
}

// A warp handles a destination, in slots of `lanes` lanes each. The slots take the destination's edges in turn, and
// the lanes of a slot take the columns (heads). Lane l handles columns l%lanes, l%lanes + lanes, … of every
// (32/lanes)-th edge from l/lanes on. lanes is a power of two up to 32. Grid: destinations by blocks of (32, 8),
// striding. hubedges.cu handles destinations of more than LONG edges.
//
// overSlots combines v over the slots.
template <class T, class F>
__device__ __forceinline__ T overSlots(T v, int lanes, F f) {
  for (int o = 16; o >= lanes; o /= 2) v = f(v, __shfl_xor_sync(0xffffffffu, v, o));
  return v;
}

// edge_softmax_f32: y[e,k] = e^x[e,k] / Σ over the edges j of e's destination of e^x[j,k]. The greatest x is
// subtracted first, so no exponential overflows. Bytes: 8·cols an edge, because later passes read from the caches;
// 10^7 edges of 4 heads: 0.32 GB, 67 µs.
KERNEL edge_softmax_f32(float *__restrict__ y, const i64 *__restrict__ indptr, const float *__restrict__ x, i64 first, i64 rows, i64 cols, i64 lanes) {
  int slots = 32 / lanes, slot = threadIdx.x / lanes;
  FOR_ROWS(d, live, rows) {
    if (!live || indptr[d + 1] - indptr[d] > LONG) continue;  // all lanes have the same destination
    i64 from = indptr[d] - first + slot, to = indptr[d + 1] - first;
    for (i64 tile = 0; tile < cols; tile += lanes) {
      i64 k = tile + threadIdx.x % lanes, end = k < cols ? to : 0;
      float top = -INFINITY;
      for (i64 e = from; e < end; e += slots) top = fmaxf(top, x[e * cols + k]);
      top = overSlots(top, lanes, [](float a, float b) { return fmaxf(a, b); });
      double sum = 0;
      for (i64 e = from; e < end; e += slots) sum += expf(x[e * cols + k] - top);
      double inv = 1 / overSlots(sum, lanes, [](double a, double b) { return a + b; });
      for (i64 e = from; e < end; e += slots) y[e * cols + k] = (float)(expf(x[e * cols + k] - top) * inv);
    }
  }
}

// edge_softmax_grad_f32: dx[e,k] = y[e,k]·(dy[e,k] - Σ over the edges j of e's destination of dy[j,k]·y[j,k]).
// Bytes: 12·cols an edge; 10^7 edges of 4 heads: 0.48 GB, 0.1 ms.
KERNEL edge_softmax_grad_f32(float *__restrict__ dx, const i64 *__restrict__ indptr, const float *__restrict__ dy, const float *__restrict__ y, i64 first,
                             i64 rows, i64 cols, i64 lanes, i64 acc) {
  int slots = 32 / lanes, slot = threadIdx.x / lanes;
  FOR_ROWS(d, live, rows) {
    if (!live || indptr[d + 1] - indptr[d] > LONG) continue;
    i64 from = indptr[d] - first + slot, to = indptr[d + 1] - first;
    for (i64 tile = 0; tile < cols; tile += lanes) {
      i64 k = tile + threadIdx.x % lanes, end = k < cols ? to : 0;
      double along = 0;
      for (i64 e = from; e < end; e += slots) along += (double)dy[e * cols + k] * y[e * cols + k];
      along = overSlots(along, lanes, [](double a, double b) { return a + b; });
      for (i64 e = from; e < end; e += slots) {
        i64 i = e * cols + k;
        put(dx, i, (float)(y[i] * (dy[i] - along)), acc);
      }
    }
  }
}
