// LONG is the most edges of a row that a group of lanes takes by itself; the kernels of hub.cuh take the longer rows.
#pragma once
#define LONG 256
