// edge_dot_f32 of edges.cu for destinations of more than LONG edges, which edges.cu leaves out: all groups of a
// block handle edges of one destination. Bytes: as edge_dot_f32, 4·cols, 4·heads and 4 an edge; 10^5 edges of 256
// columns of one destination: 0.1 GB, 21 µs for memory, but 4 ms because a head has one block. A group of lanes
// takes 35 ms.
#define RESIDENT 2
#include "hub.cuh"
#include "dots.cuh"

// Grid: as in hub.cuh, with heads in place of tiles.
KERNEL hub_edge_dot_f32(float *__restrict__ dw, const i64 *__restrict__ indptr, const int *__restrict__ indices, const float *__restrict__ dout,
                        const float *__restrict__ x, i64 first, const Chunk *__restrict__ list, i64 n, i64 cols, i64 heads, i64 acc) {
  u32 group = groupMask();
  longRows(list, n, indptr, heads * blockDim.x, [&](i64 d, i64 from, i64 to, i64 c, bool) {
    i64 k = c / blockDim.x;
    const float *g = dout + d * cols + k * (cols / heads);
    for (i64 next = from + (i64)threadIdx.y * BATCH; next < to; next += (i64)blockDim.y * BATCH)
      dots(dw, indices, g, x, next, to, first, cols, heads, k, group, acc);
  });
}

// Softmax over the edges of a destination, as in edges.cu. A block handles a destination and a tile of 32 columns.
// Its groups of lanes take the edges in turn, with AHEAD edges in flight in each thread. A fixed tree combines the
// groups' results, so the order of a sum depends on sizes alone. Bytes: as in edges.cu. 10^5 edges of 4 heads of
// one destination: 3.2 MB, 0.7 µs, and the gradient 4.8 MB, 1 µs. The one block takes 0.4 ms, and 0.3 ms for the
// gradient, because it passes over the edges three times (the gradient twice) and its threads wait about 0.7 µs for
// AHEAD loads. A warp takes at least 6 ms, and 4 ms for the gradient.
#define AHEAD 8

// eachEdge calls f(j, i) for the group's edges, AHEAD at a time. j counts from 0 to AHEAD-1; i is the index of the
// edge's element in column c, or -1 past the last edge. then() follows every AHEAD calls.
template <class F, class G>
__device__ __forceinline__ void eachEdge(i64 from, i64 to, i64 cols, i64 c, F f, G then) {
  for (i64 e = from + threadIdx.y; e < to; e += (i64)AHEAD * blockDim.y) {
#pragma unroll
    for (int j = 0; j < AHEAD; j++) {
      i64 at = e + (i64)j * blockDim.y;
      f(j, at < to ? at * cols + c : -1);
    }
    then();
  }
}

KERNEL hub_edge_softmax_f32(float *__restrict__ y, const i64 *__restrict__ indptr, const float *__restrict__ x, i64 first,
                                 const Chunk *__restrict__ list, i64 n, i64 cols) {
  __shared__ float tops[256];
  __shared__ double sums[256];
  longRows(list, n, indptr, cols, [&](i64, i64 from, i64 to, i64 c, bool has) {
    from -= first, to -= first;
    float v[AHEAD];
    i64 at[AHEAD];
    auto load = [&](int j, i64 i) {
      at[j] = i;
      v[j] = i < 0 ? -INFINITY : x[i];
    };
    float top = -INFINITY;
    eachEdge(from, to, cols, c, load, [&] {
#pragma unroll
      for (int j = 0; j < AHEAD; j++) top = fmaxf(top, v[j]);
    });
    top = overGroups(top, tops, [](float a, float b) { return fmaxf(a, b); });
    double sum = 0;
    eachEdge(from, to, cols, c, load, [&] {
#pragma unroll
      for (int j = 0; j < AHEAD; j++) sum += at[j] < 0 ? 0 : expf(v[j] - top);
    });
    double inv = 1 / overGroups(sum, sums, [](double a, double b) { return a + b; });
    eachEdge(from, to, cols, c, load, [&] {
#pragma unroll
      for (int j = 0; j < AHEAD; j++)
        if (has && at[j] >= 0) y[at[j]] = (float)(expf(v[j] - top) * inv);
    });
  });
}

KERNEL hub_edge_softmax_grad_f32(float *__restrict__ dx, const i64 *__restrict__ indptr, const float *__restrict__ dy, const float *__restrict__ y, i64 first,
                                      const Chunk *__restrict__ list, i64 n, i64 cols, i64 acc) {
  __shared__ double sums[256];
  longRows(list, n, indptr, cols, [&](i64, i64 from, i64 to, i64 c, bool has) {
    from -= first, to -= first;
    float g[AHEAD], v[AHEAD];
    i64 at[AHEAD];
    auto load = [&](int j, i64 i) {
      at[j] = i;
      g[j] = i < 0 ? 0 : dy[i];
      v[j] = i < 0 ? 0 : y[i];
    };
    double along = 0;
    eachEdge(from, to, cols, c, load, [&] {
#pragma unroll
      for (int j = 0; j < AHEAD; j++) along += (double)g[j] * v[j];
    });
    along = overGroups(along, sums, [](double a, double b) { return a + b; });
    eachEdge(from, to, cols, c, load, [&] {
#pragma unroll
      for (int j = 0; j < AHEAD; j++)
        if (has && at[j] >= 0) put(dx, at[j], (float)(v[j] * (g[j] - along)), acc);
    });
  });
}
