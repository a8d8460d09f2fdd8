// LONG is the largest number of edges of a row that one group of lanes handles. The kernels of hub.cuh handle
// longer rows, in chunks of CHUNK edges.
#pragma once
#define LONG 256
#define CHUNK (2 * LONG)

// Chunk is chunk `number`, from 0, of the `of` chunks of a long row: the row's edges from number·CHUNK on, at most
// CHUNK of them. part is the index of the chunk's partial result, which exists if of > 1; those of a row are
// consecutive.
struct __align__(16) Chunk {
  int row, number, of, part;
};
