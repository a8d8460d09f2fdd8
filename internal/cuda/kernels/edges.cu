// Operations of attention on each edge: the dot product of two rows, and the softmax over the edges of a
// destination. hubedges.cu handles destinations of more than LONG edges.
#include "dots.cuh"

// edge_dot_f32: dw[e,k] = Σ over the columns c of head k of dout[d,c]·x[indices[e],c], for each edge e of d.
//
// Grid: pairs (row, head) by groups of lanes as in common.cuh, for cols/heads columns; a fixed tree adds the lanes'
// sums. edge_dot_f32x4 reads four columns at a time; it requires that heads have a multiple of 4 columns and that
// the matrices are aligned. Bytes: 4·cols, 4·heads and 4 an edge, 4·cols a row. 10^6 edges of 256 columns: 1.06 GB,
// 0.22 ms.
template <int V>
__device__ __forceinline__ void edgeDot(float *__restrict__ dw, const i64 *__restrict__ indptr, const int *__restrict__ indices, const float *__restrict__ dout,
                                        const float *__restrict__ x, i64 first, i64 rows, i64 cols, i64 heads, i64 acc) {
  u32 group = groupMask();  // the groups of a warp have different numbers of edges
  FOR_ROWS(item, live, rows * heads) {
    if (!live) continue;
    i64 d = item / heads, k = item - d * heads, from = indptr[d], to = indptr[d + 1];
    if (to - from > LONG) continue;
    const float *g = dout + d * cols + k * (cols / heads);
    for (i64 next = from; next < to; next += BATCH) dots<V>(dw, indices, g, x, next, to, first, cols, heads, k, group, acc);
  }
}

KERNEL edge_dot_f32(float *__restrict__ dw, const i64 *__restrict__ indptr, const int *__restrict__ indices, const float *__restrict__ dout,
                    const float *__restrict__ x, i64 first, i64 rows, i64 cols, i64 heads, i64 acc) {
  edgeDot<1>(dw, indptr, indices, dout, x, first, rows, cols, heads, acc);
}
KERNEL edge_dot_f32x4(float *__restrict__ dw, const i64 *__restrict__ indptr, const int *__restrict__ indices, const float *__restrict__ dout,
                      const float *__restrict__ x, i64 first, i64 rows, i64 cols, i64 heads, i64 acc) {
  edgeDot<4>(dw, indptr, indices, dout, x, first, rows, cols, heads, acc);
}

// For the softmax, a lane handles a column of a destination. It takes the edges in ascending order, N at a time, and
// keeps them in registers if there are no more. More edges are read again in each pass, from the caches. Grid:
// destinations as in common.cuh. A warp thus reads N edges of 32/width destinations at once.
#define UNROLLED(j, n) _Pragma("unroll") for (int j = 0; j < n; j++)

// Edges are the edges of a destination, in a column of a matrix of cols columns: n elements from number `at` on.
template <int N>
struct Edges {
  i64 at, cols;
  int n;

  template <class F>
  __device__ __forceinline__ void each(F f) const {
#pragma unroll 1
    for (int e = 0; e < n; e += N) f(e);
  }
  // read sets v to the elements from the e-th edge on, and to none past the last edge.
  __device__ __forceinline__ void read(float *v, const float *x, int e, float none) const {
    x += at + e * cols;
    UNROLLED(j, N) {
      v[j] = e + j < n ? *x : none;
      x += cols;
    }
  }
  // again reads elements in a later pass, unless v still holds all. It returns whether it read.
  __device__ __forceinline__ bool again(float *v, const float *x, int e, float none) const {
    if (n <= N) return false;
    read(v, x, e, none);
    return true;
  }
  __device__ __forceinline__ void write(float *y, int e, float *v, i64 acc) const {
    if (acc) {
      float old[N];
      read(old, y, e, 0);
      UNROLLED(j, N) v[j] += old[j];
    }
    y += at + e * cols;
    UNROLLED(j, N) {
      if (e + j < n) *y = v[j];
      y += cols;
    }
  }
};

// eachColumn calls f for the Edges<N> of the lane's destinations and columns.
template <int N, class F>
__device__ __forceinline__ void eachColumn(const i64 *__restrict__ indptr, i64 first, i64 rows, i64 cols, F f) {
  FOR_ROWS(d, live, rows) {
    if (!live) continue;
    i64 from = indptr[d], n = indptr[d + 1] - from;
    if (n > LONG) continue;
    FOR_COLS(c, cols) f(Edges<N>{(from - first) * cols + c, cols, (int)n});
  }
}

// edge_softmax_f32: y[e,k] = e^x[e,k] / Σ over the edges j of e's destination of e^x[j,k]. The greatest x is
// subtracted first, so no exponential overflows. Bytes: 8·cols an edge, 8 a destination; 10^7 edges of 4 heads:
// 0.32 GB, 67 µs.
KERNEL edge_softmax_f32(float *__restrict__ y, const i64 *__restrict__ indptr, const float *__restrict__ x, i64 first, i64 rows, i64 cols) {
  eachColumn<16>(indptr, first, rows, cols, [=](const Edges<16> &edges) {
    float v[16], top = -INFINITY;
    edges.each([&](int e) {
      edges.read(v, x, e, -INFINITY);
      UNROLLED(j, 16) top = fmaxf(top, v[j]);
    });
    double sum = 0;
    edges.each([&](int e) {
      edges.again(v, x, e, -INFINITY);
      float part = 0;
      UNROLLED(j, 16) {
        v[j] = expf(v[j] - top);
        part += v[j];
      }
      sum += part;
    });
    float inv = 1 / (float)sum;
    edges.each([&](int e) {
      if (edges.again(v, x, e, -INFINITY)) UNROLLED(j, 16) v[j] = expf(v[j] - top);
      UNROLLED(j, 16) v[j] *= inv;
      edges.write(y, e, v, 0);
    });
  });
}

// edge_softmax_grad_f32: dx[e,k] = y[e,k]·(dy[e,k] - Σ over the edges j of e's destination of dy[j,k]·y[j,k]).
// Bytes: 12·cols an edge, 8 a destination; 10^7 edges of 4 heads: 0.48 GB, 0.1 ms.
KERNEL edge_softmax_grad_f32(float *__restrict__ dx, const i64 *__restrict__ indptr, const float *__restrict__ dy, const float *__restrict__ y, i64 first,
                             i64 rows, i64 cols, i64 acc) {
  eachColumn<8>(indptr, first, rows, cols, [=](const Edges<8> &edges) {
    float g[8], v[8];
    double sum = 0;
    edges.each([&](int e) {
      edges.read(g, dy, e, 0);
      edges.read(v, y, e, 0);
      float part = 0;
      UNROLLED(j, 8) part += g[j] * v[j];
      sum += part;
    });
    float along = (float)sum;
    edges.each([&](int e) {
      edges.again(g, dy, e, 0);
      edges.again(v, y, e, 0);
      UNROLLED(j, 8) g[j] = v[j] * (g[j] - along);
      edges.write(dx, e, g, acc);
    });
  });
}
