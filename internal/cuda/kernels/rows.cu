// Operations on rows and columns of matrices: broadcast, scale, multiply with each other, copy, add to chosen rows.
//
// Grid: rows as in common.cuh, striding. Bytes: 4 for each element of a matrix that is read or written, including
// the output that acc reads. Rows, columns and their factors are read once and then found in the caches. Times are
// for [2^20, 256].
#include "common.cuh"

// over computes out[c] = f(c) for the columns of one row. A lane computes ROUND of them before it writes the first,
// so that their loads are in flight together.
template <class F>
__device__ __forceinline__ void over(float *out, i64 cols, i64 accumulate, F f) {
  for (i64 c0 = threadIdx.x; c0 < cols; c0 += ROUND * blockDim.x) {
    i64 acc = once(accumulate);
    float v[ROUND], o[ROUND];
#pragma unroll
    for (int k = 0; k < ROUND; k++) {
      i64 c = at(c0, k);
      v[k] = c < cols ? f(c) : 0;
      o[k] = acc && c < cols ? out[c] : 0;
    }
#pragma unroll
    for (int k = 0; k < ROUND; k++) {
      i64 c = at(c0, k);
      if (c < cols) out[c] = acc ? v[k] + o[k] : v[k];
    }
  }
}

// add_row_f32: out[r,:] = row. 1.07 GB, 0.22 ms.
KERNEL add_row_f32(float *__restrict__ out, const float *__restrict__ row, i64 rows, i64 cols, i64 acc) {
  FOR_ROWS(r, live, rows) {
    if (live) over(out + r * cols, cols, acc, [=](i64 c) { return row[c]; });
  }
}

// row_scale_f32: out[r,:] = w[r]·x[r,:]. 2.1 GB, 0.45 ms.
KERNEL row_scale_f32(float *__restrict__ out, const float *__restrict__ x, const float *__restrict__ w, i64 rows, i64 cols, i64 acc) {
  FOR_ROWS(r, live, rows) {
    if (live) over(out + r * cols, cols, acc, [=](i64 c) { return w[r] * x[r * cols + c]; });
  }
}

// col_scale_f32: out[r,c] = w[c]·x[r,c]. 2.1 GB, 0.45 ms.
KERNEL col_scale_f32(float *__restrict__ out, const float *__restrict__ x, const float *__restrict__ w, i64 rows, i64 cols, i64 acc) {
  FOR_ROWS(r, live, rows) {
    if (live) over(out + r * cols, cols, acc, [=](i64 c) { return w[c] * x[r * cols + c]; });
  }
}

// row_dot_f32: out[r] = Σ_c x[r,c]·y[r,c], in double precision; a fixed tree adds the lanes' sums. 2.1 GB, 0.45 ms.
KERNEL row_dot_f32(float *__restrict__ out, const float *__restrict__ x, const float *__restrict__ y, i64 rows, i64 cols, i64 acc) {
  FOR_ROWS(r, live, rows) {
    double sum = 0;
    if (live) FOR_COLS(c, cols) sum += (double)x[r * cols + c] * y[r * cols + c];
    sum = sumLanes(sum, blockDim.x);
    if (live && threadIdx.x == 0) put(out, r, (float)sum, acc);
  }
}

// copy_cols_f32: out[r,c] = x[r,c] for c < cols. out and x point to the first copied column of matrices that are
// outCols and xCols wide. 2.1 GB, 0.45 ms.
KERNEL copy_cols_f32(float *__restrict__ out, i64 outCols, const float *__restrict__ x, i64 xCols, i64 rows, i64 cols, i64 acc) {
  FOR_ROWS(r, live, rows) {
    if (live) over(out + r * outCols, cols, acc, [=](i64 c) { return x[r * xCols + c]; });
  }
}

// add_rows_f32: out[ids[r],:] += x[r,:]. No two ids are the same. 3.2 GB and 4 MB of ids, 0.67 ms.
KERNEL add_rows_f32(float *__restrict__ out, const float *__restrict__ x, const int *__restrict__ ids, i64 rows, i64 cols) {
  FOR_ROWS(r, live, rows) {
    if (live) over(out + ids[r] * cols, cols, 1, [=](i64 c) { return x[r * cols + c]; });
  }
}
