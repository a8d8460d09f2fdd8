// Package store places a dataset where the kernels of a device can read it: in the device's memory,
// in pinned memory of the host, or partly in each.
//
//	s, err := store.Open(d, store.Data{Graph: g, Features: tensor.Table{F32: x.F32, F16: x.F16}, Cols: x.Cols}, store.Options{})
//	fmt.Println(s) // the graph (1.0 GiB) on the device; features of 2400000 nodes (935 MiB) on the device; …
//
// # Places
//
// The caller chooses the place, or [Auto] chooses it by the free memory. The graph is placed first,
// then the features. Features are all on the device if they fit ([Device]). Otherwise the most used
// rows, those of the nodes with the most out-edges, are on the device, and the others in pinned
// memory, which kernels read over the bus ([Cached]); or all are in pinned memory ([Pinned]). If
// the host cannot pin enough memory, the CPU samples the graph and gathers each batch's rows, which
// are copied one batch ahead ([Staged], [Stager]). The place does not change any result.
//
// The host's memory must suffice for all workers together ([Host]): each worker pins its own copy,
// except of mapped files, whose pages they share.
package store
