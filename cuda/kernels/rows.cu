// Rows and columns of matrices: broadcast, scaled, multiplied with each other, copied.
//
// Grid: rows as in common.cuh, striding. Bytes: 4 for each element of a matrix that is read or written, acc's
// too; rows, columns and their factors are read once and then found in the caches. Times are for [2^20, 256].
#include "common.cuh"

// add_row_f32: out[r,:] = row. 1.07 GB, 0.22 ms.
KERNEL add_row_f32(float *__restrict__ out, const float *__restrict__ row, i64 rows, i64 cols, i64 acc) {
  FOR_ROWS(r, live, rows) {
    if (live) FOR_COLS(c, cols) put(out, r * cols + c, row[c], acc);
  }
}

// row_scale_f32: out[r,:] = w[r]·x[r,:]. 2.1 GB, 0.45 ms.
KERNEL row_scale_f32(float *__restrict__ out, const float *__restrict__ x, const float *__restrict__ w, i64 rows, i64 cols, i64 acc) {
  FOR_ROWS(r, live, rows) {
    if (live) FOR_COLS(c, cols) put(out, r * cols + c, w[r] * x[r * cols + c], acc);
  }
}

// col_scale_f32: out[r,c] = w[c]·x[r,c]. 2.1 GB, 0.45 ms.
KERNEL col_scale_f32(float *__restrict__ out, const float *__restrict__ x, const float *__restrict__ w, i64 rows, i64 cols, i64 acc) {
  FOR_ROWS(r, live, rows) {
    if (live) FOR_COLS(c, cols) put(out, r * cols + c, w[c] * x[r * cols + c], acc);
  }
}

// row_dot_f32: out[r] = Σ_c x[r,c]·y[r,c], in double precision and the lanes' tree. 2.1 GB,
// 0.45 ms.
KERNEL row_dot_f32(float *__restrict__ out, const float *__restrict__ x, const float *__restrict__ y, i64 rows, i64 cols, i64 acc) {
  FOR_ROWS(r, live, rows) {
    double sum = 0;
    if (live) FOR_COLS(c, cols) sum += (double)x[r * cols + c] * y[r * cols + c];
    sum = sumLanes(sum, blockDim.x);
    if (live && threadIdx.x == 0) put(out, r, (float)sum, acc);
  }
}

// copy_cols_f32: out[r,c] = x[r,c] for c < cols, of matrices outCols and xCols wide; both begin at their
// first column that takes part. 2.1 GB, 0.45 ms.
KERNEL copy_cols_f32(float *__restrict__ out, i64 outCols, const float *__restrict__ x, i64 xCols, i64 rows, i64 cols, i64 acc) {
  FOR_ROWS(r, live, rows) {
    if (live) FOR_COLS(c, cols) put(out, r * outCols + c, x[r * xCols + c], acc);
  }
}

// mask_f32: out[r,c] = x[r,c]·scale where the mask's bit is set (bit c%8 of byte r·⌈cols/8⌉ + c/8), else 0
// whatever x. out may be x. 2.2 GB, 0.45 ms.
KERNEL mask_f32(float *out, const float *x, const u8 *__restrict__ mask, i64 rows, i64 cols, float scale, i64 acc) {
  i64 width = (cols + 7) / 8;
  FOR_ROWS(r, live, rows) {
    if (live) FOR_COLS(c, cols) {
      bool keep = mask[r * width + c / 8] >> (c & 7) & 1;
      put(out, r * cols + c, keep ? x[r * cols + c] * scale : 0, acc);
    }
  }
}
