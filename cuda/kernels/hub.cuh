// Aggregation over rows of more than LONG edges, in the order of the edges. A block handles a row and a tile of 32
// columns.
//
// All threads load: a group of lanes loads the row of one edge, and each thread has DEEP rows in flight. The loaded
// values go to shared memory. While the next loads are in flight, the first group consumes the values edge by edge.
// A row takes the longer of two times: that of one lane's additions, four cycles an edge, and that of loading
// DEEP·256/width rows at a time. A hub of 10^5 edges and 256 columns takes 0.6 ms by itself; a group of lanes,
// which has four edges in flight, takes 17 ms.
//
// Grid: long rows times tiles, striding. list i32 [n] holds the rows; the host knows them, or the kernel long_rows
// lists them.
#define RESIDENT 2
#include "rowsof.cuh"

#define DEEP 16

// Room points to shared memory for the values that a block has loaded. first has DEEP·256 elements, and so has
// second, which may be null.
struct Room {
  float *first, *second;
};

// inOrder calls f.load for the edges e, e + step, … below to. Each call loads the values of DEEP edges in the
// thread's column: one number for each edge, or two if F::TWO. The first group of lanes then calls f.next for each
// edge, in the order of the edges. All threads of the block must call inOrder.
template <class F>
__device__ __forceinline__ void inOrder(F &f, const Room &room, i64 from, i64 to) {
  float a[DEEP], b[DEEP];
  int width = blockDim.x, groups = blockDim.y, round = DEEP * groups;
  f.load(a, b, from + threadIdx.y, groups, to);
  for (i64 base = from; base < to; base += round) {
    __syncthreads();  // the first group has consumed the previous values
#pragma unroll
    for (int j = 0; j < DEEP; j++) {
      int i = (j * groups + threadIdx.y) * width + threadIdx.x;
      room.first[i] = a[j];
      if (F::TWO) room.second[i] = b[j];
    }
    __syncthreads();
    if (base + round < to) f.load(a, b, base + round + threadIdx.y, groups, to);
    if (threadIdx.y > 0) continue;
    int n = to - base < round ? (int)(to - base) : round;
#pragma unroll 8
    for (int i = 0; i < n; i++) f.next(room.first[i * width + threadIdx.x], F::TWO ? room.second[i * width + threadIdx.x] : 0, base + i);
  }
}

// longRows calls f(d, from, to, c, has) for each of the n rows d of list and each tile of columns. The edges of d
// are [from, to), and c is the thread's column. If the thread has no column in the tile, has is false and c is 0.
template <class F>
__device__ __forceinline__ void longRows(const int *__restrict__ list, i64 n, const i64 *__restrict__ indptr, i64 cols, F f) {
  Tiles<1> tiles(cols);
  for (i64 item = blockIdx.x; item < tiles.items(n); item += gridDim.x) {
    i64 row, c;
    bool has = tiles.split(item, row, c);
    i64 d = list[row];
    f(d, indptr[d], indptr[d + 1], has ? c : 0, has);
  }
}
