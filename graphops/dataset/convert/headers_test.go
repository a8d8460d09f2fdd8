package convert

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/internal/testneed"
)

// Counts in the headers of OGB's folders and of arrays that do not match the files, however large, are one sentence that costs
// no memory.
func TestHostileCounts(t *testing.T) {
	testneed.Raced(t, "it converts a hundred folders")
	counts := []string{
		"-1", "-9223372036854775808", "0", "4", "6", "2147483646", "2147483647", "2147483648", "4294967296", "1099511627776", "4611686018427387904",
		"9223372036854775807", "9223372036854775808", "18446744073709551616", "1e30", "1e9", "2.5", "nan", "inf", "0x10", "", "5,5", "5\n5", strings.Repeat("9", 400),
	}
	arrays := map[string]string{
		"raw/data.npz":         npzFile(map[string]string{"edge_index": npyFile("<i8", "2, 2", []int64{0, 1, 1, 2}), "node_feat": npyFile("<f4", "3, 1", []float32{1, 2, 3})}),
		"raw/node-label.npz":   npzFile(map[string]string{"node_label": npyFile("<i8", "3, 1", []int64{0, 1, 0})}),
		"split/time/train.csv": "0\n", "split/time/valid.csv": "1\n", "split/time/test.csv": "2\n",
	}
	numpy := map[string]string{
		"edge_index.npy": npyFile("<i8", "2, 2", []int64{0, 1, 1, 2}), "x.npy": npyFile("<f4", "3, 1", []float32{1, 2, 3}), "y.npy": npyFile("<i8", "3,", []int64{0, 1, 0}),
		"train_mask.npy": npyFile("|b1", "3,", []bool{true, false, false}), "edge_weight.npy": npyFile("<f4", "2,", []float32{1, 2}),
	}
	type change struct {
		name  string
		files map[string]string
	}
	var all []change
	add := func(files map[string]string, file, text, what string) {
		bad := map[string]string{file: text}
		for name, old := range files {
			if name != file && strings.TrimSuffix(name, ".gz") != file {
				bad[name] = old
			}
		}
		all = append(all, change{file + " with " + what, bad})
	}
	for _, n := range counts {
		add(ogbFiles(), "raw/num-node-list.csv", n+"\n", n)
		if n != "0" && n != "4" { // 0 is no count, and 4 is right
			add(ogbFiles(), "raw/num-edge-list.csv", n+"\n", n)
		}
	}
	for _, n := range []string{"-1", "2147483648", "4611686018427387904", "9223372036854775807", "9223372036854775808", "99999999999999999999", "1.5", "", "x"} {
		for _, shape := range []string{n + ",", "2, " + n, n + ", 2", n + ", " + n, "0, " + n} {
			add(arrays, "raw/data.npz", npzFile(map[string]string{"edge_index": npyFile("<i8", shape, []int64{0, 1, 1, 2})}), "edge_index "+shape)
			add(arrays, "raw/node-label.npz", npzFile(map[string]string{"node_label": npyFile("<i8", shape, []int64{0, 1, 0})}), "node_label "+shape)
			for _, file := range []string{"edge_index.npy", "x.npy", "y.npy", "train_mask.npy", "edge_weight.npy"} {
				add(numpy, file, npyFile("<i8", shape, []int64{0, 1, 1, 2}), shape)
			}
		}
	}
	converted(t, putFile(t, arrays), Options{})
	converted(t, putFile(t, numpy), Options{})
	var before, after runtime.MemStats
	for _, c := range all {
		src := putFile(t, c.files)
		runtime.ReadMemStats(&before)
		_, err := Convert(t.Context(), src, filepath.Join(t.TempDir(), "out"), Options{})
		runtime.ReadMemStats(&after)
		took := after.TotalAlloc - before.TotalAlloc
		if err == nil || strings.ContainsAny(err.Error(), "\n\r") || len(err.Error()) > 700 || strings.Contains(err.Error(), "runtime error") {
			t.Errorf("%s: %v", c.name, err)
		}
		if took > 64<<20 {
			t.Errorf("%s: refusing it took %d bytes", c.name, took)
		}
	}
	t.Log(fmt.Sprint(len(all), " folders were refused"))
}
