// Gathers rows of a table: out[r,:] = table[ids[r],:] in float32. The table is stored as f32 or f16, and a cache
// may hold some of its rows (see rowsof.cuh).
//
// Grid: rows times tiles, as in rowsof.cuh, striding. A group of lanes has ROUND items in flight, because each waits
// for its row's index first. Kernels whose name ends in x4 read and write four columns at a time. Bytes: 4 an index,
// 4 a slot, and for each element 4 written and 4 (f32) or 2 (f16) read; 10^6 rows of 100 columns in f32: 0.8 GB,
// 0.17 ms, in f16 0.6 GB, 0.13 ms.
#include "rowsof.cuh"

template <int V, class T>
__device__ __forceinline__ void gather(float *__restrict__ out, const T *__restrict__ table, const T *__restrict__ cache, const int *__restrict__ slots,
                                       const int *__restrict__ ids, i64 rows, i64 cols) {
  Tiles<V> tiles(cols);
  i64 items = tiles.items(rows), round = (i64)blockDim.y * ROUND;
  for (i64 base = blockIdx.x * round + threadIdx.y; base < items; base += gridDim.x * round) {
    i64 c[ROUND], to[ROUND];
    int id[ROUND];
    bool has[ROUND];
    const T *from[ROUND];
    Columns<V> v[ROUND];
#pragma unroll
    for (int k = 0; k < ROUND; k++) {
      i64 item = base + k * blockDim.y, r;
      bool live = item < items;
      has[k] = tiles.split(live ? item : 0, r, c[k]) && live;
      to[k] = r * cols + c[k];
      id[k] = ids[r];
    }
#pragma unroll
    for (int k = 0; k < ROUND; k++) from[k] = rowOf(table, cache, slots, id[k], cols) + c[k];
#pragma unroll
    for (int k = 0; k < ROUND; k++)
      if (has[k]) load(from[k], v[k]);
#pragma unroll
    for (int k = 0; k < ROUND; k++)
      if (has[k]) store(out + to[k], v[k]);
  }
}

KERNEL gather_f32(float *__restrict__ out, const float *__restrict__ table, const float *__restrict__ cache,
       const int *__restrict__ slots, const int *__restrict__ ids, i64 rows, i64 cols) {
  gather<1>(out, table, cache, slots, ids, rows, cols);
}
KERNEL gather_f32x4(float *__restrict__ out, const float *__restrict__ table, const float *__restrict__ cache,
       const int *__restrict__ slots, const int *__restrict__ ids, i64 rows, i64 cols) {
  gather<4>(out, table, cache, slots, ids, rows, cols);
}
KERNEL gather_f16(float *__restrict__ out, const u16 *__restrict__ table, const u16 *__restrict__ cache,
       const int *__restrict__ slots, const int *__restrict__ ids, i64 rows, i64 cols) {
  gather<1>(out, table, cache, slots, ids, rows, cols);
}
KERNEL gather_f16x4(float *__restrict__ out, const u16 *__restrict__ table, const u16 *__restrict__ cache,
       const int *__restrict__ slots, const int *__restrict__ ids, i64 rows, i64 cols) {
  gather<4>(out, table, cache, slots, ids, rows, cols);
}
