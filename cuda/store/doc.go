// Package store puts a dataset where the kernels of a device read it: in the
// device's memory, in pinned memory of the host, or some of it here and the rest
// there.
//
//	s, err := store.Open(d, store.Data{Graph: g, Features: x.F32, Cols: x.Cols, Labels: y}, store.Options{})
//	fmt.Println(s) // the graph (1.0 GB) on the device; features of 2400000 nodes (980 MB) on the device; …
//
// # Places
//
// What is put where is decided by the memory that is free ([Auto]) or by the
// caller. Labels and the graph come first, then features: all of them on the
// device where they fit ([Device]); else the rows used most, those of the nodes
// with the most out-edges, with the others in pinned memory, which kernels read
// over the bus ([Cached]); else all of them there ([Pinned]); and where the host
// pins no memory, each batch's rows are copied ([Staged]). No place changes what
// is computed.
package store
