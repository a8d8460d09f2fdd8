package datasets_test

import (
	"fmt"

	"github.com/graphnb/graphnb/graphops/datasets"
)

func ExampleLoad() {
	d, err := datasets.Load("planted?nodes=2000&classes=4&seed=1")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	fmt.Println(d.Nodes(), d.FeatureDim(), d.Classes(), d.SplitNames())
	// Output: 2000 50 4 [train val test]
}
