// Rows of a table, read V columns at a time and in float32, whatever they are stored as. V = 4 needs the
// table and the output aligned to four elements and cols a multiple of 4.
#pragma once
#include "common.cuh"
#include "long.cuh"

template <int V>
struct Columns {
  float v[V];
};

__device__ __forceinline__ float half(u16 bits) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(bits));
  return f;
}

__device__ __forceinline__ void load(const float *p, Columns<1> &c) { c.v[0] = *p; }
__device__ __forceinline__ void load(const u16 *p, Columns<1> &c) { c.v[0] = half(*p); }
__device__ __forceinline__ void load(const float *p, Columns<4> &c) {
  float4 q = *(const float4 *)p;
  c = {{q.x, q.y, q.z, q.w}};
}
__device__ __forceinline__ void load(const u16 *p, Columns<4> &c) {
  ushort4 q = *(const ushort4 *)p;
  c = {{half(q.x), half(q.y), half(q.z), half(q.w)}};
}

__device__ __forceinline__ void store(float *p, const Columns<1> &c) { *p = c.v[0]; }
__device__ __forceinline__ void store(float *p, const Columns<4> &c) { *(float4 *)p = make_float4(c.v[0], c.v[1], c.v[2], c.v[3]); }

// rowOf is where row r of a table begins: in the cache, which holds some of its rows, where slots[r] says
// which of the cache's it is, else in x, which may be memory of the host. slots null: there is no cache.
template <class T>
__device__ __forceinline__ const T *rowOf(const T *x, const T *cache, const int *slots, i64 r, i64 cols) {
  i64 slot = -1;
  if (slots) slot = slots[r];
  return slot >= 0 ? cache + slot * cols : x + r * cols;
}

// Work items are (row, tile), a tile being V·width columns; of(item) splits one, in which a lane has the
// columns [c, c+V).
template <int V>
struct Tiles {
  i64 tiles, cols;
  __device__ __forceinline__ Tiles(i64 cols) : tiles((cols + V * (i64)blockDim.x - 1) / (V * (i64)blockDim.x)), cols(cols) {}
  __device__ __forceinline__ i64 items(i64 rows) const { return rows * tiles; }
  // split gives the row and the lane's first column; it tells whether the lane has one.
  __device__ __forceinline__ bool split(i64 item, i64 &row, i64 &c) const {
    row = item / tiles;
    c = ((item - row * tiles) * blockDim.x + threadIdx.x) * V;
    return c < cols;
  }
};
