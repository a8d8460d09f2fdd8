// Reads rows of a table V columns at a time, as float32, whatever type the table stores. V = 4 requires that the
// table and the output are aligned to four elements, and that cols is a multiple of 4.
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

// rowOf returns the address of row r of a table. If slots is not null, a cache holds some of the rows: slots[r] is
// the row's number in the cache, or negative. The other rows are in x, which may be host memory.
template <class T>
__device__ __forceinline__ const T *rowOf(const T *x, const T *cache, const int *slots, i64 r, i64 cols) {
  i64 slot = -1;
  if (slots) slot = slots[r];
  return slot >= 0 ? cache + slot * cols : x + r * cols;
}

// A work item is a pair (row, tile). A tile has V·width columns, of which a lane handles [c, c+V).
template <int V>
struct Tiles {
  i64 tiles, cols;
  __device__ __forceinline__ Tiles(i64 cols) : tiles((cols + V * (i64)blockDim.x - 1) / (V * (i64)blockDim.x)), cols(cols) {}
  __device__ __forceinline__ i64 items(i64 rows) const { return rows * tiles; }
  // split sets the item's row and the lane's first column, and returns whether the lane has a column.
  __device__ __forceinline__ bool split(i64 item, i64 &row, i64 &c) const {
    row = tiles == 1 ? item : item / tiles;
    c = ((item - row * tiles) * blockDim.x + threadIdx.x) * V;
    return c < cols;
  }
};
