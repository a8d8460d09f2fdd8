// Groups the edges of a block by source, in the order of graphops.Transposed: a stable radix sort by row, eight
// bits a pass.
//
//   for each pass: bysource_count, sample_scan_parts and sample_scan (tilesOf 256), bysource_place
//   bysource_finish
//
// digits has 256·tiles counts, for tiles of 1024 edges; the counts of digit 0 in all tiles come first. A pass reads
// keys and values, and writes both in the order of a digit of the key. If values is null, the values are the edges'
// numbers, which count from 0.
#include "sample.cuh"

// digits[b·tiles + t] = the number of edges of tile t whose digit is b. Bytes: 4 an edge, 2 KB a tile; 10^6 edges:
// 6 MB, 1.3 µs.
KERNEL bysource_count(i64 *__restrict__ digits, const int *__restrict__ keys, i64 shift, const i64 *__restrict__ edges) {
  __shared__ u32 counts[256];
  i64 n = *edges, tiles = (n + TILE - 1) / TILE;
  for (i64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    counts[threadIdx.x] = 0;
    __syncthreads();
    for (int i = 0; i < TILE; i += 256) {
      i64 e = tile * TILE + i + threadIdx.x;
      if (e < n) atomicAdd(&counts[(u32)keys[e] >> shift & 255], 1u);
    }
    __syncthreads();
    digits[threadIdx.x * tiles + tile] = counts[threadIdx.x];
    __syncthreads();
  }
}

// A block handles a tile in four rounds of 256 edges. An edge's place is the scanned sum of its digit and tile,
// plus the number of edges with the same digit in earlier rounds of the tile, in earlier warps and in lower lanes.
// parts, unless null, holds what must be added to digits (see sample_scan_parts). Bytes: 16 an edge, 2 KB a tile;
// 10^6 edges: 18 MB, 4 µs.
KERNEL bysource_place(int *__restrict__ outKeys, int *__restrict__ outValues, const int *__restrict__ keys, const int *__restrict__ values,
                      const i64 *__restrict__ digits, const i64 *__restrict__ parts, i64 shift, const i64 *__restrict__ edges) {
  __shared__ u32 counts[8][256];
  __shared__ i64 next[256];
  i64 n = *edges, tiles = (n + TILE - 1) / TILE;
  int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
  for (i64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    i64 at = threadIdx.x * tiles + tile;
    next[threadIdx.x] = digits[at] + (parts ? parts[at / PART] : 0);
    for (int i = 0; i < TILE; i += 256) {
      i64 e = tile * TILE + i + threadIdx.x;
#pragma unroll
      for (int w = 0; w < 8; w++) counts[w][threadIdx.x] = 0;
      __syncthreads();
      u32 key = e < n ? (u32)keys[e] : 0, digit = e < n ? key >> shift & 255 : 256;
      u32 same = __match_any_sync(~0u, digit), rank = __popc(same & ((1u << lane) - 1));
      if (e < n && rank == 0) counts[warp][digit] = __popc(same);
      __syncthreads();
      u32 sum = 0;
#pragma unroll
      for (int w = 0; w < 8; w++) {
        u32 c = counts[w][threadIdx.x];
        counts[w][threadIdx.x] = sum;
        sum += c;
      }
      __syncthreads();
      if (e < n) {
        i64 to = next[digit] + counts[warp][digit] + rank;
        outKeys[to] = (int)key;
        outValues[to] = values ? values[e] : (int)e;
      }
      __syncthreads();
      next[threadIdx.x] += sum;
    }
    __syncthreads();
  }
}

// indptr[s] = the position of the first edge whose source is s or later, for s up to *sources; dst[i] = the
// destination of edge[i]. Bytes: 12 an edge, 8 a source and 4·log2(edges) from the cache; 10^6 edges: 16 MB, 3 µs.
KERNEL bysource_finish(i64 *__restrict__ indptr, int *__restrict__ dst, const int *__restrict__ edge, const int *__restrict__ keys,
                       const int *__restrict__ dstOf, const i64 *__restrict__ edges, const i64 *__restrict__ sources) {
  i64 n = *edges, rows = *sources, stride = (i64)gridDim.x * blockDim.x, first = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  for (i64 i = first; i < n; i += stride) dst[i] = dstOf[edge[i]];
  for (i64 s = first; s <= rows; s += stride) {
    i64 low = 0, high = n; // keys before low are less than s, keys from high on are not
    while (low < high) {
      i64 mid = (low + high) / 2;
      if (keys[mid] < s)
        low = mid + 1;
      else
        high = mid;
    }
    indptr[s] = low;
  }
}
