// Gathers rows of a table: out[r,:] = table[ids[r],:] in float32. The table is stored as f32 or f16, and a cache
// may hold some of its rows (see rowsof.cuh).
//
// Grid: rows times tiles, as in rowsof.cuh, striding. Kernels whose name ends in x4 read and write four columns at
// a time. Bytes: 4 an index, 4 a slot, and for each element 4 written and 4 (f32) or 2 (f16) read; 10^6 rows of 100
// columns in f32: 0.8 GB, 0.17 ms, in f16 0.6 GB, 0.13 ms.
#include "rowsof.cuh"

template <int V, class T>
__device__ __forceinline__ void gather(float *__restrict__ out, const T *__restrict__ table, const T *__restrict__ cache, const int *__restrict__ slots,
                                       const int *__restrict__ ids, i64 rows, i64 cols) {
  Tiles<V> tiles(cols);
  FOR_ROWS(item, live, tiles.items(rows)) {
    i64 r, c;
    if (!live || !tiles.split(item, r, c)) continue;
    Columns<V> v;
    load(rowOf(table, cache, slots, ids[r], cols) + c, v);
    store(out + r * cols + c, v);
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
