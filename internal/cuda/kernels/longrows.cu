// Lists the chunks of a block's rows of more than LONG edges for the kernels of hub.cuh, ascending. The rows are the
// block's destinations, or its sources in the transposed block.
#include "long.cuh"
#include "sample.cuh"

// list [edges/LONG+1] gets the chunks, *count their number plus 2^32 times the number of partial results. rowOf[e]
// is the row of edge e, ascending; indptr i64 [rows+1]. A long row has no fewer edges whose numbers are multiples of
// LONG than chunks, so the kernel looks only at these edges, and the i-th of a row lists its chunk i. Grid: one
// block, in which a thread handles SCAN of these edges a round. Bytes: 36 for each of these edges, 112 with the
// sectors that random reads transfer; 10^6 edges: 0.44 MB, 0.1 µs, but two rounds of three dependent reads take
// about 4 µs.
KERNEL long_rows(Chunk *__restrict__ list, i64 *__restrict__ count, const i64 *__restrict__ indptr, const int *__restrict__ rowOf,
                 const i64 *__restrict__ edges, const i64 *__restrict__ rows) {
  const i64 ONE_PART = (i64)1 << 32;  // chunks and partial results are summed in the halves of a word
  i64 n = *edges / LONG, known = *rows, before = 0;
  for (i64 from = 0; from <= n; from += PART) {
    Chunk found[SCAN];
    i64 sum = 0;
#pragma unroll
    for (int i = 0; i < SCAN; i++) {
      i64 e = (from + SCAN * threadIdx.x + i) * LONG;
      found[i] = {e < *edges ? rowOf[e] : -1, 0, 0, 0};
      // If the graph changes while it is sampled, rowOf can name rows that do not exist or do not have the edge.
      if ((u64)(i64)found[i].row >= (u64)known) continue;
      i64 at = indptr[found[i].row], to = indptr[found[i].row + 1];
      if (e < at || e >= to || to - at <= LONG) continue;
      i64 number = (e - at) / LONG, of = (to - at + CHUNK - 1) / CHUNK;
      if (number >= of) continue;
      found[i].number = (int)number;
      found[i].of = (int)of;
      sum += of > 1 ? ONE_PART + 1 : 1;
    }
    Sums s = blockSums(sum);
    i64 to = before + s.before;
#pragma unroll
    for (int i = 0; i < SCAN; i++) {
      if (found[i].of == 0) continue;
      found[i].part = (int)(to >> 32);
      list[(u32)to] = found[i];
      to += found[i].of > 1 ? ONE_PART + 1 : 1;
    }
    before += s.all;
  }
  if (threadIdx.x == 0) *count = before;
}
