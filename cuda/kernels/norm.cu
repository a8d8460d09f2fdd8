// Normalisations of rows, with their gradients: log-softmax, length 1, mean 0 and variance 1.
//
// Grid: rows as in common.cuh, striding. Sums are in double precision: each lane sums its columns, and a fixed tree
// adds the lanes' sums. A row is read two or three times, after the first from the caches. Bytes: 8 an element
// forward; 12 backward, 16 with acc; [2^18, 256] forward: 0.54 GB, 0.11 ms.
#include "common.cuh"

// log_softmax_f32: y[r,c] = x[r,c] - log Σ_j e^x[r,j]. The row's maximum is subtracted first, so no exponential
// overflows.
KERNEL log_softmax_f32(float *__restrict__ y, const float *__restrict__ x, i64 rows, i64 cols) {
  FOR_ROWS(r, live, rows) {
    const float *in = x + r * cols;
    float top = -INFINITY;
    if (live) FOR_COLS(c, cols) top = fmaxf(top, in[c]);
    top = maxLanes(top, blockDim.x);
    double sum = 0;
    if (live) FOR_COLS(c, cols) sum += expf(in[c] - top);
    float log = logf((float)sumLanes(sum, blockDim.x));
    if (live) FOR_COLS(c, cols) y[r * cols + c] = in[c] - top - log;
  }
}

// log_softmax_grad_f32: dx[r,c] = dy[r,c] - e^y[r,c]·Σ_j dy[r,j].
KERNEL log_softmax_grad_f32(float *__restrict__ dx, const float *__restrict__ dy, const float *__restrict__ y, i64 rows, i64 cols, i64 acc) {
  FOR_ROWS(r, live, rows) {
    double sum = 0;
    if (live) FOR_COLS(c, cols) sum += dy[r * cols + c];
    float all = (float)sumLanes(sum, blockDim.x);
    if (live) FOR_COLS(c, cols) {
      i64 i = r * cols + c;
      put(dx, i, dy[i] - expf(y[i]) * all, acc);
    }
  }
}

#define L2_EPS 1e-12  // tensor.L2Eps

// l2_normalize_f32: y[r,:] = x[r,:] / max(‖x[r,:]‖, L2_EPS), norm[r] = ‖x[r,:]‖.
KERNEL l2_normalize_f32(float *__restrict__ y, float *__restrict__ norm, const float *__restrict__ x, i64 rows, i64 cols) {
  FOR_ROWS(r, live, rows) {
    const float *in = x + r * cols;
    double sum = 0;
    if (live) FOR_COLS(c, cols) sum += (double)in[c] * in[c];
    double n = sqrt(sumLanes(sum, blockDim.x)), inv = 1 / fmax(n, L2_EPS);
    if (live && threadIdx.x == 0) norm[r] = (float)n;
    if (live) FOR_COLS(c, cols) y[r * cols + c] = (float)(in[c] * inv);
  }
}

// l2_normalize_grad_f32: dx[r,:] = (dy[r,:] - y[r,:]·Σ_c dy[r,c]·y[r,c]) / ‖x[r,:]‖. If the length is at most
// L2_EPS, it counts as the constant L2_EPS.
KERNEL l2_normalize_grad_f32(float *__restrict__ dx, const float *__restrict__ dy, const float *__restrict__ y, const float *__restrict__ norm, i64 rows, i64 cols, i64 acc) {
  FOR_ROWS(r, live, rows) {
    double along = 0, n = live ? norm[r] : 0;
    if (live && n > L2_EPS) FOR_COLS(c, cols) along += (double)dy[r * cols + c] * y[r * cols + c];
    along = sumLanes(along, blockDim.x);
    double inv = 1 / fmax(n, L2_EPS);
    if (live) FOR_COLS(c, cols) {
      i64 i = r * cols + c;
      put(dx, i, (float)((dy[i] - along * y[i]) * inv), acc);
    }
  }
}

// row_norm_f32: y[r,:] = (x[r,:] - mean)·inv[r], inv[r] = 1/√(variance + eps), with the row's mean and variance.
KERNEL row_norm_f32(float *__restrict__ y, float *__restrict__ inv, const float *__restrict__ x, i64 rows, i64 cols, float eps) {
  double n = cols > 0 ? cols : 1;
  FOR_ROWS(r, live, rows) {
    const float *in = x + r * cols;
    double sum = 0, square = 0;
    if (live) FOR_COLS(c, cols) sum += in[c];
    double mean = sumLanes(sum, blockDim.x) / n;
    if (live) FOR_COLS(c, cols) square += (in[c] - mean) * (in[c] - mean);
    double s = 1 / sqrt(sumLanes(square, blockDim.x) / n + eps);
    if (live && threadIdx.x == 0) inv[r] = (float)s;
    if (live) FOR_COLS(c, cols) y[r * cols + c] = (float)((in[c] - mean) * s);
  }
}

// row_norm_grad_f32: dx[r,:] = inv[r]·(dy[r,:] - mean(dy[r,:]) - y[r,:]·mean(dy[r,:]·y[r,:])).
KERNEL row_norm_grad_f32(float *__restrict__ dx, const float *__restrict__ dy, const float *__restrict__ y, const float *__restrict__ inv, i64 rows, i64 cols, i64 acc) {
  double n = cols > 0 ? cols : 1;
  FOR_ROWS(r, live, rows) {
    double sum = 0, along = 0;
    if (live) FOR_COLS(c, cols) {
      i64 i = r * cols + c;
      sum += dy[i];
      along += (double)dy[i] * y[i];
    }
    sum = sumLanes(sum, blockDim.x) / n;
    along = sumLanes(along, blockDim.x) / n;
    if (live) FOR_COLS(c, cols) {
      i64 i = r * cols + c;
      put(dx, i, (float)(inv[r] * (dy[i] - sum - y[i] * along)), acc);
    }
  }
}

// col_means_f32: mean[c] = sum[c]/n, minus[c] = -mean[c]. Grid: a thread a column, striding. It takes the time of a
// launch. Bytes: 12 a column; 256 columns: 3 KB, 1 ns.
KERNEL col_means_f32(float *__restrict__ mean, float *__restrict__ minus, const float *__restrict__ sum, i64 cols, i64 n) {
  float by = (float)n;
  for (i64 c = (i64)blockIdx.x * blockDim.x + threadIdx.x; c < cols; c += (i64)gridDim.x * blockDim.x) {
    float m = sum[c] / by;
    mean[c] = m;
    minus[c] = -m;
  }
}

// col_inverses_f32: variance[c] = sum[c]/n, inv[c] = 1/√(variance[c] + eps). Grid: as col_means_f32. It takes the
// time of a launch. Bytes: 12 a column; 256 columns: 3 KB, 1 ns.
KERNEL col_inverses_f32(float *__restrict__ variance, float *__restrict__ inv, const float *__restrict__ sum, i64 cols, i64 n, double eps) {
  float by = (float)n;
  for (i64 c = (i64)blockIdx.x * blockDim.x + threadIdx.x; c < cols; c += (i64)gridDim.x * blockDim.x) {
    float v = sum[c] / by;
    variance[c] = v;
    inv[c] = (float)(1 / sqrt((double)v + eps));
  }
}
// track_f32 updates running statistics: y[i] = keep·y[i] + share·x[i], in double precision. Each product is
// rounded, as on the CPU. Grid: a thread an element, striding. Bytes: 12 an element; 256 elements: 3 KB, 1 ns.
KERNEL track_f32(float *__restrict__ y, const float *__restrict__ x, i64 n, double keep, double share) {
  for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (i64)gridDim.x * blockDim.x)
    y[i] = (float)__dadd_rn(__dmul_rn(keep, (double)y[i]), __dmul_rn(share, (double)x[i]));
}
