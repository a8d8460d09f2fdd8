// Lists the rows of a block that have more than LONG edges, ascending, for the kernels of hub.cuh. The rows are the
// block's destinations, or its sources in the transposed block.
#include "long.cuh"
#include "sample.cuh"

// list i32 [edges/(LONG+1)+1] gets the rows, *count their number. rowOf[e] is the row of edge e, ascending; indptr
// i64 [rows+1]. Every long row has an edge whose number is a multiple of LONG+1, so the kernel looks only at these
// edges, and the first of a row lists the row. Grid: one block, in which a thread handles SCAN of these edges a
// round. Bytes: 20 for each of these edges, 96 with the sectors that random reads transfer; 10^6 edges: 0.4 MB,
// 0.1 µs, but two rounds of three dependent reads take about 4 µs.
KERNEL long_rows(int *__restrict__ list, i64 *__restrict__ count, const i64 *__restrict__ indptr, const int *__restrict__ rowOf,
                 const i64 *__restrict__ edges, const i64 *__restrict__ rows) {
  i64 n = *edges / (LONG + 1), known = *rows, before = 0;
  for (i64 from = 0; from <= n; from += PART) {
    int found[SCAN];
    i64 sum = 0;
#pragma unroll
    for (int i = 0; i < SCAN; i++) {
      i64 e = (from + SCAN * threadIdx.x + i) * (LONG + 1);
      found[i] = e < *edges ? rowOf[e] : -1;
      // If the graph changes while it is sampled, rowOf can name rows that do not exist.
      if ((u64)(i64)found[i] >= (u64)known) found[i] = -1;
      if (found[i] < 0) continue;
      i64 at = indptr[found[i]];
      if (e - at > LONG || indptr[found[i] + 1] - at <= LONG) found[i] = -1;
      sum += found[i] >= 0;
    }
    Sums s = blockSums(sum);
    i64 to = before + s.before;
#pragma unroll
    for (int i = 0; i < SCAN; i++)
      if (found[i] >= 0) list[to++] = found[i];
    before += s.all;
  }
  if (threadIdx.x == 0) *count = before;
}
