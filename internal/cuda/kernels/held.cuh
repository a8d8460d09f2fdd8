// Rows that a group of lanes holds in registers, so that a kernel with several passes over a row reads it once.
//
// Blocks have (width, 256/width) threads, one group a row, and rows advance as in common.cuh. A lane holds HELD
// columns of a tile of HELD·width columns. width is the least power of two, at most 32, whose tile holds the row. A
// row of more than 256 columns has several tiles, and each pass reads it again, from the caches.
#pragma once
#include "common.cuh"

#define HELD 8
#define FOR_HELD(j) _Pragma("unroll") for (int j = 0; j < HELD; j++)

struct Held {
  i64 cols;
  bool wide;  // the lane's columns are two times four neighbours, which one access transfers
  int first, step;

  // addresses are those of the matrices, combined by |.
  __device__ __forceinline__ Held(i64 cols, u64 addresses) : cols(cols), wide(cols % 4 == 0 && addresses % 16 == 0) {
    first = wide ? 4 * threadIdx.x : threadIdx.x;
    step = wide ? 1 : blockDim.x;
  }

  // The lane's j-th column in a tile is first + offset(j). Columns ascend with j.
  __device__ __forceinline__ int offset(int j) const { return j / 4 * 4 * blockDim.x + j % 4 * step; }
  __device__ __forceinline__ int column(i64 c0, int j) const { return (int)c0 + first + offset(j); }
  __device__ __forceinline__ int tile() const { return HELD * blockDim.x; }

  // left returns the number above the offsets of the columns that the lane has in the tile at c0.
  __device__ __forceinline__ int left(i64 c0, i64 live) const { return !live ? 0 : (cols - c0 < tile() ? (int)(cols - c0) : tile()) - first; }

  // each calls f(c0) for the first column c0 of each tile.
  template <class F>
  __device__ __forceinline__ void each(F f) const {
#pragma unroll 1
    for (i64 c0 = 0; c0 < cols; c0 += tile()) f(c0);
  }

  // read sets v to the lane's columns of a tile of the row, and to none where the row has no column.
  __device__ __forceinline__ void read(float *v, const float *row, i64 c0, i64 live, float none) const {
    int n = left(c0, live);
    const float *p = row + once(c0 + first);
    if (wide) {
#pragma unroll
      for (int j = 0; j < HELD; j += 4) {
        float4 q = {none, none, none, none};
        if (offset(j) < n) q = *(const float4 *)(p + offset(j));
        v[j] = q.x, v[j + 1] = q.y, v[j + 2] = q.z, v[j + 3] = q.w;
      }
      return;
    }
    FOR_HELD(j) v[j] = offset(j) < n ? p[offset(j)] : none;
  }

  // again reads a tile in a later pass, unless it is the only one, which v still holds. It returns whether it read.
  __device__ __forceinline__ bool again(float *v, const float *row, i64 c0, i64 live, float none) const {
    if (cols <= tile()) return false;
    read(v, row, c0, live, none);
    return true;
  }

  // write writes v to a tile of the row, or adds it with acc.
  __device__ __forceinline__ void write(float *row, i64 c0, i64 live, float *v, i64 acc) const {
    if (acc) {
      float old[HELD];
      read(old, row, c0, live, 0);
      FOR_HELD(j) v[j] += old[j];
    }
    int n = left(c0, live);
    float *p = row + once(c0 + first);
    if (wide) {
#pragma unroll
      for (int j = 0; j < HELD; j += 4)
        if (offset(j) < n) *(float4 *)(p + offset(j)) = make_float4(v[j], v[j + 1], v[j + 2], v[j + 3]);
      return;
    }
    FOR_HELD(j) if (offset(j) < n) p[offset(j)] = v[j];
  }
};
