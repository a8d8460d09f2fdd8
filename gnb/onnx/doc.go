// Package onnx writes the network of a trained run as an ONNX model, for ONNX Runtime in Python, C#, Java or a browser.
//
//	e := gnb.Must(onnx.Export(ctx, run, ds, predict.Options{}))
//	defer e.Close()
//	gnb.Check(e.WriteFile("model.onnx"))
//
// The model computes the forward pass on a sampled block: its inputs are features of nodes, and the edges of each layer; its outputs
// are those of the task, as logits and probabilities or as numbers in the unit of the targets. What each of them is stands in the file,
// with the names of classes and features. A program that uses the model samples neighbours itself, or computes the whole graph. If the
// run predicts whole graphs, the inputs are the nodes and the edges of any number of graphs.
//
// [Exported.Example] makes the inputs for nodes of the dataset, with the outputs that package predict gives for them.
//
// # Caveats
//
// A network of numbers of edges is refused, and so is one that package [graphops/onnx] cannot record. A run that predicts links
// becomes a model of the embeddings of nodes; its decoder is not in it.
//
// [graphops/onnx]: https://pkg.go.dev/github.com/graphnb/graphnb/graphops/onnx
package onnx
