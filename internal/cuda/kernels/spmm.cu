// Aggregation over the edges of a block: out[d,:] = Σ or mean over edges e of d of w[e]·x[row of e,:].
//
// The edges of row d are the positions e in [indptr[d], indptr[d+1]). They are added in ascending order, with the
// CPU's bits. The number of an edge is e - first, where first is indptr[0] of the whole block. The row of e is
// indices[e]; or via[indices[e]], in a table of features that is read in place and of which a cache may hold some
// rows (see rowsof.cuh); or, if indices is null, the number of e (messages). w [E,heads], unless null, weighs edge
// e by w[n,k]: n is at[e], or the number of e if at is null, and k = c/(cols/heads). An edge of weight 0 adds
// nothing, whatever x is. mean divides by the number of edges. The gradient with respect to x is the same operation
// over the transposed block, whose Dst and Edge are indices and at.
//
// Grid: rows times tiles, as in rowsof.cuh, striding; the rows of BATCH edges are loaded at once. Bytes: 4·cols and
// 4 to 12 an edge, 4·cols and 8 a row (2·cols an edge in f16). 10^6 edges of 256 columns to 10^5 rows: 1.13 GB,
// 0.24 ms. One lane adds a column's edges, with four loads in flight. For a table, the numbers of the next four rows are
// loaded with them. hub.cu handles rows of more than LONG edges.
#include "rowsof.cuh"

#define BATCH 4

// With TABLE, via may choose rows, and rows may be in a cache. Each case has a loop of its own, because a loop that
// tests for both has half as many instructions again.
template <int V, bool WEIGHTED, bool TABLE, class T>
__device__ __forceinline__ void add(float *__restrict__ out, const i64 *__restrict__ indptr, const int *__restrict__ indices, const int *__restrict__ via,
                                     const T *__restrict__ x, const T *__restrict__ cache, const int *__restrict__ slots,
                                     const float *__restrict__ w, const int *__restrict__ at, i64 first, i64 rows, i64 cols, i64 heads, i64 mean, i64 acc) {
  Tiles<V> tiles(cols);
  FOR_ROWS(item, live, tiles.items(rows)) {
    i64 d, c;
    if (!live || !tiles.split(item, d, c)) continue;
    i64 from = indptr[d], to = indptr[d + 1];
    if (to - from > LONG) continue;
    const float *weight = WEIGHTED && heads > 1 ? w + c / (cols / heads) : w;
    Columns<V> sum = {};
    // rowsOf sets row and number to those of the batch at next. Each step handles all edges of the batch, so that their
    // loads are in flight together. Past the end, it is the last edge again.
    i64 row[BATCH], number[BATCH];
    auto rowsOf = [&](i64 next) {
#pragma unroll
      for (int j = 0; j < BATCH; j++) {
        i64 e = next + j < to ? next + j : to - 1;
        row[j] = number[j] = e - first;
        if (once((i64)indices)) row[j] = indices[e];
        if (WEIGHTED && once((i64)at)) number[j] = at[e];
      }
      if (TABLE && once((i64)via))
#pragma unroll
        for (int j = 0; j < BATCH; j++) row[j] = via[row[j]];
    };
    if (TABLE && from < to) rowsOf(from);
    for (i64 next = from; next < to; next += BATCH) {
      Columns<V> v[BATCH];
      float by[BATCH];
      if (!TABLE) rowsOf(next);
#pragma unroll
      for (int j = 0; j < BATCH; j++) {
        load((TABLE ? rowOf(x, cache, (const int *)once((i64)slots), row[j], cols) : x + row[j] * cols) + c, v[j]);
        by[j] = next + j >= to ? 0 : WEIGHTED ? weight[number[j] * heads] : 1;
      }
      if (TABLE) rowsOf(next + BATCH);  // the next rows' numbers arrive while these rows do
#pragma unroll
      for (int j = 0; j < BATCH; j++)
#pragma unroll
        for (int i = 0; i < V; i++) sum.v[i] = by[j] != 0 ? sum.v[i] + (WEIGHTED ? __fmul_rn(by[j], v[j].v[i]) : v[j].v[i]) : sum.v[i];
    }
    float share = mean && to - from > 1 ? 1 / (float)(to - from) : 1;
    float *o = out + d * cols + c;
    Columns<V> old = {};
    if (acc) load(o, old);
#pragma unroll
    for (int i = 0; i < V; i++) sum.v[i] = acc ? sum.v[i] * share + old.v[i] : sum.v[i] * share;
    store(o, sum);
  }
}

template <int V, class T>
__device__ __forceinline__ void spmm(float *__restrict__ out, const i64 *__restrict__ indptr, const int *__restrict__ indices, const int *__restrict__ via,
                                     const T *__restrict__ x, const T *__restrict__ cache, const int *__restrict__ slots,
                                     const float *__restrict__ w, const int *__restrict__ at, i64 first, i64 rows, i64 cols, i64 heads, i64 mean, i64 acc) {
  bool table = sizeof(T) == 2 || via || slots;  // only tables are stored as f16
  if (w && table)
    add<V, true, true>(out, indptr, indices, via, x, cache, slots, w, at, first, rows, cols, heads, mean, acc);
  else if (table)
    add<V, false, true>(out, indptr, indices, via, x, cache, slots, w, at, first, rows, cols, heads, mean, acc);
  else if (w)
    add<V, true, false>(out, indptr, indices, via, x, cache, slots, w, at, first, rows, cols, heads, mean, acc);
  else
    add<V, false, false>(out, indptr, indices, via, x, cache, slots, w, at, first, rows, cols, heads, mean, acc);
}

KERNEL spmm_f32(float *__restrict__ out, const i64 *__restrict__ indptr, const int *__restrict__ indices, const int *__restrict__ via,
       const float *__restrict__ x, const float *__restrict__ cache, const int *__restrict__ slots,
       const float *__restrict__ w, const int *__restrict__ at, i64 first, i64 rows, i64 cols, i64 heads, i64 mean, i64 acc) {
  spmm<1>(out, indptr, indices, via, x, cache, slots, w, at, first, rows, cols, heads, mean, acc);
}
KERNEL spmm_f32x4(float *__restrict__ out, const i64 *__restrict__ indptr, const int *__restrict__ indices, const int *__restrict__ via,
       const float *__restrict__ x, const float *__restrict__ cache, const int *__restrict__ slots,
       const float *__restrict__ w, const int *__restrict__ at, i64 first, i64 rows, i64 cols, i64 heads, i64 mean, i64 acc) {
  spmm<4>(out, indptr, indices, via, x, cache, slots, w, at, first, rows, cols, heads, mean, acc);
}
KERNEL spmm_f16(float *__restrict__ out, const i64 *__restrict__ indptr, const int *__restrict__ indices, const int *__restrict__ via,
       const u16 *__restrict__ x, const u16 *__restrict__ cache, const int *__restrict__ slots,
       const float *__restrict__ w, const int *__restrict__ at, i64 first, i64 rows, i64 cols, i64 heads, i64 mean, i64 acc) {
  spmm<1>(out, indptr, indices, via, x, cache, slots, w, at, first, rows, cols, heads, mean, acc);
}
KERNEL spmm_f16x4(float *__restrict__ out, const i64 *__restrict__ indptr, const int *__restrict__ indices, const int *__restrict__ via,
       const u16 *__restrict__ x, const u16 *__restrict__ cache, const int *__restrict__ slots,
       const float *__restrict__ w, const int *__restrict__ at, i64 first, i64 rows, i64 cols, i64 heads, i64 mean, i64 acc) {
  spmm<4>(out, indptr, indices, via, x, cache, slots, w, at, first, rows, cols, heads, mean, acc);
}

// shares_f32: out[d] = 1 over the number of row d's edges, or 1 if there are none: the weight of each edge in a
// mean. The gradient of a mean weighs an edge by the share of its destination. Grid: rows, striding. Bytes: 12 a
// row; 10^6 rows: 2.5 µs.
KERNEL shares_f32(float *__restrict__ out, const i64 *__restrict__ indptr, i64 rows) {
#pragma unroll 1
  for (i64 d = (i64)blockIdx.x * blockDim.x + threadIdx.x; d < rows; d += (i64)gridDim.x * blockDim.x) {
    i64 n = indptr[d + 1] - indptr[d];
    out[d] = n > 1 ? 1 / (float)n : 1;
  }
}
