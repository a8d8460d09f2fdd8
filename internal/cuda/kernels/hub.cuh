// Aggregation over rows of more than LONG edges, in chunks of CHUNK edges. A block handles a chunk and a tile of V·32
// columns. A row of one chunk gets its result at once. The chunks of a longer row give partial results, which a
// kernel whose name ends in _join combines in the order of the chunks. So the order of a sum depends on the row's
// number of edges and on the number of columns alone.
//
// A block first writes what leads to the rows of its edges into shared memory, so that the loads of rows depend on
// nothing. Groups of lanes then take the edges in turn, and each thread has Deep::ROWS rows in flight. A fixed tree
// combines the groups' results. A block that is alone takes about 8 µs: four dependent loads, then CHUNK/(8·ROWS)
// rounds of loads. Partial results are 1/CHUNK of the bytes that the chunks read.
//
// Grid: chunks times tiles, striding. list [n] holds the chunks; the host knows them, or the kernel long_rows lists
// them. Blocks have 256 threads.
#include "rowsof.cuh"

// Deep::ROWS is the number of rows that a thread loads at a time.
template <int V>
struct Deep;
template <>
struct Deep<1> {
  static const int ROWS = 16;
};
template <>
struct Deep<4> {
  static const int ROWS = 8;
};

// eachChunk calls f(chunk, from, count, c, has) for each of the n chunks of list and each tile of columns. The chunk's
// edges are [from, from+count), and c is the thread's first column. If the thread has no column in the tile, has is
// false and c is 0.
template <int V, class F>
__device__ __forceinline__ void eachChunk(const Chunk *__restrict__ list, i64 n, const i64 *__restrict__ indptr, i64 cols, F f) {
  Tiles<V> tiles(cols);
  for (i64 item = blockIdx.x; item < tiles.items(n); item += gridDim.x) {
    i64 at, c;
    bool has = tiles.split(item, at, c);
    Chunk k = list[at];
    i64 from = indptr[k.row] + (i64)k.number * CHUNK, to = indptr[k.row + 1];
    f(k, from, to - from < CHUNK ? (int)(to - from) : CHUNK, has ? c : 0, has);
  }
}

// eachJoin calls f(chunk, c, has) for the first chunk of each row of several chunks, and each tile of columns. For a
// thread that has no column, the row has no chunks: it must not read what another block may overwrite.
template <class F>
__device__ __forceinline__ void eachJoin(const Chunk *__restrict__ list, i64 n, i64 cols, F f) {
  Tiles<1> tiles(cols);
  for (i64 item = blockIdx.x; item < tiles.items(n); item += gridDim.x) {
    i64 at, c;
    bool has = tiles.split(item, at, c);
    Chunk k = list[at];
    if (k.number > 0 || k.of == 1) continue;
    if (!has) k.of = 0;
    f(k, has ? c : 0, has);
  }
}

// eachRound calls f(i, full) for the edges of a group, of `count` in all: f handles the edges i, i + blockDim.y, …,
// Deep<V>::ROWS of them. Those from count on do not exist; if full, all exist.
template <int V, class F>
__device__ __forceinline__ void eachRound(int count, F f) {
  int round = Deep<V>::ROWS * blockDim.y, base = 0;
  for (; base + round <= count; base += round) f(base + threadIdx.y, true);
  if (base < count) f(base + threadIdx.y, false);
}

__device__ __forceinline__ int thread() { return threadIdx.y * blockDim.x + threadIdx.x; }

// overGroups combines v over the groups of a block, column by column, and returns the result in every thread. All
// threads must call it.
template <class T, class F>
__device__ __forceinline__ T overGroups(T v, T *room, F f) {
  int i = thread();
  __syncthreads();  // all threads have read the previous contents
  room[i] = v;
  for (int half = blockDim.y / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.y < half) room[i] = f(room[i], room[i + half * blockDim.x]);
  }
  __syncthreads();
  return room[threadIdx.x];
}

// sumParts returns the sum over the partial results of a row's chunks in column c; parts [·, cols]. All threads must
// call it. room has 256 elements.
template <class T>
__device__ __forceinline__ T sumParts(const T *parts, const Chunk &k, i64 cols, i64 c, T *room) {
  const int AHEAD = 8;
  const T *at = parts + k.part * cols + c;
  T sum = 0;
  for (int i = threadIdx.y; i < k.of; i += AHEAD * blockDim.y) {
    T v[AHEAD];
#pragma unroll
    for (int j = 0; j < AHEAD; j++) {
      int one = i + j * blockDim.y;
      v[j] = one < k.of ? at[one * cols] : 0;
    }
#pragma unroll
    for (int j = 0; j < AHEAD; j++) sum += v[j];
  }
  return overGroups(sum, room, [](T a, T b) { return a + b; });
}
