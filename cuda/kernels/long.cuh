// LONG is the largest number of edges of a row that one group of lanes handles. The kernels of hub.cuh handle
// longer rows.
#pragma once
#define LONG 256
