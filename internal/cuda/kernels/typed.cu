// Aggregation over typed edges: out[d,k·cols+c] = Σ over edges e of d of share[e]·coef[type of e,k]·x[row of e,c], for
// each of a few bases k.
//
// The edges of row d are the positions e in [indptr[d], indptr[d+1]), added in ascending order, with the CPU's bits.
// The number of an edge is e - first, where first is indptr[0] of the whole block. types i32 and shares (null: all 1)
// are by number; coef is [types, bases]. An edge of weight 0 adds nothing, whatever x is.
//
// Grid: rows times tiles of bases·cols columns, as in rowsof.cuh, striding; the rows of BATCH edges are loaded at
// once. A basis reads the row of a source again, from a cache. Bytes: 4·cols and 12 an edge, 4·bases·cols and 8 a row.
// 10^6 edges of 64 columns to 10^5 rows with 8 bases: 0.47 GB, 0.1 ms. One lane adds all edges of a column, also those
// of a hub.
#include "rowsof.cuh"

#define BATCH 4

// weight is share·coef of an edge's number for basis k, as the CPU rounds it.
__device__ __forceinline__ float weight(const int *__restrict__ types, const float *__restrict__ shares, const float *__restrict__ coef, i64 n, i64 bases, i64 k) {
  float by = coef[types[n] * bases + k];
  return once((i64)shares) ? __fmul_rn(shares[n], by) : by;
}

KERNEL typed_sum_f32(float *__restrict__ out, const i64 *__restrict__ indptr, const int *__restrict__ indices, const float *__restrict__ x,
                     const int *__restrict__ types, const float *__restrict__ shares, const float *__restrict__ coef, i64 first, i64 rows, i64 cols, i64 bases) {
  Tiles<1> tiles(bases * cols);
  FOR_ROWS(item, live, tiles.items(rows)) {
    i64 d, c;
    if (!live || !tiles.split(item, d, c)) continue;
    i64 from = indptr[d], to = indptr[d + 1], k = c / cols, column = c - k * cols;
    float sum = 0;
    for (i64 next = from; next < to; next += BATCH) {
      float by[BATCH], v[BATCH];
#pragma unroll
      for (int j = 0; j < BATCH; j++) {
        i64 e = next + j < to ? next + j : to - 1;  // past the end: the last edge again, with weight 0
        v[j] = x[indices[e] * cols + column];
        float w = weight(types, shares, coef, e - first, bases, k);
        by[j] = next + j < to ? w : 0;
      }
#pragma unroll
      for (int j = 0; j < BATCH; j++) sum = by[j] != 0 ? sum + __fmul_rn(by[j], v[j]) : sum;
    }
    out[d * bases * cols + c] = sum;
  }
}

// typed_back_f32 is the adjoint of typed_sum_f32 in x: out[u,c] = Σ over the out-edges of u, and over k, of
// share·coef[type,k]·d[destination,k·cols+c], with the transposed block: dst and edge hold the destination and the
// number of each out-edge. Grid: rows times tiles of cols columns, striding. Bytes: 4·bases·cols and 16 an edge,
// 4·cols and 8 a row; as above, with 0.3·10^6 sources: 2.2 GB, 0.45 ms.
KERNEL typed_back_f32(float *__restrict__ out, const i64 *__restrict__ indptr, const int *__restrict__ dst, const int *__restrict__ edge, const float *__restrict__ d,
                      const int *__restrict__ types, const float *__restrict__ shares, const float *__restrict__ coef, i64 rows, i64 cols, i64 bases, i64 acc) {
  Tiles<1> tiles(cols);
  FOR_ROWS(item, live, tiles.items(rows)) {
    i64 u, c;
    if (!live || !tiles.split(item, u, c)) continue;
    float sum = 0;
    for (i64 i = indptr[u], to = indptr[u + 1]; i < to; i++) {
      i64 n = edge[i];
      const float *row = d + dst[i] * bases * cols + c;
      for (i64 k = 0; k < bases; k++) {
        float by = weight(types, shares, coef, n, bases, k);
        sum = by != 0 ? sum + __fmul_rn(by, row[k * cols]) : sum;
      }
    }
    put(out, u * cols + c, sum, acc);
  }
}
