// slots[ids[i]] = i: the position of each row of a batch among the rows that were copied to the device, which
// gather.cu and spmm.cu read. Ids are distinct. Bytes: 8 an id, 36 with the sector that a random write transfers;
// 0.55·10^6: 20 MB, 4 µs.
#include "common.cuh"

KERNEL slots_i32(int *__restrict__ slots, const int *__restrict__ ids, i64 n) {
  for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (i64)gridDim.x * blockDim.x) slots[ids[i]] = (int)i;
}
