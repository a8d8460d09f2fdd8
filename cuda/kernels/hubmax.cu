// max_f32 and max_grad_f32 of max.cu for rows of more than LONG edges, which max.cu leaves out. hub.cuh says how a
// block handles a row. Bytes: as max.cu, 4·cols and 4 an edge, for the gradient 8·cols and 8; 10^5 edges of 256
// columns to one row: 0.1 GB, 21 µs, and 0.2 GB, 43 µs for memory, but 0.6 ms each because one lane handles them in
// order.
#define RESIDENT 2
#include "hub.cuh"

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

struct Greatest {
  static const bool TWO = false;

  const int *indices;
  const float *x;
  i64 first, cols, c, from, winner;
  float best;

  __device__ __forceinline__ void load(float (&v)[DEEP], float (&)[DEEP], i64 e, i64 step, i64 to) const {
    i64 row[DEEP];
#pragma unroll
    for (int j = 0; j < DEEP; j++) {
      i64 one = e + j * step;
      row[j] = one >= to ? -1 : indices ? indices[one] : one - first;
    }
#pragma unroll
    for (int j = 0; j < DEEP; j++) v[j] = row[j] >= 0 ? x[row[j] * cols + c] : 0;
  }

  __device__ __forceinline__ void next(float v, float, i64 e) {
    if (e == from || v > best || v != v) {
      best = v;
      winner = e;
    }
  }
};

// hub_max_f32 computes max_f32 of the long rows.
KERNEL hub_max_f32(float *__restrict__ out, u32 *__restrict__ arg, const i64 *__restrict__ indptr, const int *__restrict__ indices,
                   const float *__restrict__ x, i64 first, const Chunk *__restrict__ list, i64 n, i64 cols, i64 acc) {
  __shared__ float values[DEEP * 256];
  Room room = {values, 0};
  Greatest greatest = {indices, x, first, cols};
  longRows(list, n, indptr, cols, [&](i64 d, i64 from, i64 to, i64 c, bool has) {
    greatest.c = c;
    greatest.from = from;
    inOrder(greatest, room, from, to);
    if (threadIdx.y > 0 || !has) return;
    put(out, d * cols + c, greatest.best, acc);
    if (arg) arg[d * cols + c] = (u32)(greatest.winner - first);
  });
}

struct Won {
  static const bool TWO = false;

  const float *dout;
  const u32 *arg;
  const int *dst, *edge;
  i64 cols, c;
  float total;

  // Where another edge won, the value is 0. Adding 0 changes nothing, because a sum that starts at +0 is never -0.
  __device__ __forceinline__ void load(float (&v)[DEEP], float (&)[DEEP], i64 i, i64 step, i64 to) const {
    i64 at[DEEP];
    u32 who[DEEP];
#pragma unroll
    for (int j = 0; j < DEEP; j++) {
      i64 one = i + j * step;
      at[j] = one < to ? dst[one] * cols + c : -1;
      who[j] = one < to ? (u32)edge[one] : 0;
    }
#pragma unroll
    for (int j = 0; j < DEEP; j++) v[j] = at[j] >= 0 && arg[at[j]] == who[j] ? dout[at[j]] : 0;
  }

  __device__ __forceinline__ void next(float v, float, i64) { total += v; }
};

// hub_max_grad_f32 computes max_grad_f32 of the long rows.
KERNEL hub_max_grad_f32(float *__restrict__ dx, const float *__restrict__ dout, const u32 *__restrict__ arg, const i64 *__restrict__ indptr,
                        const int *__restrict__ dst, const int *__restrict__ edge, const Chunk *__restrict__ list, i64 n, i64 cols, i64 acc) {
  __shared__ float values[DEEP * 256];
  Room room = {values, 0};
  Won won = {dout, arg, dst, edge, cols};
  longRows(list, n, indptr, cols, [&](i64 s, i64 from, i64 to, i64 c, bool has) {
    won.c = c;
    won.total = 0;
    inOrder(won, room, from, to);
    if (threadIdx.y == 0 && has) put(dx, s * cols + c, won.total, acc);
  });
}
