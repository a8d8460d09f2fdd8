// Operations of edges.cu for destinations of more than LONG edges, which edges.cu leaves out. hub.cuh says how blocks
// divide a destination's edges.
//
// Softmax takes three kernels. The first finds the greatest element of each column of a chunk, and the sum of the
// exponentials; *_join_f32 combines those of a destination's chunks; and *_end_f32 writes the elements. Destinations of
// one chunk are complete after the first. tops f32 and sums f64 [·, cols] hold the results of chunks. *_join_f32
// writes those of a destination, the greatest element and 1 over the sum, in place of its first chunk's. The
// gradient takes the same steps with one sum. Bytes: 12·cols an edge, for the gradient 20·cols, of which the second
// reading is mostly from caches. 131072 edges of 4 heads of one destination: 6.3 MB, 1.3 µs, and 10.5 MB, 2.2 µs for
// memory; but each of the kernels takes 3 to 4 µs, because three or four loads and the barriers of a tree follow each
// other.
#define RESIDENT 3
#include "hub.cuh"
#include "dots.cuh"

// hub_edge_dot_f32 computes edge_dot_f32. Grid: as in hub.cuh, with heads in place of tiles; all groups of a block
// handle edges of one chunk. Bytes: as edge_dot_f32, 4·cols, 4·heads and 4 an edge. 131072 edges of 256 columns of one
// destination: 0.13 GB, 28 µs for memory. A block takes about 30 µs: CHUNK/(8·BATCH) rounds of dependent loads.
KERNEL hub_edge_dot_f32(float *__restrict__ dw, const i64 *__restrict__ indptr, const int *__restrict__ indices, const float *__restrict__ dout,
                        const float *__restrict__ x, i64 first, const Chunk *__restrict__ list, i64 n, i64 cols, i64 heads, i64 acc) {
  u32 group = groupMask();
  eachChunk<1>(list, n, indptr, heads * blockDim.x, [&](const Chunk &k, i64 from, int count, i64 c, bool) {
    i64 head = c / blockDim.x, to = from + count;
    const float *g = dout + k.row * cols + head * (cols / heads);
    for (i64 next = from + (i64)threadIdx.y * BATCH; next < to; next += (i64)blockDim.y * BATCH)
      dots(dw, indices, g, x, next, to, first, cols, heads, head, group, acc);
  });
}

// AHEAD is the number of edges that a thread loads at a time.
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
                            const Chunk *__restrict__ list, i64 n, i64 cols, float *__restrict__ tops, double *__restrict__ sums) {
  __shared__ float roomOfTops[256];
  __shared__ double roomOfSums[256];
  eachChunk<1>(list, n, indptr, cols, [&](const Chunk &k, i64 from, int count, i64 c, bool has) {
    from -= first;
    i64 to = from + count;
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
    top = overGroups(top, roomOfTops, [](float a, float b) { return fmaxf(a, b); });
    float base = top == -INFINITY ? 0 : top;  // a chunk of -INFINITY alone adds 0 to its destination's sum, not NaN
    double sum = 0;
    eachEdge(from, to, cols, c, load, [&] {
#pragma unroll
      for (int j = 0; j < AHEAD; j++) sum += at[j] < 0 ? 0 : expf(v[j] - base);
    });
    sum = overGroups(sum, roomOfSums, [](double a, double b) { return a + b; });
    if (k.of > 1) {
      if (threadIdx.y > 0 || !has) return;
      tops[k.part * cols + c] = top;
      sums[k.part * cols + c] = sum;
      return;
    }
    double inv = 1 / sum;
    eachEdge(from, to, cols, c, load, [&] {
#pragma unroll
      for (int j = 0; j < AHEAD; j++)
        if (has && at[j] >= 0) y[at[j]] = (float)(expf(v[j] - base) * inv);
    });
  });
}

KERNEL hub_edge_softmax_join_f32(float *tops, double *sums, const Chunk *__restrict__ list, i64 n, i64 cols) {
  __shared__ float roomOfTops[256];
  __shared__ double roomOfSums[256];
  eachJoin(list, n, cols, [&](const Chunk &k, i64 c, bool has) {
    i64 at = k.part * cols + c;
    float top = -INFINITY;
#pragma unroll 8
    for (int i = threadIdx.y; i < k.of; i += blockDim.y) top = fmaxf(top, tops[at + i * cols]);
    top = overGroups(top, roomOfTops, [](float a, float b) { return fmaxf(a, b); });
    double sum = 0;
#pragma unroll 8
    for (int i = threadIdx.y; i < k.of; i += blockDim.y) sum += sums[at + i * cols] * expf(tops[at + i * cols] - top);
    sum = overGroups(sum, roomOfSums, [](double a, double b) { return a + b; });
    if (threadIdx.y > 0 || !has) return;
    tops[at] = top;
    sums[at] = 1 / sum;
  });
}

KERNEL hub_edge_softmax_end_f32(float *__restrict__ y, const i64 *__restrict__ indptr, const float *__restrict__ x, i64 first,
                                const Chunk *__restrict__ list, i64 n, i64 cols, const float *__restrict__ tops, const double *__restrict__ sums) {
  eachChunk<1>(list, n, indptr, cols, [&](const Chunk &k, i64 from, int count, i64 c, bool has) {
    if (k.of == 1 || !has) return;
    from -= first;
    i64 of = (k.part - k.number) * cols + c;
    float top = tops[of];
    double inv = sums[of];
    float v[AHEAD];
    i64 at[AHEAD];
    auto load = [&](int j, i64 i) {
      at[j] = i;
      v[j] = i < 0 ? 0 : x[i];
    };
    eachEdge(from, from + count, cols, c, load, [&] {
#pragma unroll
      for (int j = 0; j < AHEAD; j++)
        if (at[j] >= 0) y[at[j]] = (float)(expf(v[j] - top) * inv);
    });
  });
}

// Gradient is the part of a thread's edges in the gradient of a softmax: AHEAD elements of dy and y.
struct Gradient {
  const float *dy, *y;
  float g[AHEAD], v[AHEAD];
  i64 at[AHEAD];

  __device__ __forceinline__ void load(int j, i64 i) {
    at[j] = i;
    g[j] = i < 0 ? 0 : dy[i];
    v[j] = i < 0 ? 0 : y[i];
  }

  // write sets dx to y·(dy - along), or adds it.
  __device__ __forceinline__ void write(float *__restrict__ dx, double along, i64 acc) const {
    float old[AHEAD];
#pragma unroll
    for (int j = 0; j < AHEAD; j++) old[j] = acc && at[j] >= 0 ? dx[at[j]] : 0;
#pragma unroll
    for (int j = 0; j < AHEAD; j++) {
      float r = (float)(v[j] * (g[j] - along));
      if (at[j] >= 0) dx[at[j]] = acc ? old[j] + r : r;
    }
  }
};

KERNEL hub_edge_softmax_grad_f32(float *__restrict__ dx, const i64 *__restrict__ indptr, const float *__restrict__ dy, const float *__restrict__ y, i64 first,
                                 const Chunk *__restrict__ list, i64 n, i64 cols, i64 acc, double *__restrict__ sums) {
  __shared__ double room[256];
  Gradient some = {dy, y};
  auto load = [&](int j, i64 i) { some.load(j, i); };
  eachChunk<1>(list, n, indptr, cols, [&](const Chunk &k, i64 from, int count, i64 c, bool has) {
    from -= first;
    i64 to = from + count;
    double along = 0;
    eachEdge(from, to, cols, c, load, [&] {
#pragma unroll
      for (int j = 0; j < AHEAD; j++) along += (double)some.g[j] * some.v[j];
    });
    along = overGroups(along, room, [](double a, double b) { return a + b; });
    if (k.of > 1) {
      if (threadIdx.y == 0 && has) sums[k.part * cols + c] = along;
    } else if (has) {
      eachEdge(from, to, cols, c, load, [&] { some.write(dx, along, acc); });
    }
  });
}

KERNEL hub_edge_softmax_grad_join_f32(double *sums, const Chunk *__restrict__ list, i64 n, i64 cols) {
  __shared__ double room[256];
  eachJoin(list, n, cols, [&](const Chunk &k, i64 c, bool has) {
    double along = sumParts(sums, k, cols, c, room);
    if (threadIdx.y == 0 && has) sums[k.part * cols + c] = along;
  });
}

KERNEL hub_edge_softmax_grad_end_f32(float *__restrict__ dx, const i64 *__restrict__ indptr, const float *__restrict__ dy, const float *__restrict__ y,
                                     i64 first, const Chunk *__restrict__ list, i64 n, i64 cols, i64 acc, const double *__restrict__ sums) {
  Gradient some = {dy, y};
  auto load = [&](int j, i64 i) { some.load(j, i); };
  eachChunk<1>(list, n, indptr, cols, [&](const Chunk &k, i64 from, int count, i64 c, bool has) {
    if (k.of == 1 || !has) return;
    double along = sums[(k.part - k.number) * cols + c];
    eachEdge(from - first, from - first + count, cols, c, load, [&] { some.write(dx, along, acc); });
  });
}
