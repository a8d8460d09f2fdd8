package typed

import (
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset/convert"
	"github.com/graphnb/graphnb/graphops/dataset/convert/converttest"
)

// A number of nodes that a small file invents takes no memory, and names of types that are no names are refused.
func TestDeclaredNodes(t *testing.T) {
	files := func(counts string) map[string]string {
		return map[string]string{
			"raw/num-node-dict.csv": "a,b\n" + counts + "\n", "raw/triplet-type-list.csv": "a,r,b\n", "raw/relations/a___r___b/edge.csv": "0,0\n",
			"raw/nodetype-has-label.csv": "a,b\nFalse,False\n", "split/s/nodetype-has-split.csv": "a,b\nTrue,False\n", "split/s/a/train.csv": "0\n", "split/s/a/valid.csv": "", "split/s/a/test.csv": "",
		}
	}
	converted(t, converttest.Put(t, files("3,2")), convert.Options{})
	refused(t, converttest.Put(t, files("2147483000,2")), convert.Options{}, "declares 2147483002 nodes")
	for _, name := range []string{".", "..", "a\nb"} {
		refused(t, converttest.Put(t, map[string]string{"nodes." + name + ".csv": "id\n1\n", "edges." + name + ".r." + name + ".csv": "source,target\n1,1\n"}), convert.Options{}, "name")
	}
}
