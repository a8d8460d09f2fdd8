// Matrix products in float32, for programs without cuBLAS: out [m,n] = A·B. Two letters of a kernel's name say how
// the factors A and B are stored: as they are (n, A [m,k] and B [k,n]) or transposed (t). So gemm_nt reads B as
// [n,k].
//
// A work item is a tile of 64×64 of out and a chunk of k of length chunk. Chunk s is summed by itself and written
// to out + s·m·n; if there are several chunks, a column sum of [chunks, m·n] follows. A block goes through k in
// steps of 16, with the factors of a step in shared memory, and a thread sums 4×4 elements, in the order of k.
// Grid: items, striding, by blocks of 256 threads.
//
// Bytes: 4·(m·k·⌈n/64⌉ + k·n·⌈m/64⌉ + m·n). Arithmetic bounds the time: 2·m·n·k flops. A 2^18×256×256 product has
// 34 GFLOP, 0.6 ms at an H200's 60 TFLOP/s, of which a kernel such as this reaches about a third.
#define RESIDENT 2
#include "common.cuh"

#define TILE 64
#define STEP 16

template <bool TA, bool TB>
__device__ __forceinline__ void gemm(float *__restrict__ out, const float *__restrict__ a, const float *__restrict__ b, i64 m, i64 n, i64 k, i64 chunk, i64 acc) {
  __shared__ __align__(16) float as[STEP][TILE + 4], bs[STEP][TILE + 4];
  int thread = threadIdx.x, ti = thread / 16 * 4, tj = thread % 16 * 4;
  i64 across = (n + TILE - 1) / TILE, tiles = across * ((m + TILE - 1) / TILE), chunks = k > chunk ? (k + chunk - 1) / chunk : 1;
  for (i64 item = blockIdx.x; item < tiles * chunks; item += gridDim.x) {
    i64 s = item / tiles, t = item - s * tiles, i0 = t / across * TILE, j0 = (t - t / across * across) * TILE;
    i64 end = (s + 1) * chunk < k ? (s + 1) * chunk : k;
    bool inside = i0 + ti < m && j0 + tj < n;
    float sum[4][4] = {};
    for (i64 l0 = s * chunk; l0 < end; l0 += STEP) {
#pragma unroll
      for (int q = 0; q < TILE * STEP / 256; q++) {
        int at = thread + 256 * q;
        // Neighbouring threads read neighbouring elements, however the factor is stored.
        int i = TA ? at % TILE : at / STEP, l = TA ? at / TILE : at % STEP;
        as[l][i] = i0 + i < m && l0 + l < end ? a[TA ? (l0 + l) * m + i0 + i : (i0 + i) * k + l0 + l] : 0;
        int j = TB ? at / STEP : at % TILE;
        l = TB ? at % STEP : at / TILE;
        bs[l][j] = j0 + j < n && l0 + l < end ? b[TB ? (j0 + j) * k + l0 + l : (l0 + l) * n + j0 + j] : 0;
      }
      __syncthreads();
      int steps = end - l0 < STEP ? (int)(end - l0) : STEP;
      if (inside)
#pragma unroll 4
        for (int l = 0; l < steps; l++) {
          float4 p = *(const float4 *)&as[l][ti], q = *(const float4 *)&bs[l][tj];
          float u[4] = {p.x, p.y, p.z, p.w}, v[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
          for (int i = 0; i < 4; i++)
#pragma unroll
            for (int j = 0; j < 4; j++) sum[i][j] += u[i] * v[j];
        }
      __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
      for (int j = 0; j < 4; j++)
        if (i0 + ti + i < m && j0 + tj + j < n) put(out + s * m * n, (i0 + ti + i) * n + j0 + tj + j, sum[i][j], acc);
  }
}

KERNEL gemm_nn_f32(float *__restrict__ out, const float *__restrict__ a, const float *__restrict__ b, i64 m, i64 n, i64 k, i64 chunk, i64 acc) {
  gemm<false, false>(out, a, b, m, n, k, chunk, acc);
}
KERNEL gemm_nt_f32(float *__restrict__ out, const float *__restrict__ a, const float *__restrict__ b, i64 m, i64 n, i64 k, i64 chunk, i64 acc) {
  gemm<false, true>(out, a, b, m, n, k, chunk, acc);
}
KERNEL gemm_tn_f32(float *__restrict__ out, const float *__restrict__ a, const float *__restrict__ b, i64 m, i64 n, i64 k, i64 chunk, i64 acc) {
  gemm<true, false>(out, a, b, m, n, k, chunk, acc);
}
KERNEL gemm_tt_f32(float *__restrict__ out, const float *__restrict__ a, const float *__restrict__ b, i64 m, i64 n, i64 k, i64 chunk, i64 acc) {
  gemm<true, true>(out, a, b, m, n, k, chunk, acc);
}
