// Aggregation as in spmm.cu over rows of more than LONG edges, which spmm.cu leaves out. hub.cuh says how a block
// handles a row. Edges are added in the same order, so results have the same bits. Bytes: as spmm.cu, 4·cols and 4
// to 12 an edge; 10^5 edges of 256 columns to one row: 0.1 GB, 21 µs for memory, but 0.6 ms because one lane adds
// them in order.
#include "hub.cuh"

template <bool WEIGHTED, class T>
struct Sum {
  static const bool TWO = WEIGHTED;

  const int *indices, *via;
  const T *x, *cache;
  const int *slots;
  const float *w;
  const int *at;
  i64 first, cols, heads, c;
  float total;

  // load reads column c of the rows of the edges e, e + step, … below to, and the edges' weights.
  __device__ __forceinline__ void load(float (&v)[DEEP], float (&by)[DEEP], i64 e, i64 step, i64 to) const {
    i64 row[DEEP];
#pragma unroll
    for (int j = 0; j < DEEP; j++) {
      i64 one = e + j * step;
      row[j] = one >= to ? -1 : indices ? indices[one] : one - first;
      if (WEIGHTED) by[j] = one >= to ? 0 : w[(at ? at[one] : one - first) * heads + (heads > 1 ? c / (cols / heads) : 0)];
    }
    if (via)
#pragma unroll
      for (int j = 0; j < DEEP; j++) row[j] = row[j] < 0 ? -1 : via[row[j]];
#pragma unroll
    for (int j = 0; j < DEEP; j++) {
      Columns<1> one = {};
      if (row[j] >= 0) ::load(rowOf(x, cache, slots, row[j], cols) + c, one);
      v[j] = one.v[0];
    }
  }

  __device__ __forceinline__ void next(float v, float by, i64) {
    if (WEIGHTED)
      total = by != 0 ? total + __fmul_rn(by, v) : total;
    else
      total += v;
  }
};

template <bool WEIGHTED, class T>
__device__ __forceinline__ void hubs(Sum<WEIGHTED, T> sum, const Room &room, float *__restrict__ out, const i64 *__restrict__ indptr,
                                     const int *__restrict__ list, i64 n, i64 mean, i64 acc) {
  longRows(list, n, indptr, sum.cols, [&](i64 d, i64 from, i64 to, i64 c, bool has) {
    sum.c = c;
    sum.total = 0;
    inOrder(sum, room, from, to);
    if (threadIdx.y == 0 && has) put(out, d * sum.cols + c, mean ? sum.total * (1 / (float)(to - from)) : sum.total, acc);
  });
}

template <class T>
__device__ __forceinline__ void hubs(float *__restrict__ out, const i64 *__restrict__ indptr, const int *__restrict__ indices, const int *__restrict__ via,
                                     const T *__restrict__ x, const T *__restrict__ cache, const int *__restrict__ slots,
                                     const float *__restrict__ w, const int *__restrict__ at, i64 first, const int *__restrict__ list, i64 n, i64 cols, i64 heads,
                                     i64 mean, i64 acc) {
  __shared__ float values[DEEP * 256], weights[DEEP * 256];
  Room room = {values, weights};
  if (w)
    hubs(Sum<true, T>{indices, via, x, cache, slots, w, at, first, cols, heads}, room, out, indptr, list, n, mean, acc);
  else
    hubs(Sum<false, T>{indices, via, x, cache, slots, w, at, first, cols, heads}, room, out, indptr, list, n, mean, acc);
}

KERNEL hub_f32(float *__restrict__ out, const i64 *__restrict__ indptr, const int *__restrict__ indices, const int *__restrict__ via,
       const float *__restrict__ x, const float *__restrict__ cache, const int *__restrict__ slots,
       const float *__restrict__ w, const int *__restrict__ at, i64 first, const int *__restrict__ list, i64 n, i64 cols, i64 heads,
       i64 mean, i64 acc) {
  hubs(out, indptr, indices, via, x, cache, slots, w, at, first, list, n, cols, heads, mean, acc);
}
KERNEL hub_f16(float *__restrict__ out, const i64 *__restrict__ indptr, const int *__restrict__ indices, const int *__restrict__ via,
       const u16 *__restrict__ x, const u16 *__restrict__ cache, const int *__restrict__ slots,
       const float *__restrict__ w, const int *__restrict__ at, i64 first, const int *__restrict__ list, i64 n, i64 cols, i64 heads,
       i64 mean, i64 acc) {
  hubs(out, indptr, indices, via, x, cache, slots, w, at, first, list, n, cols, heads, mean, acc);
}
