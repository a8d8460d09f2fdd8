// Declarations that all kernels share. Kernels include only headers of this directory, because NVRTC has no
// standard headers.
//
// Conventions: matrices are row-major without gaps. Sizes and flags have 64 bits, and so has every index that can
// grow with a size. A grid may be smaller than the work: every loop strides by the grid. With acc, a kernel adds to
// its output; without acc, it overwrites the output. There are no float atomics, and the order of every sum depends
// on sizes alone, for matrices that begin at a multiple of 16 bytes, as the backend's do. Times in comments are bytes divided by 4.8 TB/s, the memory bandwidth of an H200.
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

// Blocks have at most 256 threads. The launch bounds limit registers so that RESIDENT blocks fit on a
// multiprocessor at once.
#ifndef RESIDENT
#define RESIDENT 4
#endif
#define KERNEL extern "C" __global__ void __launch_bounds__(256, RESIDENT)

// NVRTC has no math.h to define INFINITY.
#define INFINITY __int_as_float(0x7f800000)

// ROUND is the number of elements that a thread of a kernel over [0, n) handles in a round, a block's width apart.
// It keeps enough loads in flight at any alignment.
#define ROUND 4

// at returns the index of a thread's k-th element in the round that begins at base.
__device__ __forceinline__ i64 at(i64 base, int k) { return base + k * (i64)blockDim.x; }
__device__ __forceinline__ i64 roundsBegin() { return (i64)blockIdx.x * blockDim.x * ROUND + threadIdx.x; }
__device__ __forceinline__ i64 roundsStep() { return (i64)gridDim.x * blockDim.x * ROUND; }

// once keeps the compiler from making a copy of the loop for each value of a flag.
__device__ __forceinline__ i64 once(i64 flag) {
  asm volatile("" : "+l"(flag));
  return flag;
}

// map1 computes out[i] = f(x[i]) for i < n, and map2 out[i] = f(x[i], y[i]). A round issues all its loads before it
// computes.
template <class F>
__device__ __forceinline__ void map1(float *__restrict__ out, const float *__restrict__ x, i64 n, i64 accumulate, F f) {
  for (i64 base = roundsBegin(); base < n; base += roundsStep()) {
    i64 acc = once(accumulate);
    float v[ROUND], o[ROUND];
#pragma unroll
    for (int k = 0; k < ROUND; k++) {
      i64 i = at(base, k);
      v[k] = i < n ? x[i] : 0;
      o[k] = acc && i < n ? out[i] : 0;
    }
#pragma unroll
    for (int k = 0; k < ROUND; k++) {
      i64 i = at(base, k);
      float r = f(v[k]);
      if (i < n) out[i] = acc ? r + o[k] : r;
    }
  }
}

template <class F>
__device__ __forceinline__ void map2(float *__restrict__ out, const float *__restrict__ x, const float *__restrict__ y, i64 n, i64 accumulate, F f) {
  for (i64 base = roundsBegin(); base < n; base += roundsStep()) {
    i64 acc = once(accumulate);
    float v[ROUND], w[ROUND], o[ROUND];
#pragma unroll
    for (int k = 0; k < ROUND; k++) {
      i64 i = at(base, k);
      v[k] = i < n ? x[i] : 0;
      w[k] = i < n ? y[i] : 0;
      o[k] = acc && i < n ? out[i] : 0;
    }
#pragma unroll
    for (int k = 0; k < ROUND; k++) {
      i64 i = at(base, k);
      float r = f(v[k], w[k]);
      if (i < n) out[i] = acc ? r + o[k] : r;
    }
  }
}

// sumLanes returns, in every lane, the sum over the lane's group of width lanes. width is a power of two up to 32.
// The order of additions is a fixed tree.
template <class T>
__device__ __forceinline__ T sumLanes(T v, int width) {
#pragma unroll
  for (int o = 16; o > 0; o /= 2)
    if (o < width) v += __shfl_xor_sync(0xffffffffu, v, o);
  return v;
}

__device__ __forceinline__ float maxLanes(float v, int width) {
#pragma unroll
  for (int o = 16; o > 0; o /= 2)
    if (o < width) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, o));
  return v;
}

// Kernels over rows have blocks of (width, 256/width) threads. width is the least power of two that is not below
// cols, at most 32. A group of width lanes handles a row; each lane takes every width-th column. All groups of a
// block advance to the next row together, because shuffles need all lanes of a warp. row is the group's row; live
// is false if that row is past the end.
#define FOR_ROWS(row, live, rows)                                                                        \
  for (i64 row##0 = (i64)blockIdx.x * blockDim.y, row = row##0 + threadIdx.y, live = row < (rows);       \
       row##0 < (rows);                                                                                  \
       row##0 += (i64)gridDim.x * blockDim.y, row = row##0 + threadIdx.y, live = row < (rows))

#define FOR_COLS(c, cols) for (i64 c = threadIdx.x; c < (cols); c += blockDim.x)

__device__ __forceinline__ void put(float *out, i64 i, float v, i64 acc) { out[i] = acc ? out[i] + v : v; }
