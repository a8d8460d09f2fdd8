// Aggregation as in spmm.cu over rows of more than LONG edges, which spmm.cu leaves out. hub.cuh says how blocks
// divide a row. Sums round differently from the CPU's. Bytes: as spmm.cu, 4·cols and 4 to 12 an edge. 131072 edges
// of 256 columns to one row: 0.13 GB, 28 µs for memory, in 512 blocks; hub_join_f32 takes about 4 µs more.
#define RESIDENT 3
#include "hub.cuh"

// Room points to shared memory for what a chunk's edges lead to: the positions of their rows and of their weights from
// x and w on, and the sums of the groups. A position reaches rows in the cache too, and the compiler knows, unlike
// of an address, that it is in global memory.
template <int V>
struct Room {
  i64 *rows, *weights;
  Columns<V> *sums;
};

template <bool WEIGHTED, int V, class T>
__device__ __forceinline__ void add(const Room<V> &room, float *__restrict__ out, const i64 *__restrict__ indptr, const int *__restrict__ indices,
                                    const int *__restrict__ via, const T *__restrict__ x, const T *__restrict__ cache, const int *__restrict__ slots,
                                    const float *__restrict__ w, const int *__restrict__ at, i64 first, const Chunk *__restrict__ list, i64 n, i64 cols,
                                    i64 heads, i64 mean, i64 acc, float *__restrict__ parts) {
  const int EACH = CHUNK / 256;
  eachChunk<V>(list, n, indptr, cols, [&](const Chunk &k, i64 from, int count, i64 c, bool has) {
    // A thread follows EACH edges to their rows at once.
    i64 row[EACH], number[EACH];
#pragma unroll
    for (int j = 0; j < EACH; j++) {
      int i = thread() + j * 256;
      i64 e = from + (i < count ? i : 0);
      row[j] = indices ? indices[e] : e - first;
      if (WEIGHTED) number[j] = at ? at[e] : e - first;
    }
    if (via)
#pragma unroll
      for (int j = 0; j < EACH; j++) row[j] = via[row[j]];
    __syncthreads();  // all threads have read the addresses of the previous chunk
#pragma unroll
    for (int j = 0; j < EACH; j++) {
      int i = thread() + j * 256;
      room.rows[i] = ((i64)rowOf(x, cache, slots, row[j], cols) - (i64)x) / (i64)sizeof(T);
      if (WEIGHTED) room.weights[i] = number[j] * heads;
    }
    __syncthreads();
    i64 head = WEIGHTED && heads > 1 ? c / (cols / heads) : 0;
    const T *column = x + c;
    const float *weight = w + head;
    Columns<V> sum = {};
    eachRound<V>(count, [&](int base, bool full) {
      const int DEEP = Deep<V>::ROWS;
      Columns<V> v[DEEP];
      float by[DEEP];
#pragma unroll
      for (int j = 0; j < DEEP; j++) {
        int i = base + j * blockDim.y;
        v[j] = {};
        by[j] = 0;
        if (!full && i >= count) continue;
        load(column + room.rows[i], v[j]);
        if (WEIGHTED) by[j] = weight[room.weights[i]];
      }
      // Past the end, adding 0 changes nothing, because a sum that starts at +0 is never -0.
#pragma unroll
      for (int j = 0; j < DEEP; j++)
#pragma unroll
        for (int i = 0; i < V; i++)
          if (WEIGHTED)
            sum.v[i] = by[j] != 0 ? sum.v[i] + __fmul_rn(by[j], v[j].v[i]) : sum.v[i];
          else
            sum.v[i] += v[j].v[i];
    });
    sum = overGroups(sum, room.sums, [](Columns<V> a, const Columns<V> &b) {
#pragma unroll
      for (int i = 0; i < V; i++) a.v[i] += b.v[i];
      return a;
    });
    if (threadIdx.y > 0 || !has) return;
    if (k.of > 1) {
      store(parts + k.part * cols + c, sum);
      return;
    }
    float share = mean ? 1 / (float)count : 1, *o = out + k.row * cols + c;
    Columns<V> old = {};
    if (acc) load(o, old);
#pragma unroll
    for (int i = 0; i < V; i++) sum.v[i] = acc ? sum.v[i] * share + old.v[i] : sum.v[i] * share;
    store(o, sum);
  });
}

template <int V, class T>
__device__ __forceinline__ void hubs(float *__restrict__ out, const i64 *__restrict__ indptr, const int *__restrict__ indices, const int *__restrict__ via,
                                     const T *__restrict__ x, const T *__restrict__ cache, const int *__restrict__ slots,
                                     const float *__restrict__ w, const int *__restrict__ at, i64 first, const Chunk *__restrict__ list, i64 n, i64 cols,
                                     i64 heads, i64 mean, i64 acc, float *__restrict__ parts) {
  __shared__ i64 rows[CHUNK], weights[CHUNK];
  __shared__ Columns<V> sums[256];
  Room<V> room = {rows, weights, sums};
  if (w)
    add<true>(room, out, indptr, indices, via, x, cache, slots, w, at, first, list, n, cols, heads, mean, acc, parts);
  else
    add<false>(room, out, indptr, indices, via, x, cache, slots, w, at, first, list, n, cols, heads, mean, acc, parts);
}

// parts f32 [·, cols] gets the partial sums.
KERNEL hub_f32(float *__restrict__ out, const i64 *__restrict__ indptr, const int *__restrict__ indices, const int *__restrict__ via,
       const float *__restrict__ x, const float *__restrict__ cache, const int *__restrict__ slots,
       const float *__restrict__ w, const int *__restrict__ at, i64 first, const Chunk *__restrict__ list, i64 n, i64 cols, i64 heads,
       i64 mean, i64 acc, float *__restrict__ parts) {
  hubs<1>(out, indptr, indices, via, x, cache, slots, w, at, first, list, n, cols, heads, mean, acc, parts);
}
KERNEL hub_f32x4(float *__restrict__ out, const i64 *__restrict__ indptr, const int *__restrict__ indices, const int *__restrict__ via,
       const float *__restrict__ x, const float *__restrict__ cache, const int *__restrict__ slots,
       const float *__restrict__ w, const int *__restrict__ at, i64 first, const Chunk *__restrict__ list, i64 n, i64 cols, i64 heads,
       i64 mean, i64 acc, float *__restrict__ parts) {
  hubs<4>(out, indptr, indices, via, x, cache, slots, w, at, first, list, n, cols, heads, mean, acc, parts);
}
KERNEL hub_f16(float *__restrict__ out, const i64 *__restrict__ indptr, const int *__restrict__ indices, const int *__restrict__ via,
       const u16 *__restrict__ x, const u16 *__restrict__ cache, const int *__restrict__ slots,
       const float *__restrict__ w, const int *__restrict__ at, i64 first, const Chunk *__restrict__ list, i64 n, i64 cols, i64 heads,
       i64 mean, i64 acc, float *__restrict__ parts) {
  hubs<1>(out, indptr, indices, via, x, cache, slots, w, at, first, list, n, cols, heads, mean, acc, parts);
}
KERNEL hub_f16x4(float *__restrict__ out, const i64 *__restrict__ indptr, const int *__restrict__ indices, const int *__restrict__ via,
       const u16 *__restrict__ x, const u16 *__restrict__ cache, const int *__restrict__ slots,
       const float *__restrict__ w, const int *__restrict__ at, i64 first, const Chunk *__restrict__ list, i64 n, i64 cols, i64 heads,
       i64 mean, i64 acc, float *__restrict__ parts) {
  hubs<4>(out, indptr, indices, via, x, cache, slots, w, at, first, list, n, cols, heads, mean, acc, parts);
}

// hub_join_f32 adds the partial sums of the rows of several chunks, divides by the number of edges if mean is set,
// and writes the results. Grid: as in hub.cuh. Bytes: 4·cols a chunk; 256 chunks of 256 columns: 0.3 MB, but four
// rounds of loads from the cache take about 2 µs.
KERNEL hub_join_f32(float *__restrict__ out, const float *__restrict__ parts, const i64 *__restrict__ indptr, const Chunk *__restrict__ list, i64 n, i64 cols,
                    i64 mean, i64 acc) {
  __shared__ float room[256];
  eachJoin(list, n, cols, [&](const Chunk &k, i64 c, bool has) {
    float sum = sumParts(parts, k, cols, c, room);
    if (threadIdx.y > 0 || !has) return;
    put(out, k.row * cols + c, mean ? sum * (1 / (float)(indptr[k.row + 1] - indptr[k.row])) : sum, acc);
  });
}
