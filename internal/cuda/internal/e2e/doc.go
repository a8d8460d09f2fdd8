// Package e2e tests whole runs on GPUs: the calls of notebooks, worker processes, devices and
// libraries. Each worker uses package fakegpu's GPUs, and package fakelibs' cuBLAS and NCCL. It
// contains only tests.
package e2e
