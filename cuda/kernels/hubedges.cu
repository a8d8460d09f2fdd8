// edge_dot_f32 of edges.cu for destinations of more than LONG edges, which that leaves out: all groups of a block take
// edges of one. Bytes: those of edge_dot_f32, 4·cols, 4·heads and 4 an edge; 10^5 edges of 256 columns of one
// destination: 0.1 GB, 21 µs, and 4 ms by the one block of a head, where a group of lanes takes 35.
#include "hub.cuh"
#include "dots.cuh"

// Grid: as in hub.cuh, with heads in place of tiles.
KERNEL hub_edge_dot_f32(float *__restrict__ dw, const i64 *__restrict__ indptr, const int *__restrict__ indices, const float *__restrict__ dout,
                        const float *__restrict__ x, i64 first, i64 rows, i64 cols, i64 heads, i64 acc) {
  u32 group = groupMask();
  longRows(indptr, rows, heads * blockDim.x, [&](i64 d, i64 from, i64 to, i64 c, bool) {
    i64 k = c / blockDim.x;
    const float *g = dout + d * cols + k * (cols / heads);
    for (i64 next = from + (i64)threadIdx.y * BATCH; next < to; next += (i64)blockDim.y * BATCH)
      dots(dw, indices, g, x, next, to, first, cols, heads, k, group, acc);
  });
}
