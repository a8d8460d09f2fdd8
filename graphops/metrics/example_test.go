package metrics_test

import (
	"fmt"

	"github.com/graphnb/graphnb/graphops/metrics"
)

// Three of the four pairs of a positive and a negative have the positive above.
func ExampleROCAUC() {
	fmt.Println(metrics.ROCAUC([]float32{0.9, 0.6, 0.4, 0.1}, []int8{1, 0, 1, 0}))
	// Output: 0.75
}
