package onnx_test

import (
	"fmt"

	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/onnx"
)

// The inputs of a network of two layers.
func ExampleExport() {
	net := nn.NewSAGEModel(nn.ModelConfig{In: 16, Hidden: 32, Out: 4, Layers: 2})
	params, err := nn.Collect(net)
	if err != nil {
		fmt.Println(err)
		return
	}
	params.Init(1)
	model, err := onnx.Export(net, params, onnx.Options{In: 16})
	if err != nil {
		fmt.Println(err)
		return
	}
	model.Probabilities("probabilities", false, "the probabilities of the classes")
	for _, v := range append(model.Inputs, model.Outputs...) {
		fmt.Println(v.Name, v.Shape)
	}
	// Output:
	// x [nodes 16]
	// src_0 [edges_0]
	// dst_0 [edges_0]
	// num_dst_0 [1]
	// src_1 [edges_1]
	// dst_1 [edges_1]
	// num_dst_1 [1]
	// output [destinations_1 4]
	// probabilities [destinations_1 4]
}
