// Package onnx writes networks of package nn as ONNX models, which ONNX Runtime computes in Python, C#, Java or a browser.
//
//	params, err := nn.Collect(model)
//	…
//	m, err := onnx.Export(model, params, onnx.Options{In: 128})
//	err = m.WriteFile("model.onnx")
//
// The model computes the forward pass of evaluation over the blocks of a batch. Its inputs are those of [Model].Inputs: the
// features of the first block's sources, and for each layer the edges, as rows of sources and destinations, and the number of
// destinations, which are the first sources. All of these numbers are free, and can be 0. Its output is that of [nn.Forward], within
// rounding. [ExportGraphs] does the same for a network of whole graphs.
//
// # How it works
//
// There is no table of layers. Export runs the model on a [ops.Backend] that records operations instead of computing them, so the
// layers of other packages are exported too. What a layer computes on the host from the edges of a block, such as the weights of a
// GCN, comes to the backend as plain numbers. Export knows the quantities that the layers of package nn derive, and finds them by
// their values on two made-up batches with different edges. Numbers that are equal in both are constants. Others are an error, and
// so are two batches that are computed by different operations: a model is never silently wrong for another batch.
//
// # Caveats
//
// Dropout is off, and batch normalisation uses its running statistics. A layer that computes on the host with [tensor.Fwd.Custom]
// cannot be exported. The file is smaller than 2 GiB.
//
// Source: the ONNX specification, https://onnx.ai/onnx/repo-docs/IR.html, of operator set 18.
package onnx
