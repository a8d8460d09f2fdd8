// Package store puts a dataset where the kernels of a device read it: in the
// device's memory, in pinned memory of the host, or some of it here and the rest
// there.
//
//	s, err := store.Open(d, store.Data{Graph: g, Features: tensor.Table{F32: x.F32, F16: x.F16}, Cols: x.Cols}, store.Options{})
//	fmt.Println(s) // the graph (1.0 GiB) on the device; features of 2400000 nodes (935 MiB) on the device; …
//
// # Places
//
// What is put where is decided by the memory that is free ([Auto]) or by the
// caller. The graph comes first, then features: all of them on the
// device where they fit ([Device]); else the rows used most, those of the nodes
// with the most out-edges, with the others in pinned memory, which kernels read
// over the bus ([Cached]); else all of them there ([Pinned]); and where the host has
// no memory to pin, the CPU gathers each batch's rows and they are copied a batch ahead
// ([Stager]), and samples the graph ([Staged]). No place changes what is computed.
//
// How much the host lets workers pin is their demand together ([Host]): each pins a
// copy, except of mapped files, whose pages all of them pin.
package store
