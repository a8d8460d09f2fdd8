// Rows of more than LONG edges, by a whole block a row and tile of 32 columns, in the order of edges.
//
// All threads load, a row an edge and group of lanes, DEEP rows a thread at once; what they loaded goes to shared
// memory, and while the next are under way the first group takes it edge by edge. So a row is as fast as one lane
// adds, four cycles an edge, or as the loads of DEEP·256/width rows take, whichever is slower: a hub of 10^5 edges and
// 256 columns takes 0.6 ms by itself, where a group of lanes, which has four edges under way, takes 17 ms.
//
// Grid: long rows times tiles, striding. list i32 [n] has the rows, which the host knows or long_rows has listed.
#define RESIDENT 2
#include "rowsof.cuh"

#define DEEP 16

// Room is shared memory for what a block has loaded, DEEP·256 elements of each; second may be null.
struct Room {
  float *first, *second;
};

// inOrder has f.load get what the edges e, e + step, … below to have in the thread's column, DEEP of them, one number
// each or with TWO two, and f.next take them edge by edge, in the first group of lanes. All threads call it.
template <class F>
__device__ __forceinline__ void inOrder(F &f, const Room &room, i64 from, i64 to) {
  float a[DEEP], b[DEEP];
  int width = blockDim.x, groups = blockDim.y, round = DEEP * groups;
  f.load(a, b, from + threadIdx.y, groups, to);
  for (i64 base = from; base < to; base += round) {
    __syncthreads();  // what was there has been taken
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

// longRows calls f(d, from, to, c, has) for the n rows of a list and for tiles of their columns: c is the thread's
// column, 0 where has says that it has none.
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
