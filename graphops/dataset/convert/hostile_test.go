package convert

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/graphnb/graphnb/internal/tabular"
	"github.com/graphnb/graphnb/internal/testneed"
)

// Every damaged text is refused; the error names the line and the reason.
func TestHostileText(t *testing.T) {
	long := gz(strings.Repeat("12345 67890\n54321 9876\n", 20000))
	for name, tc := range map[string]struct {
		file, text string
		words      []string
	}{
		"negative id":          {"g.txt", "0 1\n2 -3\n", []string{"line 2", "-3", "negative"}},
		"huge id":              {"g.txt", "0 1\n1 99999999999\n", []string{"99999999999", "int32", "--relabel"}},
		"id of 30 digits":      {"g.txt", "0 1\n1 999999999999999999999999999999\n", []string{"line 2", "not a node id"}},
		"sparse ids":           {"g.txt", "0 1\n5 2147483000\n", []string{"2147483000", "--relabel"}},
		"few of the ids":       {"g.txt", "0 1\n2 3\n29 28\n", []string{"up to 29", "at most 6 of them", "--relabel"}},
		"fraction":             {"g.txt", "0 1\n1 2.5\n", []string{"line 2", `"2.5"`}},
		"one column":           {"g.txt", "0 1\n2\n", []string{"line 2", "one column"}},
		"four columns":         {"g.txt", "0 1\n1 2 3 4\n", []string{"line 2", "more columns"}},
		"weights now and then": {"g.txt", "0 1\n1 2 0.5\n", []string{"line 2", "3 columns", "line 1 has 2"}},
		"weight NaN":           {"g.txt", "0 1 1\n1 2 nan\n", []string{"line 2", "weight"}},
		"negative weight":      {"g.txt", "0 1 1\n1 2 -1\n", []string{"line 2", "weight"}},
		"weight too large":     {"g.txt", "0 1 1\n1 2 1e39\n", []string{"line 2", "weight"}},
		"binary inside":        {"g.txt", "0 1\n\x00\x01\x02\n", []string{"line 2"}},
		"late header":          {"g.txt", "0 1\nsrc dst\n", []string{"line 2", `"src"`}},
		"fewer than declared":  {"g.txt", "# Nodes: 3 Edges: 7\n0 1\n1 2\n", []string{"7 edges", "there are 2", "cut off"}},
		"truncated gzip":       {"g.txt.gz", long[:len(long)*2/3], []string{"g.txt.gz", "cut off", "byte"}},
		"gzip header alone":    {"g.txt.gz", long[:5], []string{"g.txt.gz", "gzip"}},
		"gzip without its end": {"g.txt.gz", long[:len(long)-3], []string{"g.txt.gz", "cut off"}},
		"damaged gzip":         {"g.txt.gz", long[:len(long)-6] + "zz" + long[len(long)-4:], []string{"g.txt.gz", "checksum"}},
		"gzip and more":        {"g.txt.gz", gz("0 1\n") + "garbage", []string{"g.txt.gz"}},
		"xz":                   {"g.txt.xz", "\xfd7zXZ\x00aaaa", []string{"g.txt.xz", "begins like an xz file"}},
		"zstd":                 {"g.txt.zst", "\x28\xb5\x2f\xfdaaaa", []string{"zstd -dk"}},
		"empty":                {"g.txt", "", []string{"no known format"}},

		"jlg too few edges":   {"g.jlg", "3,3,u,g\n1,2\n2,3\n", []string{"3 edges", "there are 2"}},
		"jlg id 0":            {"g.jlg", "3,2,u,g\n0,2\n2,3\n", []string{"line 2", "counted from 1"}},
		"jlg id too large":    {"g.jlg", "3,2,u,g\n1,2\n2,4\n", []string{"node 4", "1 to 3"}},
		"jlg lying nodes":     {"g.jlg", "2147483647,2,u,g\n1,2\n2,3\n", []string{"2147483647 nodes", "only 2 edges"}},
		"jlg lying edges":     {"g.jlg", "3,99999999999,u,g\n1,2\n2,3\n", []string{"99999999999 edges"}},
		"jlg too many nodes":  {"g.jlg", "2147483648,2,u,g\n1,2\n2,3\n", []string{"2147483648"}},
		"dimacs kind":         {"g.gr", "p flow 3 2\na 1 2 1\n", []string{"line 1", "flow"}},
		"dimacs edge mark":    {"g.gr", "p sp 3 2\na 1 2 1\nb 2 3 1\n", []string{"line 3", "not an edge"}},
		"dimacs lying nodes":  {"g.gr", "p sp 2000000000 1\na 1 2 1\n", []string{"2000000000 nodes"}},
		"dimacs lying edges":  {"g.gr", "p tw 3 400000000000\n1 2\n", []string{"400000000000 edges"}},
		"dimacs id too large": {"g.gr", "p tw 3 1\n1 9\n", []string{"node 9"}},

		"metis lying nodes":      {"g.graph", "2000000000 1\n2\n1\n", []string{"2000000000 nodes", "lines for 2"}},
		"metis lying edges":      {"g.graph", "2 900000000000\n2\n1\n", []string{"900000000000 edges"}},
		"metis id 0":             {"g.graph", "2 1\n2\n0\n", []string{"line 3", "neighbour 0"}},
		"metis id too large":     {"g.graph", "2 1\n2\n3\n", []string{"line 3", "neighbour 3"}},
		"metis negative id":      {"g.graph", "2 1\n2\n-1\n", []string{"line 3", "neighbour -1"}},
		"metis no number":        {"g.graph", "2 1\n2\nx\n", []string{"line 3", `"x"`}},
		"metis too many lines":   {"g.graph", "2 1\n2\n1\n1\n", []string{"line 4", "more lines"}},
		"metis one direction":    {"g.graph", "3 1\n2 3\n\n\n", []string{"one of its nodes only"}},
		"metis weight missing":   {"g.graph", "2 1 1\n2 5\n1\n", []string{"line 3", "no weight"}},
		"metis weight no number": {"g.graph", "2 1 1\n2 5\n1 y\n", []string{"line 3", `"y"`}},
		"metis too many nodes":   {"g.graph", "3000000000 1\n2\n1\n", []string{"3000000000", "int32"}},
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, one(t, tc.file, tc.text), Options{}, tc.words...)
		})
	}
}

// Every folder with a missing, damaged or contradictory file is refused.
func TestHostileFolders(t *testing.T) {
	testneed.Raced(t, "it converts some hundred folders")
	const gone = "\x00gone"
	csr := func(indptr, indices []int32) string {
		return npzFile(map[string]string{"indptr": npyFile("<i4", itoa(len(indptr))+",", indptr), "indices": npyFile("<i4", itoa(len(indices))+",", indices)})
	}
	sage := map[string]string{
		"t-G.json":         `{"directed": false, "nodes": [{"id": 0, "val": false, "test": false}, {"id": 1, "val": true, "test": false}], "links": [{"source": 0, "target": 1}]}`,
		"t-id_map.json":    `{"0": 0, "1": 1}`,
		"t-class_map.json": `{"0": 0, "1": 1}`,
	}
	deep := strings.Repeat("[", 5000)
	for kind, tc := range map[string]struct {
		good  map[string]string
		cases map[string]struct {
			file, text string
			words      []string
		}
	}{
		"graphsaint": {saintFiles(), map[string]struct {
			file, text string
			words      []string
		}{
			"no classes":           {"class_map.json", gone, []string{"class_map.json is missing", "classes"}},
			"no roles":             {"role.json", gone, []string{"role.json is missing", "split"}},
			"no graph":             {"adj_full.npz", gone, []string{"adj_full.npz is missing", "graph"}},
			"graph is not a zip":   {"adj_full.npz", "PK\x03\x04 nonsense", []string{"adj_full.npz"}},
			"graph cut off":        {"adj_full.npz", saintFiles()["adj_full.npz"][:700], []string{"adj_full.npz"}},
			"no indices":           {"adj_full.npz", npzFile(map[string]string{"indptr": npyFile("<i4", "2,", []int32{0, 0})}), []string{"adj_full.npz", "indices"}},
			"negative id":          {"adj_full.npz", csr([]int32{0, 1, 1}, []int32{-1}), []string{"adj_full.npz:indices", "entry 0", "-1"}},
			"id out of range":      {"adj_full.npz", csr([]int32{0, 1, 2}, []int32{1, 2}), []string{"adj_full.npz:indices", "entry 1", "0 to 1"}},
			"indptr falls":         {"adj_full.npz", csr([]int32{0, 2, 1, 2}, []int32{1, 2}), []string{"adj_full.npz:indptr", "entry 2"}},
			"indptr starts at 1":   {"adj_full.npz", csr([]int32{1, 2}, []int32{0, 0}), []string{"adj_full.npz:indptr", "entry 0"}},
			"indptr lies":          {"adj_full.npz", csr([]int32{0, 2000000000}, []int32{0}), []string{"indptr ends at 2000000000"}},
			"header lies":          {"adj_full.npz", npzFile(map[string]string{"indptr": npyFile("<i4", "99999999999,", []int32{0}), "indices": npyFile("<i4", "0,", []int32{})}), []string{"indptr", "99999999999"}},
			"floats as ids":        {"adj_full.npz", npzFile(map[string]string{"indptr": npyFile("<f4", "1,", []float32{0}), "indices": npyFile("<i4", "0,", []int32{})}), []string{"indptr", "whole numbers"}},
			"class of no node":     {"class_map.json", `{"5": 1}`, []string{"class_map.json", "byte", "node 5", "0 to 4"}},
			"class of node -1":     {"class_map.json", `{"-1": 1}`, []string{"node -1"}},
			"class of a word":      {"class_map.json", `{"x": 1}`, []string{`"x"`}},
			"class too large":      {"class_map.json", `{"0": 123456789}`, []string{"out of range", "1048575"}},
			"class no number":      {"class_map.json", `{"0": "1"}`, []string{"byte 6"}},
			"class twice":          {"class_map.json", `{"0": 1, "00": 1}`, []string{"two labels"}},
			"classes cut off":      {"class_map.json", `{"0": 1, "1`, []string{"class_map.json", "cut off"}},
			"classes empty":        {"class_map.json", `{}`, []string{"no labels"}},
			"lists of two lengths": {"class_map.json", `{"0": [1, 0], "1": [1]}`, []string{"list of 1", "have 2"}},
			"lists and numbers":    {"class_map.json", `{"0": 1, "1": [1]}`, nil},
			"label 2 in a list":    {"class_map.json", `{"0": [1, 2]}`, []string{"neither 0 nor 1"}},
			"few lists":            {"class_map.json", `{"0": [1, 0]}`, []string{"only 1 of 5"}},
			"nested":               {"class_map.json", `{"0": ` + deep, []string{"class_map.json"}},
			"something follows":    {"class_map.json", `{"0": 1} {`, []string{"follows"}},
			"role of no node":      {"role.json", `{"tr": [0], "va": [1], "te": [5]}`, []string{"role.json", "te", "node 5"}},
			"role negative":        {"role.json", `{"tr": [-1], "va": [1], "te": [2]}`, []string{"node -1"}},
			"role twice":           {"role.json", `{"tr": [0, 1], "va": [1], "te": [2]}`, []string{"node 1", "twice"}},
			"role missing":         {"role.json", `{"tr": [0], "va": [1]}`, []string{"te", "missing"}},
			"role unknown":         {"role.json", `{"tr": [0], "xx": [1]}`, []string{"xx"}},
			"role a fraction":      {"role.json", `{"tr": [0.5]}`, []string{"byte", "0.5"}},
			"features of 3 nodes":  {"feats.npy", npyFile("<f4", "3, 1", []float32{1, 2, 3}), []string{"feats.npy", "3 rows", "5 nodes"}},
			"features infinite":    {"feats.npy", npyFile("<f4", "5, 1", []float32{1, 2, 3, float32(math.Inf(1)), 5}), []string{"feats.npy", "entry 3", "Inf"}},
			"features beyond f32":  {"feats.npy", npyFile("<f8", "5, 1", []float64{1, 2, 3, 1e300, 5}), []string{"feats.npy", "entry 3"}},
			"features cut off":     {"feats.npy", saintFiles()["feats.npy"][:150], []string{"feats.npy", "22 bytes"}},
			"features are objects": {"feats.npy", npyFile("|O", "5, 1", []byte("\x80\x04cos\nsystem\n")), []string{"feats.npy"}},
			"features are not npy": {"feats.npy", "hello", []string{"feats.npy"}},
			"features lie":         {"feats.npy", npyFile("<f4", "5, 1000000000000", []float32{1}), []string{"feats.npy", "1000000000000"}},
		}},
		"ogb": {ogbFiles(), map[string]struct {
			file, text string
			words      []string
		}{
			"no edges":            {"raw/edge.csv.gz", gone, []string{"edge.csv.gz is missing"}},
			"no labels":           {"raw/node-label.csv.gz", gone, []string{"node-label.csv.gz is missing"}},
			"no count":            {"raw/num-node-list.csv.gz", gone, []string{"num-node-list.csv.gz is missing"}},
			"no split part":       {"split/time/valid.csv.gz", gone, []string{"valid.csv.gz is missing"}},
			"edges cut off":       {"raw/edge.csv.gz", gz("0,1\n1,2\n")[:15], []string{"edge.csv.gz", "cut off"}},
			"edges out of range":  {"raw/edge.csv.gz", gz("0,1\n0,2\n1,2\n2,5\n"), []string{"edge.csv.gz", "node 5", "0 to 4"}},
			"edge negative":       {"raw/edge.csv.gz", gz("0,1\n0,-2\n1,2\n2,5\n"), []string{"edge.csv.gz", "line 2", "-2"}},
			"edges fewer":         {"raw/edge.csv.gz", gz("0,1\n0,2\n"), []string{"2 edges", "says 4"}},
			"edges with weights":  {"raw/edge.csv.gz", gz("0,1,3\n"), []string{"line 1", "columns"}},
			"count lies":          {"raw/num-node-list.csv.gz", gz("2000000000\n"), []string{"node-label.csv.gz", "5 nodes", "2000000000"}},
			"count negative":      {"raw/num-node-list.csv.gz", gz("-5\n"), []string{"-5"}},
			"count too large":     {"raw/num-node-list.csv.gz", gz("5000000000\n"), []string{"5000000000", "int32"}},
			"count empty":         {"raw/num-node-list.csv.gz", gz(""), []string{"empty"}},
			"several graphs":      {"raw/num-node-list.csv.gz", gz("5\n6\n"), []string{"several graphs"}},
			"edge count lies":     {"raw/num-edge-list.csv.gz", gz("999999999999\n"), []string{"999999999999"}},
			"labels fewer":        {"raw/node-label.csv.gz", gz("1\n2\n"), []string{"2 nodes", "5"}},
			"label too large":     {"raw/node-label.csv.gz", gz("1\n2\n1e9\n1\n1\n"), []string{"entry 2"}},
			"labels unknown":      {"raw/node-label.csv.gz", gz("nan\nnan\nnan\nnan\nnan\n"), []string{"every label"}},
			"features ragged":     {"raw/node-feat.csv.gz", gz("1,2\n3\n1,2\n1,2\n1,2\n"), []string{"node-feat.csv.gz", "line 2", "1 columns"}},
			"features nan":        {"raw/node-feat.csv.gz", gz("1,2\n1,nan\n1,2\n1,2\n1,2\n"), []string{"line 2", "column 2", "nan"}},
			"features fewer":      {"raw/node-feat.csv.gz", gz("1,2\n"), []string{"1 nodes", "5"}},
			"split out of range":  {"split/time/train.csv.gz", gz("0\n5\n"), []string{"train.csv.gz", "line 2", "node 5"}},
			"split negative":      {"split/time/train.csv.gz", gz("0\n-1\n"), []string{"train.csv.gz", "line 2", "node -1"}},
			"split twice":         {"split/time/train.csv.gz", gz("0\n0\n"), []string{"line 2", "twice"}},
			"split of words":      {"split/time/train.csv.gz", gz("a\n"), []string{"line 1", `"a"`}},
			"two schemes":         {"split/other/train.csv.gz", gz("0\n"), []string{"other, time", "--name"}},
			"edges are not gzip":  {"raw/edge.csv.gz", "\x00\x01\x02\x03", []string{"edge.csv.gz", "line 1"}},
			"labels are a folder": {"raw/node-label.csv.gz/x", "", nil},
		}},
		"numpy": {numpyFiles(), map[string]struct {
			file, text string
			words      []string
		}{
			"edges out of range": {"edge_index.npy", npyFile("<i8", "2, 1", []int64{0, 5}), []string{"edge_index.npy", "entry 1", "5"}},
			"edges negative":     {"edge_index.npy", npyFile("<i8", "2, 1", []int64{-1, 0}), []string{"edge_index.npy", "entry 0", "-1"}},
			"edges of 3 rows":    {"edge_index.npy", npyFile("<i8", "3, 1", []int64{0, 1, 2}), []string{"edge_index.npy", "[3, 1]"}},
			"edges of floats":    {"edge_index.npy", npyFile("<f4", "2, 1", []float32{0, 1}), []string{"whole numbers"}},
			"edges cut off":      {"edge_index.npy", npyFile("<i8", "2, 4", []int64{0, 1}), []string{"edge_index.npy", "cut off"}},
			"weights fewer":      {"edge_weight.npy", npyFile("<f4", "3,", []float32{1, 1, 1}), []string{"edge_weight.npy", "4 edges"}},
			"weight nan":         {"edge_weight.npy", npyFile("<f4", "4,", []float32{1, 1, float32(math.NaN()), 1}), []string{"edge_weight.npy", "entry 2"}},
			"labels in 3 dims":   {"y.npy", npyFile("<i8", "5, 1, 1", []int64{0, 0, 0, 0, 0}), []string{"y.npy", "[5, 1, 1]"}},
			"label too large":    {"y.npy", npyFile("<i8", "5,", []int64{0, 1 << 40, 0, 0, 0}), []string{"y.npy", "entry 1"}},
			"features fewer":     {"x.npy", npyFile("<f4", "4, 1", []float32{0, 0, 0, 0}), []string{"x.npy", "4 rows"}},
			"features flat":      {"x.npy", npyFile("<f4", "5,", []float32{0, 0, 0, 0, 0}), []string{"x.npy", "[5]"}},
			"mask short":         {"train_mask.npy", npyFile("|b1", "4,", []byte{1, 1, 1, 1}), []string{"train_mask.npy", "4 entries"}},
			"split out of range": {"valid_idx.npy", npyFile("<i4", "1,", []int32{5}), []string{"valid_idx.npy", "entry 0", "node 5"}},
			"split twice":        {"valid_idx.npy", npyFile("<i4", "2,", []int32{1, 1}), []string{"entry 1", "twice"}},
		}},
		"graphsage": {sage, map[string]struct {
			file, text string
			words      []string
		}{
			"no id map":        {"t-id_map.json", gone, []string{"t-id_map.json is missing"}},
			"no classes":       {"t-class_map.json", gone, []string{"t-class_map.json is missing"}},
			"ids not in order": {"t-id_map.json", `{"0": 0, "1": 2}`, []string{"t-id_map.json", "node 2"}},
			"ids twice":        {"t-id_map.json", `{"0": 0, "1": 0}`, []string{"twice"}},
			"id negative":      {"t-id_map.json", `{"0": -1}`, []string{"-1"}},
			"link to nowhere":  {"t-G.json", `{"nodes": [{"id": 0}, {"id": 1}], "links": [{"source": 0, "target": 7}]}`, []string{"t-G.json", "node 7"}},
			"link negative":    {"t-G.json", `{"nodes": [{"id": 0}, {"id": 1}], "links": [{"source": 0, "target": -7}]}`, []string{"byte", "-7"}},
			"link to a word":   {"t-G.json", `{"nodes": [{"id": 0}], "links": [{"source": "0", "target": "z"}]}`, []string{`"z"`}},
			"link half":        {"t-G.json", `{"nodes": [{"id": 0}], "links": [{"source": 0}]}`, []string{"no target"}},
			"node unknown":     {"t-G.json", `{"nodes": [{"id": 9}], "links": []}`, []string{`"9"`, "id map"}},
			"node twice":       {"t-G.json", `{"nodes": [{"id": 0}, {"id": 0}], "links": []}`, []string{"twice"}},
			"node without id":  {"t-G.json", `{"nodes": [{"val": true}], "links": []}`, []string{"no id"}},
			"no links":         {"t-G.json", `{"nodes": []}`, []string{"links"}},
			"cut off":          {"t-G.json", `{"nodes": [{"id": 0}, {"id"`, []string{"t-G.json", "cut off"}},
			"deep":             {"t-G.json", `{"graph": ` + deep + `]`, []string{"nested"}},
			"bad escape":       {"t-G.json", `{"gr\xph": 1}`, []string{"escape"}},
			"control in text":  {"t-G.json", "{\"gr\nph\": 1}", []string{"control"}},
			"class of nobody":  {"t-class_map.json", `{"7": 0}`, []string{`"7"`, "id map"}},
		}},
	} {
		if kind == "graphsage" {
			converted(t, putFile(t, tc.good), Options{}) // the file is valid without the damage, so the case tests only the damage
		}
		for name, c := range tc.cases {
			t.Run(kind+"/"+name, func(t *testing.T) {
				files := map[string]string{}
				for file, text := range tc.good {
					files[file] = text
				}
				if dir := filepath.Dir(c.file); files[dir] != "" {
					delete(files, dir)
				}
				files[c.file] = c.text
				if c.text == gone {
					delete(files, c.file)
				}
				refused(t, putFile(t, files), Options{}, c.words...)
			})
		}
	}
}

func TestHostileNames(t *testing.T) {
	dir := putFile(t, map[string]string{"in/a.txt": "0 1\n", "secret.txt": "0 1\n"})
	for _, name := range []string{"../secret", "..", ".hidden", "a/b", "/etc/passwd", `a\b`, "a b", "a\nb", "x..y", strings.Repeat("x", 101)} {
		refused(t, filepath.Join(dir, "in"), Options{Name: name}, "--name")
	}
	// An existing destination is left unchanged.
	dst := filepath.Join(dir, "there")
	if err := os.WriteFile(dst, []byte("mine"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Convert(t.Context(), filepath.Join(dir, "in", "a.txt"), dst, Options{}); err == nil || !strings.Contains(err.Error(), "exists") {
		t.Errorf("the error is %v; want that the destination exists", err)
	}
	if text, err := os.ReadFile(dst); err != nil || string(text) != "mine" {
		t.Errorf("the destination holds %q (%v) afterwards", text, err)
	}
	// Opening a named pipe would wait for a writer.
	pipe := filepath.Join(dir, "in", "pipe")
	if err := syscall.Mkfifo(pipe, 0o666); err != nil {
		t.Fatal(err)
	}
	refused(t, pipe, Options{}, "not a regular file")
}

// bomb returns n bytes, repetitions of text, compressed.
func bomb(t testing.TB, text string, n int) string {
	t.Helper()
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.DefaultCompression)
	if err != nil {
		t.Fatal(err)
	}
	chunk := []byte(strings.Repeat(text, 8<<20/len(text)))
	for range n / len(chunk) {
		if _, err := w.Write(chunk); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Claims in a file do not allocate memory: the memory of a process that converts hostile files
// stays within four times their size plus a fixed amount. With GNB_SOAK=1 the files have twice the size.
func TestHostileMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	size, honest := 64<<20, 8<<20
	if testneed.Soak.Here() {
		size, honest = 2*size, 2*honest
	}
	edges := bomb(t, "0 1\n", size)
	zeros := bomb(t, "\x00", size)
	withFile := func(files map[string]string, name, text string) map[string]string {
		files[name] = text
		return files
	}
	saint := func(arrays map[string]string) string {
		return putFile(t, withFile(saintFiles(), "adj_full.npz", deflated(t, arrays)))
	}
	// The files are valid up to their last line and have 4 bytes of text per edge.
	text := strings.Repeat("0 1\n7 3\n5 5\n", honest/12)
	var random strings.Builder
	for u := rand.New(rand.NewPCG(1, 2)); random.Len() < honest; {
		fmt.Fprintf(&random, "%d %d\n", u.IntN(1_000_000), u.IntN(1_000_000))
	}
	packed := gz(random.String())
	// Tables with an id and a label per line.
	var ids strings.Builder
	ids.WriteString("id,label\n")
	for i := 0; ids.Len() < honest; i++ {
		fmt.Fprintf(&ids, "%d,%d\n", i, i%10)
	}
	tables := func(nodes, edges string) string {
		return putFile(t, map[string]string{"nodes.csv": nodes, "edges.csv": edges})
	}
	for name, tc := range map[string]struct{ src, word string }{
		"csv nodes":        {src: tables(ids.String()+"0,1\n", "source,target\n0,1\n"), word: "unique"},
		"csv edges":        {src: tables(ids.String(), "source,target\n"+strings.Repeat("0,1\n1,7\n", honest/8)+"0,x\n"), word: "no node"},
		"csv of one quote": {src: tables("id\n\""+strings.Repeat("a", size/8), "source,target\n"), word: "quote"},
		"csv bomb":         {src: tables(bomb(t, "id\n", size), "source,target\n"), word: "nodes.csv"},
		"bad end":          {src: one(t, "g.txt", text+"1 -1\n"), word: "negative"},
		"bad end, gzip":    {src: one(t, "g.txt.gz", gz(random.String()+"1 -1\n")), word: "negative"},
		"cut off":          {src: one(t, "g.txt.gz", packed[:len(packed)-9]), word: "cut off"},
		"bad end, weight":  {src: one(t, "g.txt", strings.Repeat("0 1 1\n", honest/6)+"1 1 -1\n"), word: "weight"},
		"bad end, metis":   {src: one(t, "g.graph", "3000000 3000000\n"+strings.Repeat("1\n", 2_999_999)+"-1\n"), word: "-1"},
		"edges":            {src: one(t, "g.txt.gz", edges), word: "bomb"},
		"zeros":            {src: one(t, "g.txt.gz", zeros), word: ""},
		"breaks":           {src: one(t, "g.txt.gz", gz("0 1\n")+bomb(t, "\n", size)), word: "bomb"},
		"zeros in a line":  {src: one(t, "g.txt.gz", gz("0 1\n")+zeros), word: ""},
		"ogb edges":        {src: putFile(t, withFile(ogbFiles(), "raw/edge.csv.gz", edges)), word: "edge.csv.gz"},
		"ogb labels":       {src: putFile(t, withFile(ogbFiles(), "raw/node-label.csv.gz", bomb(t, "1\n", size))), word: "node-label.csv.gz"},
		"ogb features":     {src: putFile(t, withFile(ogbFiles(), "raw/node-feat.csv.gz", bomb(t, "0,0\n", size))), word: "node-feat.csv.gz"},
		"ogb split":        {src: putFile(t, withFile(ogbFiles(), "split/time/train.csv.gz", bomb(t, "1\n", size))), word: "train.csv.gz"},
		"lying jlg":        {src: one(t, "g.jlg", "2147483647,2147483647,u,g\n1,2\n"), word: "2147483647"},
		"lying dimacs":     {src: one(t, "g.gr", "p tw 2147483647 1\n1 2\n"), word: "2147483647"},
		"lying metis":      {src: one(t, "g.graph", "2147483647 2147483647\n2\n1\n"), word: "2147483647"},
		"sparse ids":       {src: one(t, "g.txt", "0 2147483646\n"), word: "--relabel"},
		"npz of zeros":     {src: saint(map[string]string{"indptr": npyFile("<i4", fmt.Sprintf("%d,", size/2), make([]int32, size/2)), "indices": npyFile("<i4", "0,", []int32{})}), word: "bomb"},
	} {
		t.Run(name, func(t *testing.T) {
			dst := filepath.Join(t.TempDir(), "out")
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), helperEnv+"="+tc.src, helperEnv+"_DST="+dst)
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			var r helperResult
			if err := json.Unmarshal(out, &r); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if r.Error == "" || !strings.Contains(r.Error, tc.word) {
				t.Errorf("the error is %q; want one with %q", r.Error, tc.word)
			}
			// The program needs 6 MB; 4 MiB of decompressed text, which become 8 MB of edges, pass
			// before their ratio is checked. Each thread holds a block of text and its parsed form,
			// and further blocks wait.
			size := sizeOf(t, tc.src)
			t.Logf("the peak is %d MB for %d MB", r.Peak>>20, size>>20)
			if limit := 4*size + 24<<20 + int64(runtime.GOMAXPROCS(0))*4<<20; r.Peak > limit {
				t.Errorf("the peak is %d MB, want at most %d", r.Peak>>20, limit>>20)
			}
			if left, err := filepath.Glob(filepath.Join(filepath.Dir(dst), "*")); err != nil || len(left) > 0 {
				t.Errorf("the destination holds %v (%v)", left, err)
			}
		})
	}
}

func sizeOf(t *testing.T, path string) (n int64) {
	t.Helper()
	err := filepath.WalkDir(path, func(_ string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			n += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Errors stay short for every refused input.
func TestErrorsAreShort(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for _, src := range []string{
		one(t, "g.txt", "0 1\n"+long+" 2\n"), one(t, "g.txt", long),
		putFile(t, map[string]string{"t-G.json": `{"nodes": [{"id": "` + long[:1000] + `"}]}`, "t-id_map.json": "{}", "t-class_map.json": "{}"}),
	} {
		_, _, err := read(t.Context(), src, &tabular.Meter{}, Options{})
		if err == nil || len(err.Error()) > 600 {
			t.Errorf("the error has %d bytes (nil: %v)", len(fmt.Sprintf("%v", err)), err == nil)
		}
	}
	if names := strings.Split(new(Options).formatNames(), ", "); !slices.Contains(names, "ogb") || names[0] != "auto" {
		t.Errorf("formats %v", names)
	}
}
