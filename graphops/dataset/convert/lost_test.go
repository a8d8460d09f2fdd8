package convert

import (
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset/notice"
)

// Whole numbers that float32 cannot hold are counted, whatever they are read from, and the dataset keeps the notice.
func TestLostDigits(t *testing.T) {
	index := npyFile("<i8", "2, 3", []int64{0, 1, 2, 1, 2, 3})
	for _, c := range []struct {
		name  string
		files map[string]string
		o     Options
		want  int64 // numbers lost
	}{
		{"csv", map[string]string{"nodes.csv": "id,account\na,16777216\nb,16777217\nc,1700000001\n", "edges.csv": "source,target\na,b\n"}, Options{}, 2},
		{"csv, exact", map[string]string{"nodes.csv": "id,f\na,16777216\nb,0.1\nc,33554432\n", "edges.csv": "source,target\na,b\n"}, Options{}, 0},
		{"csv, edges", map[string]string{"nodes.csv": "id,f\na,1\nb,2\n", "edges.csv": "source,target,weight,x\na,b,16777217,1700000001\n"}, Options{EdgeFeatures: "x"}, 2},
		{"int64", map[string]string{"edge_index.npy": index, "x.npy": npyFile("<i8", "4, 1", []int64{16777216, 16777217, 1700000000, 1700000001})}, Options{}, 2},
		{"float64", map[string]string{"edge_index.npy": index, "x.npy": npyFile("<f8", "4, 1", []float64{16777217, .1, 1e-60, 3})}, Options{}, 2},
		{"edge list", map[string]string{"g.txt": "0 1 16777217\n1 2 1e-60\n2 0 3\n"}, Options{}, 2},
		{"edge list with times", map[string]string{"g.txt": "0 1 1700000001\n1 2 1700000003\n2 0 1700000005\n"}, Options{}, 0},
		{"weights and features of edges", map[string]string{"edge_index.npy": index, "edge_weight.npy": npyFile("<f8", "3,", []float64{16777216, 16777217, 1e-50}), "edge_attr.npy": npyFile("<f8", "3, 1", []float64{1700000000, 1700000001, 2})}, Options{}, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, _ := converted(t, putFile(t, c.files), c.o)
			n := int64(0)
			for _, x := range d.Meta.Notices {
				if x.Kind == notice.Unrepresentable {
					n += x.Count
				}
			}
			if n != c.want {
				t.Errorf("%d numbers are lost, want %d: %v", n, c.want, d.Meta.Notices)
			}
		})
	}
}
