// Philox4x32-10 with the counters of package internal/philox, and dropout's draws.
// Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC'11.
#include "common.cuh"

struct Words {
  u32 w[4];
};

__device__ __forceinline__ Words philox(u64 key, u32 c0, u32 c1, u32 c2, u32 c3) {
  u32 k0 = (u32)key, k1 = (u32)(key >> 32);
#pragma unroll
  for (int round = 0; round < 10; round++) {
    u32 hi0 = __umulhi(0xD2511F53u, c0), lo0 = 0xD2511F53u * c0;
    u32 hi1 = __umulhi(0xCD9E8D57u, c2), lo1 = 0xCD9E8D57u * c2;
    c0 = hi1 ^ c1 ^ k0;
    c1 = lo1;
    c2 = hi0 ^ c3 ^ k1;
    c3 = lo0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

// block returns the b-th block of random words of an id.
__device__ __forceinline__ Words block(u64 seed, i64 id, u32 b, u32 step, u32 c3) {
  return philox(seed, (u32)id, (u32)(id >> 32) << 16 | b, step, c3);
}

// idOf returns the id of row r: ids32[r], or ids64[r] if ids32 is null, or start + r if both are null.
__device__ __forceinline__ i64 idOf(const int *ids32, const i64 *ids64, i64 start, i64 r) {
  return ids32 ? ids32[r] : ids64 ? ids64[r] : start + r;
}

// kept returns dropout's mask of eight columns, from the random words of their block. Lane l is the low half (l
// even) or the high half (l odd) of word l/2. An element is dropped if its lane is below threshold.
__device__ __forceinline__ u32 kept(const Words &d, u32 threshold) {
  u32 bits = 0;
#pragma unroll
  for (int l = 0; l < 8; l++) {
    u32 lane = l % 2 ? d.w[l / 2] >> 16 : d.w[l / 2] & 0xffff;
    bits |= (u32)(lane >= threshold) << l;
  }
  return bits;
}
