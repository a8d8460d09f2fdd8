package convert

import (
	"testing"
)

// A number of nodes that a small file invents takes no memory, and names of types that are no names are refused.
func TestDeclaredNodes(t *testing.T) {
	files := func(counts string) map[string]string {
		return map[string]string{
			"raw/num-node-dict.csv": "a,b\n" + counts + "\n", "raw/triplet-type-list.csv": "a,r,b\n", "raw/relations/a___r___b/edge.csv": "0,0\n",
			"raw/nodetype-has-label.csv": "a,b\nFalse,False\n", "split/s/nodetype-has-split.csv": "a,b\nTrue,False\n", "split/s/a/train.csv": "0\n", "split/s/a/valid.csv": "", "split/s/a/test.csv": "",
		}
	}
	typedConverted(t, putFile(t, files("3,2")), Options{})
	typedRefused(t, putFile(t, files("2147483000,2")), Options{}, "declares 2147483002 nodes")
	for _, name := range []string{".", "..", "a\nb"} {
		typedRefused(t, putFile(t, map[string]string{"nodes." + name + ".csv": "id\n1\n", "edges." + name + ".r." + name + ".csv": "source,target\n1,1\n"}), Options{}, "name")
	}
}
