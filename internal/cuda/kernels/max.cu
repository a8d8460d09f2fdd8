// Maximum over the edges of each destination, column by column, and its gradients. Indices are as in spmm.cu.
//
// Grid: rows times tiles, as in rowsof.cuh, striding. Bytes: 4·cols and 4 an edge, 8·cols and 8 a row with arg;
// max_grad_f32 8·cols and 8 an edge. 10^6 edges of 256 columns to 10^5 rows: 1.24 GB, 0.26 ms, and 2.1 GB, 0.45 ms.
// hubmax.cu handles rows of more than LONG edges, except for segment_grad_f32, which handles all rows.
#include "rowsof.cuh"

// max_f32: out[d,c] = the greatest x[row of e, c] over the edges e of d, or 0 without edges. Of equal values, the
// first wins. NaN beats every number, and of several NaNs the last wins. arg, unless null, gets the winner's
// number, or -1 without edges.
KERNEL max_f32(float *__restrict__ out, u32 *__restrict__ arg, const i64 *__restrict__ indptr, const int *__restrict__ indices,
               const float *__restrict__ x, i64 first, i64 rows, i64 cols, i64 acc) {
  Tiles<1> tiles(cols);
  FOR_ROWS(item, live, tiles.items(rows)) {
    i64 d, c;
    if (!live || !tiles.split(item, d, c)) continue;
    i64 from = indptr[d], to = indptr[d + 1], winner = first - 1;
    if (to - from > LONG) continue;
    float best = 0;
#pragma unroll 4
    for (i64 e = from; e < to; e++) {
      float v = x[(indices ? indices[e] : e - first) * cols + c];
      if (e == from || v > best || v != v) {
        best = v;
        winner = e;
      }
    }
    put(out, d * cols + c, best, acc);
    if (arg) arg[d * cols + c] = (u32)(winner - first);
  }
}

// max_grad_f32: dx[s,c] = Σ dout[dst[i],c] over the edges i of s in the transposed block, in ascending order, whose
// number edge[i] is arg[dst[i],c].
KERNEL max_grad_f32(float *__restrict__ dx, const float *__restrict__ dout, const u32 *__restrict__ arg, const i64 *__restrict__ indptr,
                    const int *__restrict__ dst, const int *__restrict__ edge, i64 rows, i64 cols, i64 acc) {
  Tiles<1> tiles(cols);
  FOR_ROWS(item, live, tiles.items(rows)) {
    i64 s, c;
    if (!live || !tiles.split(item, s, c)) continue;
    i64 from = indptr[s], to = indptr[s + 1];
    if (to - from > LONG) continue;
    float sum = 0;
#pragma unroll 4
    for (i64 i = from; i < to; i++) {
      i64 at = dst[i] * cols + c;
      if (arg[at] == (u32)edge[i]) sum += dout[at];
    }
    put(dx, s * cols + c, sum, acc);
  }
}

// segment_grad_f32: dmsg[e,c] = dout[d,c] for each edge e of d, divided by the number of d's edges if mean is set.
// If arg is not null, dmsg[e,c] is 0 unless e is arg[d,c]. Bytes: 4·cols an edge, 4·cols (8 with arg) a row; 10^6
// edges of 256 columns: 1.1 GB, 0.24 ms.
KERNEL segment_grad_f32(float *__restrict__ dmsg, const float *__restrict__ dout, const u32 *__restrict__ arg, const i64 *__restrict__ indptr,
                        i64 first, i64 rows, i64 cols, i64 mean, i64 acc) {
  Tiles<1> tiles(cols);
  FOR_ROWS(item, live, tiles.items(rows)) {
    i64 d, c;
    if (!live || !tiles.split(item, d, c)) continue;
    i64 from = indptr[d] - first, to = indptr[d + 1] - first;
    float g = dout[d * cols + c];
    if (mean && to - from > 1) g *= 1 / (float)(to - from);
    u32 only = arg ? arg[d * cols + c] : 0;
#pragma unroll 1
    for (i64 e = from; e < to; e++) put(dmsg, e * cols + c, !arg || only == (u32)e ? g : 0, acc);
  }
}
