// Normalisations of rows, with their gradients: log-softmax, length 1, mean 0 and variance 1.
//
// Grid: rows as in held.cuh, striding. Each lane sums its columns, and a fixed tree adds the lanes' sums. Sums of
// squares, and what is divided by a length, are in double precision. Other sums are in single precision for HELD
// columns at a time: to convert every element takes about as long as its memory accesses. Bytes: 8 an element
// forward; 12 backward, 16 with acc; [2^18, 256] forward: 0.54 GB, 0.11 ms.
#include "held.cuh"

// log_softmax_f32: y[r,c] = x[r,c] - log Σ_j e^x[r,j]. The row's maximum is subtracted first, so no exponential
// overflows.
KERNEL log_softmax_f32(float *__restrict__ y, const float *__restrict__ x, i64 rows, i64 cols) {
  Held h(cols, (u64)y | (u64)x);
  FOR_ROWS(r, live, rows) {
    const float *in = x + r * cols;
    float v[HELD], top = -INFINITY;
    h.each([&](i64 c0) {
      h.read(v, in, c0, live, -INFINITY);
      FOR_HELD(j) top = fmaxf(top, v[j]);
    });
    top = maxLanes(top, blockDim.x);
    double sum = 0;
    h.each([&](i64 c0) {
      h.again(v, in, c0, live, -INFINITY);
      float part = 0;
      FOR_HELD(j) part += expf(v[j] - top);
      sum += part;
    });
    float log = logf(sumLanes((float)sum, blockDim.x));
    h.each([&](i64 c0) {
      h.again(v, in, c0, live, 0);
      FOR_HELD(j) v[j] = v[j] - top - log;
      h.write(y + r * cols, c0, live, v, 0);
    });
  }
}

// log_softmax_grad_f32: dx[r,c] = dy[r,c] - e^y[r,c]·Σ_j dy[r,j].
KERNEL log_softmax_grad_f32(float *__restrict__ dx, const float *__restrict__ dy, const float *__restrict__ y, i64 rows, i64 cols, i64 acc) {
  Held h(cols, (u64)dx | (u64)dy | (u64)y);
  FOR_ROWS(r, live, rows) {
    float g[HELD], v[HELD];
    double sum = 0;
    h.each([&](i64 c0) {
      h.read(g, dy + r * cols, c0, live, 0);
      h.read(v, y + r * cols, c0, live, 0);
      float part = 0;
      FOR_HELD(j) part += g[j];
      sum += part;
    });
    float all = sumLanes((float)sum, blockDim.x);
    h.each([&](i64 c0) {
      h.again(g, dy + r * cols, c0, live, 0);
      h.again(v, y + r * cols, c0, live, 0);
      FOR_HELD(j) g[j] -= expf(v[j]) * all;
      h.write(dx + r * cols, c0, live, g, acc);
    });
  }
}

#define L2_EPS 1e-12  // tensor.L2Eps

// l2_normalize_f32: y[r,:] = x[r,:] / max(‖x[r,:]‖, L2_EPS), norm[r] = ‖x[r,:]‖.
KERNEL l2_normalize_f32(float *__restrict__ y, float *__restrict__ norm, const float *__restrict__ x, i64 rows, i64 cols) {
  Held h(cols, (u64)y | (u64)x);
  FOR_ROWS(r, live, rows) {
    const float *in = x + r * cols;
    float v[HELD];
    double sum = 0;
    h.each([&](i64 c0) {
      h.read(v, in, c0, live, 0);
      FOR_HELD(j) sum += (double)v[j] * v[j];
    });
    double n = sqrt(sumLanes(sum, blockDim.x)), inv = 1 / fmax(n, L2_EPS);
    if (live && threadIdx.x == 0) norm[r] = (float)n;
    h.each([&](i64 c0) {
      h.again(v, in, c0, live, 0);
      FOR_HELD(j) v[j] = (float)(v[j] * inv);
      h.write(y + r * cols, c0, live, v, 0);
    });
  }
}

// l2_normalize_grad_f32: dx[r,:] = (dy[r,:] - y[r,:]·Σ_c dy[r,c]·y[r,c]) / ‖x[r,:]‖. If the length is at most
// L2_EPS, it counts as the constant L2_EPS.
KERNEL l2_normalize_grad_f32(float *__restrict__ dx, const float *__restrict__ dy, const float *__restrict__ y, const float *__restrict__ norm, i64 rows, i64 cols, i64 acc) {
  Held h(cols, (u64)dx | (u64)dy | (u64)y);
  FOR_ROWS(r, live, rows) {
    float g[HELD], v[HELD];
    double along = 0, n = live ? norm[r] : 0;
    h.each([&](i64 c0) {
      h.read(g, dy + r * cols, c0, live, 0);
      h.read(v, y + r * cols, c0, live, 0);
      FOR_HELD(j) along += (double)g[j] * v[j];
    });
    along = sumLanes(along, blockDim.x);
    if (n <= L2_EPS) along = 0;
    double inv = 1 / fmax(n, L2_EPS);
    h.each([&](i64 c0) {
      h.again(g, dy + r * cols, c0, live, 0);
      h.again(v, y + r * cols, c0, live, 0);
      FOR_HELD(j) g[j] = (float)((g[j] - along * v[j]) * inv);
      h.write(dx + r * cols, c0, live, g, acc);
    });
  }
}

// row_norm_f32: y[r,:] = (x[r,:] - mean)·inv[r], inv[r] = 1/√(variance + eps), with the row's mean and variance. It
// first takes a rounded mean m, and corrects it by the mean of x[r,:] - m, so a large mean costs no digits.
// The sum of a row must be finite in float32.
KERNEL row_norm_f32(float *__restrict__ y, float *__restrict__ inv, const float *__restrict__ x, i64 rows, i64 cols, float eps) {
  double per = 1.0 / (cols > 0 ? cols : 1);
  Held h(cols, (u64)y | (u64)x);
  FOR_ROWS(r, live, rows) {
    const float *in = x + r * cols;
    float v[HELD];
    double sum = 0;
    h.each([&](i64 c0) {
      h.read(v, in, c0, live, 0);
      float part = 0;
      FOR_HELD(j) part += v[j];
      sum += part;
    });
    float m = (float)(sumLanes((float)sum, blockDim.x) * per);
    double off = 0, square = 0;
    h.each([&](i64 c0) {
      h.again(v, in, c0, live, 0);
      int n = h.left(c0, live);
      float part = 0;
      FOR_HELD(j) {
        v[j] = h.offset(j) < n ? v[j] - m : 0;
        part += v[j];
        square += (double)v[j] * v[j];
      }
      off += part;
    });
    off = sumLanes((float)off, blockDim.x) * per;
    double s = rsqrt(sumLanes(square, blockDim.x) * per - off * off + eps);
    if (live && threadIdx.x == 0) inv[r] = (float)s;
    float rest = (float)off, by = (float)s;
    h.each([&](i64 c0) {
      if (h.again(v, in, c0, live, 0)) FOR_HELD(j) v[j] -= m;
      FOR_HELD(j) v[j] = (v[j] - rest) * by;
      h.write(y + r * cols, c0, live, v, 0);
    });
  }
}

// row_norm_grad_f32: dx[r,:] = inv[r]·(dy[r,:] - mean(dy[r,:]) - y[r,:]·mean(dy[r,:]·y[r,:])).
KERNEL row_norm_grad_f32(float *__restrict__ dx, const float *__restrict__ dy, const float *__restrict__ y, const float *__restrict__ inv, i64 rows, i64 cols, i64 acc) {
  double per = 1.0 / (cols > 0 ? cols : 1);
  Held h(cols, (u64)dx | (u64)dy | (u64)y);
  FOR_ROWS(r, live, rows) {
    float g[HELD], v[HELD], by = live ? inv[r] : 0;
    double sum = 0, along = 0;
    h.each([&](i64 c0) {
      h.read(g, dy + r * cols, c0, live, 0);
      h.read(v, y + r * cols, c0, live, 0);
      float a = 0, b = 0;
      FOR_HELD(j) a += g[j], b += g[j] * v[j];
      sum += a;
      along += b;
    });
    float mean = (float)(sumLanes((float)sum, blockDim.x) * per), slope = (float)(sumLanes((float)along, blockDim.x) * per);
    h.each([&](i64 c0) {
      h.again(g, dy + r * cols, c0, live, 0);
      h.again(v, y + r * cols, c0, live, 0);
      FOR_HELD(j) g[j] = by * (g[j] - mean - v[j] * slope);
      h.write(dx + r * cols, c0, live, g, acc);
    });
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
