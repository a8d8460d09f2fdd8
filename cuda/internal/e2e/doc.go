// Package e2e tests whole runs on GPUs: notebooks' calls, worker processes, devices, libraries. The GPUs
// are package fakegpu's, in each worker, and cuBLAS and NCCL are package fakelibs'. It holds tests only.
package e2e
