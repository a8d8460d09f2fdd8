package optim_test

import (
	"fmt"

	"github.com/graphnb/graphnb/graphops/optim"
)

func ExampleClipScale() {
	gradient := []float32{3, 4} // the gradient of a sum with total weight 10
	scale, norm := optim.ClipScale(gradient, 1.0/10, 0.25)
	fmt.Printf("norm %.2f, scale %.3f\n", norm, scale)
	// Output: norm 0.50, scale 0.050
}

// A step on w² from w = 1, whose gradient is 2.
func ExampleAdam() {
	adam := optim.NewAdam(optim.AdamOptions{LR: 0.1})
	w := []float32{1}
	adam.Step(w, []float32{2}, 1)
	fmt.Printf("%.2f\n", w)
	// Output: [0.90]
}
