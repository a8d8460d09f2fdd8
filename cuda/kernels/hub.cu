// Rows of spmm.cu with more than LONG edges, which that leaves out: the same sums in the same order, hence the same
// bits, by a whole block a row and tile of 32 columns.
//
// All threads load, a row an edge and group of lanes, DEEP rows a thread at once; what they loaded goes to shared
// memory, and while the next are under way the first group adds it up, edge by edge. So a row is as fast as one lane
// adds, four cycles an edge, or as the loads of DEEP·256/width rows take, whichever is slower: a hub of 10^5 edges and
// 256 columns takes 0.6 ms by itself, in place of 17 ms by spmm.cu. Bytes: those of spmm.cu.
//
// Grid: SOME rows times tiles, striding; a block looks which of its rows are long.
#define RESIDENT 2
#include "rowsof.cuh"

#define DEEP 16
#define SOME 32

template <bool WEIGHTED, class T>
struct Hub {
  const int *indices, *via;
  const T *x, *cache;
  const int *slots;
  const float *w;
  const int *at;
  i64 first, cols, heads;
  float *values, *weights;  // shared memory, DEEP·256 of each

  // fetch loads column c of the rows of the edges e, e + step, … below to, and their weights.
  __device__ __forceinline__ void fetch(float (&v)[DEEP], float (&by)[DEEP], i64 e, i64 step, i64 to, i64 c) const {
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
      if (row[j] >= 0) load(rowOf(x, cache, slots, row[j], cols) + c, one);
      v[j] = one.v[0];
    }
  }

  // sum is column c of a row, in the first group of lanes. All threads call it; those behind the last column have
  // column 0.
  __device__ __forceinline__ float sum(i64 from, i64 to, i64 c) const {
    float v[DEEP], by[DEEP], total = 0;
    int width = blockDim.x, groups = blockDim.y, round = DEEP * groups;
    fetch(v, by, from + threadIdx.y, groups, to, c);
    for (i64 base = from; base < to; base += round) {
      __syncthreads();  // what was there has been added
#pragma unroll
      for (int j = 0; j < DEEP; j++) {
        int i = (j * groups + threadIdx.y) * width + threadIdx.x;
        values[i] = v[j];
        if (WEIGHTED) weights[i] = by[j];
      }
      __syncthreads();
      if (base + round < to) fetch(v, by, base + round + threadIdx.y, groups, to, c);
      if (threadIdx.y > 0) continue;
      int n = to - base < round ? (int)(to - base) : round;
#pragma unroll 8
      for (int i = 0; i < n; i++) {
        float one = values[i * width + threadIdx.x];
        if (WEIGHTED) {
          float k = weights[i * width + threadIdx.x];
          total = k != 0 ? total + __fmul_rn(k, one) : total;
        } else
          total += one;
      }
    }
    return total;
  }
};

template <bool WEIGHTED, class T>
__device__ __forceinline__ void hubs(const Hub<WEIGHTED, T> &h, float *__restrict__ out, const i64 *__restrict__ indptr, i64 rows, i64 mean, i64 acc) {
  __shared__ u32 found;
  Tiles<1> tiles(h.cols);
  i64 items = (rows + SOME - 1) / SOME * tiles.tiles;
  for (i64 item = blockIdx.x; item < items; item += gridDim.x) {
    i64 base = item / tiles.tiles * SOME, c = (item % tiles.tiles) * blockDim.x + threadIdx.x;
    int thread = threadIdx.y * blockDim.x + threadIdx.x;
    __syncthreads();  // all have read what was found before
    if (thread < SOME) {
      i64 d = base + thread;
      u32 those = __ballot_sync(~0u, d < rows && indptr[d < rows ? d + 1 : 0] - indptr[d < rows ? d : 0] > LONG);
      if (thread == 0) found = those;
    }
    __syncthreads();
    for (u32 left = found; left; left &= left - 1) {
      i64 d = base + __ffs(left) - 1, from = indptr[d], to = indptr[d + 1];
      float sum = h.sum(from, to, c < h.cols ? c : 0);
      if (threadIdx.y == 0 && c < h.cols) put(out, d * h.cols + c, mean ? sum * (1 / (float)(to - from)) : sum, acc);
    }
  }
}

template <class T>
__device__ __forceinline__ void hubs(float *__restrict__ out, const i64 *__restrict__ indptr, const int *__restrict__ indices, const int *__restrict__ via,
                                     const T *__restrict__ x, const T *__restrict__ cache, const int *__restrict__ slots,
                                     const float *__restrict__ w, const int *__restrict__ at, i64 first, i64 rows, i64 cols, i64 heads, i64 mean, i64 acc) {
  __shared__ float values[DEEP * 256], weights[DEEP * 256];
  if (w)
    hubs(Hub<true, T>{indices, via, x, cache, slots, w, at, first, cols, heads, values, weights}, out, indptr, rows, mean, acc);
  else
    hubs(Hub<false, T>{indices, via, x, cache, slots, w, at, first, cols, heads, values, weights}, out, indptr, rows, mean, acc);
}

KERNEL hub_f32(float *__restrict__ out, const i64 *__restrict__ indptr, const int *__restrict__ indices, const int *__restrict__ via,
       const float *__restrict__ x, const float *__restrict__ cache, const int *__restrict__ slots,
       const float *__restrict__ w, const int *__restrict__ at, i64 first, i64 rows, i64 cols, i64 heads, i64 mean, i64 acc) {
  hubs(out, indptr, indices, via, x, cache, slots, w, at, first, rows, cols, heads, mean, acc);
}
KERNEL hub_f16(float *__restrict__ out, const i64 *__restrict__ indptr, const int *__restrict__ indices, const int *__restrict__ via,
       const u16 *__restrict__ x, const u16 *__restrict__ cache, const int *__restrict__ slots,
       const float *__restrict__ w, const int *__restrict__ at, i64 first, i64 rows, i64 cols, i64 heads, i64 mean, i64 acc) {
  hubs(out, indptr, indices, via, x, cache, slots, w, at, first, rows, cols, heads, mean, acc);
}
