package convert

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ulikunitz/xz"

	"github.com/graphnb/graphnb/graphops/dataset/notice"
	"github.com/graphnb/graphnb/internal/testneed"
)

func xzOf(text string) string {
	var b bytes.Buffer
	w, err := xz.NewWriter(&b)
	if err == nil {
		_, err = w.Write([]byte(text))
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic(err)
	}
	return b.String()
}

const bom = "\xef\xbb\xbf"

// Every compression of an edge list gives the same graph.
func TestWrappedText(t *testing.T) {
	const text = "0 1\n0 2\n1 2\n2 3\n"
	long := strings.Repeat("0 1\n", 1<<17) // over several blocks of every reader
	for name, c := range map[string]struct{ file, text string }{
		"byte-order mark":              {"g.txt", bom + text},
		"byte-order mark and comment":  {"g.txt", bom + "# Nodes: 4 Edges: 4\n" + text},
		"byte-order mark and header":   {"g.csv", bom + "src,dst\n" + strings.ReplaceAll(text, " ", ",")},
		"byte-order mark in gzip":      {"g.txt.gz", gz(bom + text)},
		"gzip":                         {"g.txt.gz", gz(text)},
		"gzip, zeros":                  {"g.txt.gz", gz(text) + strings.Repeat("\x00", 10000)},
		"gzip, one zero":               {"g.txt.gz", gz(text) + "\x00"},
		"gzip of several members":      {"g.txt.gz", gz(text[:8]) + gz("") + gz(text[8:])},
		"gzip of several, with zeros":  {"g.txt.gz", gz(text[:8]) + "\x00\x00\x00" + gz(text[8:]) + "\x00"},
		"gzip, long":                   {"g.txt.gz", gz(long+text) + strings.Repeat("\x00", 1<<17)},
		"xz":                           {"g.txt.xz", xzOf(text)},
		"xz of several streams":        {"g.txt.xz", xzOf(text[:8]) + xzOf(text[8:])},
		"xz, padded":                   {"g.txt.xz", xzOf(text) + strings.Repeat("\x00", 8)},
		"xz, long":                     {"g.txt.xz", xzOf(long + text)},
		"xz with a byte-order mark":    {"g.txt.xz", xzOf(bom + text)},
		"METIS with a byte-order mark": {"g.graph", bom + "4 4\n2 3\n1 3\n1 2 4\n3\n"},
		"Graphs.jl, the same":          {"g.jlg", bom + "4,4,d,g\n1,2\n1,3\n2,3\n3,4\n"},
		"DIMACS, the same":             {"g.gr", bom + "p sp 4 4\na 1 2 1\na 1 3 1\na 2 3 1\na 3 4 1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			d, _ := converted(t, one(t, c.file, c.text), Options{})
			sameGraph(t, d.Graph, handGraph(t, 4, strings.HasSuffix(c.file, ".graph")))
			if d.Name() != "g" {
				t.Errorf("the dataset's name is %s", d.Name())
			}
		})
	}
}

// Damaged, truncated or extended compressed files, and those that demand too much memory, are
// refused with a one-sentence error.
func TestHostileWrapping(t *testing.T) {
	testneed.NotShort(t, "it reads large damaged archives")
	const text = "0 1\n0 2\n1 2\n2 3\n"
	long := xzOf(strings.Repeat("0 1\n5 7\n", 5000))
	damaged := []byte(long)
	damaged[len(damaged)/2] ^= 0x10
	// A block header that asks for a dictionary of 2 GiB: size, flags, filter, its
	// properties, padding and a checksum.
	header := []byte{2, 0, 0x21, 1, 38, 0, 0, 0}
	greedy := append([]byte(xzOf(text)[:12]), binary.LittleEndian.AppendUint32(header, crc32.ChecksumIEEE(header))...)
	other := append([]byte(xzOf(text)[:12]), 2, 0, 0x03, 1, 0, 0, 0, 0, 1, 2, 3, 4)
	for name, c := range map[string]struct {
		file, text string
		words      []string
	}{
		"text in UTF-16":             {"g.txt", "\xff\xfe0\x00 \x001\x00\n\x00", []string{"g.txt", "UTF-16", "UTF-8"}},
		"gzip and something behind":  {"g.txt.gz", gz(text) + "\x00\x00appended", []string{"g.txt.gz", "appended"}},
		"gzip cut off in its second": {"g.txt.gz", gz(text) + gz(text)[:20], []string{"g.txt.gz", "cut off"}},
		"xz cut off":                 {"g.txt.xz", long[:len(long)*2/3], []string{"g.txt.xz"}},
		"xz without its end":         {"g.txt.xz", long[:len(long)-5], []string{"g.txt.xz"}},
		"xz damaged":                 {"g.txt.xz", string(damaged), []string{"g.txt.xz"}},
		"xz, something behind":       {"g.txt.xz", long + "appended", []string{"g.txt.xz"}},
		"xz with a large dictionary": {"g.txt.xz", string(greedy), []string{"g.txt.xz", "dictionary of 2.0 GiB", "64"}},
		"xz with other filters":      {"g.txt.xz", string(other), []string{"g.txt.xz", "xz -dk"}},
		"xz bomb":                    {"g.txt.xz", xzOf(strings.Repeat("0", 64<<20)), []string{"g.txt.xz", "bomb"}},
	} {
		t.Run(name, func(t *testing.T) { refused(t, one(t, c.file, c.text), Options{}, c.words...) })
	}
}

// fortran marks a .npy file as column-major in its header.
func fortran(file string) string {
	return strings.Replace(file, "'fortran_order': False, ", "'fortran_order': True,  ", 1)
}

// Arrays in column-major order give the same dataset as arrays in row-major order.
func TestColumnMajorNumPy(t *testing.T) {
	files := map[string]string{
		"edge_index.npy": fortran(npyFile("<i8", "2, 4", []int64{0, 1, 0, 2, 1, 2, 2, 3})),
		"x.npy":          fortran(npyFile("<f4", "4, 3", []float32{0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11})),
		"y.npy":          fortran(npyFile("<i8", "4, 2", []int64{0, 1, 1, 0, 1, 0, 1, 0})),
	}
	d, _ := converted(t, putFile(t, files), Options{})
	sameGraph(t, d.Graph, handGraph(t, 4, false))
	if want := []float32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}; !slices.Equal(d.Features.F32, want) {
		t.Errorf("the features are %v, want %v", d.Features.F32, want)
	}
	if want := []int8{0, 1, 1, 0, 1, 1, 0, 0}; !slices.Equal(d.MultiLabels.Data, want) {
		t.Errorf("the labels are %v, want %v", d.MultiLabels.Data, want)
	}
	files["edge_index.npy"] = fortran(npyFile("<i8", "4, 2", []int64{0, 0, 1, 2, 1, 2, 2, 3}))
	d, _ = converted(t, putFile(t, files), Options{})
	sameGraph(t, d.Graph, handGraph(t, 4, false))
	files["x.npy"] = fortran(npyFile("<f4", "4, 2", []float32{0, 1, 2, 3, 4, 5, 6, float32(math.NaN())}))
	refused(t, putFile(t, files), Options{}, "x.npy", "entry 7 is NaN")
}

func musae() map[string]string {
	return map[string]string{
		"m_edges.csv":     "id_1,id_2\n0,1\n0,2\n1,2\n2,3\n",
		"m_features.json": `{"0": [2, 5], "2": [0, 5, 2, 5], "1": [], "3": [1]}`,
		"m_target.csv":    "id,name,ml_target\n0,a,1\n2,c,0\n1,b,1\n3,d,\n",
		"README.txt":      "what it is",
	}
}

// A MUSAE folder holds edges, lists of features and classes.
func TestMUSAE(t *testing.T) {
	var notes []string
	o := Options{Note: func(text string) { notes = append(notes, text) }}
	d, stats := converted(t, putFile(t, musae()), o)
	sameGraph(t, d.Graph, handGraph(t, 4, true))
	if stats.Format != "musae" || d.Name() != "m" || !d.Meta.Undirected {
		t.Errorf("%s, by %s", d, stats.Format)
	}
	if d.SparseFeatures == nil || d.SparseFeatures.Cols != 6 || !slices.Equal(d.SparseFeatures.Indptr, []int64{0, 2, 2, 5, 6}) || !slices.Equal(d.SparseFeatures.Indices, []int32{2, 5, 0, 2, 5, 1}) || d.SparseFeatures.Values != nil {
		t.Errorf("the features are %+v", d.SparseFeatures)
	}
	if !slices.Equal(d.Labels, []int32{1, 1, 0, -1}) || d.Classes() != 2 {
		t.Errorf("the classes are %v of %d", d.Labels, d.Classes())
	}
	if text := strings.Join(notes, "\n"); strings.Contains(text, "nothing was read") {
		t.Errorf("notes: %s", text)
	}
	// Twitch's form: other columns, and classes that are words.
	files := musae()
	files["m_target.csv"] = "id,days,mature,views,partner,new_id\n9,1,True,2,x,0\n8,1,False,3,x,1\n7,1,True,2,x,3\n6,1,True,2,x,2\n"
	d, _ = converted(t, putFile(t, files), o)
	if !slices.Equal(d.Labels, []int32{1, 0, 1, 1}) || !slices.Equal(d.Meta.ClassNames, []string{"False", "True"}) {
		t.Errorf("the classes are %v of %v", d.Labels, d.Meta.ClassNames)
	}
	// Without classes, and without features.
	for _, name := range []string{"m_target.csv", "m_features.json"} {
		files := musae()
		delete(files, name)
		d, stats := converted(t, putFile(t, files), o)
		if stats.Format != "musae" || (d.Labels == nil) != (name == "m_target.csv") || (d.SparseFeatures == nil) != (name == "m_features.json") {
			t.Errorf("without %s: %s, by %s", name, d, stats.Format)
		}
	}
	// A column with a different value for each node is not a class.
	files = musae()
	var edges, targets strings.Builder
	edges.WriteString("id1,id2\n")
	targets.WriteString("id,target\n")
	for v := range 150 {
		edges.WriteString("0," + itoa(v) + "\n")
		targets.WriteString(itoa(v) + "," + itoa(1000+7*v) + "\n")
	}
	files["m_edges.csv"], files["m_target.csv"] = edges.String(), targets.String()
	notes = nil
	d, _ = converted(t, putFile(t, files), o)
	if d.Labels != nil || !strings.Contains(strings.Join(notes, "\n"), "150 different values for 150 nodes") {
		t.Errorf("traffic as classes: %s; %q", d, notes)
	}
}

func TestHostileMUSAE(t *testing.T) {
	for name, c := range map[string]struct {
		file, text string
		words      []string
	}{
		"node is a word":        {"m_edges.csv", "a,b\n0,x\n", []string{"m_edges.csv", "line 2", `"x"`}},
		"node is negative":      {"m_edges.csv", "a,b\n0,-1\n", []string{"line 2", `"-1"`}},
		"one column":            {"m_edges.csv", "a\n0\n", []string{"one column"}},
		"no edges":              {"m_edges.csv", "a,b\n", []string{"no edges"}},
		"a node that is not":    {"m_edges.csv", "a,b\n0,9\n", []string{"4 nodes", "node 9", "not of one set"}},
		"key is a word":         {"m_features.json", `{"x": [1]}`, []string{"m_features.json", `"x"`}},
		"feature is negative":   {"m_features.json", `{"0": [-4]}`, []string{"feature -4"}},
		"feature is a fraction": {"m_features.json", `{"0": [0.5]}`, []string{"m_features.json", "0.5"}},
		"feature is far":        {"m_features.json", `{"0": [2000000000]}`, []string{"2000000000"}},
		"two lists":             {"m_features.json", `{"0": [1], "0": [2]}`, []string{"node 0 has two lists"}},
		"cut off":               {"m_features.json", `{"0": [1], "1": [2`, []string{"m_features.json", "cut off"}},
		"a list":                {"m_features.json", `[[1], [2]]`, []string{"m_features.json"}},
		"nothing":               {"m_features.json", `{}`, []string{"no node has a feature"}},
		"node listed twice":     {"m_target.csv", "id,target\n0,1\n0,1\n1,0\n2,1\n", []string{"m_target.csv", "listed twice"}},
		"nodes with a gap":      {"m_target.csv", "id,target\n0,1\n7,1\n1,0\n2,1\n", []string{"m_target.csv", "node 7"}},
		"no id":                 {"m_target.csv", "name,target\nx,1\n", []string{"line 1", `"id"`}},
	} {
		t.Run(name, func(t *testing.T) {
			files := musae()
			files[c.file] = c.text
			refused(t, putFile(t, files), Options{}, c.words...)
		})
	}
}

// A note names each file of the folder that was not read.
func TestUnusedFilesAreNamed(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"beside an edge list":  {map[string]string{"g.txt": "0 1\n1 2\n", "labels.json": "[0, 1, 1]", "LICENSE": "free", "README.md": "read"}, "nothing was read of labels.json, which the format edgelist"},
		"beside NumPy arrays":  {map[string]string{"edge_index.npy": npyFile("<i8", "2, 2", []int64{0, 1, 1, 2}), "labelz.npy": npyFile("<i8", "3", []int64{0, 1, 1})}, "nothing was read of labelz.npy, which the format numpy"},
		"beside two tables":    {map[string]string{"nodes.csv": "id\na\nb\n", "edges.csv": "source,target\na,b\n", "more.csv": "x\n"}, "nothing was read of more.csv, which the format csv"},
		"nothing is left":      {map[string]string{"nodes.csv": "id\na\nb\n", "edges.csv": "source,target\na,b\n", ".hidden": "x"}, ""},
		"a MUSAE set and more": {with(musae(), "m_extra.json", "{}"), "nothing was read of m_extra.json, which the format musae"},
	} {
		t.Run(name, func(t *testing.T) {
			var notes []string
			converted(t, putFile(t, c.files), Options{Note: func(text string) { notes = append(notes, text) }})
			text := strings.Join(notes, "\n")
			if c.want == "" && strings.Contains(text, "nothing was read") || !strings.Contains(text, c.want) {
				t.Errorf("the notes are %q, want %q", text, c.want)
			}
		})
	}
	if got := someOf(strings.Fields("a b c d e f g h i j k l")); got != "a, b, c, d, e, f, g, h, i, j and 2 more" {
		t.Error(got)
	}
}

// Whatever a format has and the dataset has not is said with a count: attributes, columns, arrays, files of folders.
func TestLeftOutIsSaid(t *testing.T) {
	sage := map[string]string{
		"t-G.json":      `{"directed": false, "nodes": [{"id": 0, "val": false, "test": false, "feature": [1]}, {"id": 1, "val": true, "test": false}], "links": [{"source": 0, "target": 1, "weight": 3}]}`,
		"t-id_map.json": `{"0": 0, "1": 1}`, "t-class_map.json": `{"0": 0, "1": 1}`,
	}
	saint := saintFiles()
	saint["adj_full.npz"] = npzFile(map[string]string{
		"indptr": npyFile("<i4", "6,", []int32{0, 2, 3, 4, 4, 4}), "indices": npyFile("<i4", "4,", []int32{1, 2, 2, 3}), "times": npyFile("<i8", "4,", []int64{1, 2, 3, 4}),
	})
	ogb := ogbFiles()
	ogb["raw/node_year.csv.gz"], ogb["mapping/README.md"] = gz("1\n2\n3\n4\n5\n"), "read"
	wide := musae()
	wide["m_edges.csv"] = "id_1,id_2,since\n0,1,5\n1,2,6\n"
	wide["m_target.csv"] = "id,target,days\n0,1,9\n1,0,9\n2,1,9\n3,1,9\n"
	arrays := map[string]string{
		"raw/data.npz":         npzFile(map[string]string{"edge_index": npyFile("<i8", "2, 2", []int64{0, 1, 1, 2}), "node_year": npyFile("<i8", "3, 1", []int64{1, 2, 3})}),
		"raw/node-label.npz":   npzFile(map[string]string{"node_label": npyFile("<i8", "3, 1", []int64{0, 1, 0})}),
		"split/time/train.csv": "0\n", "split/time/valid.csv": "1\n", "split/time/test.csv": "2\n",
	}
	for name, c := range map[string]struct {
		src  string
		want []string
	}{
		"networkx":   {one(t, "g.txt", "0 1 {'weight': 3, 'colour': 'red'}\n1 2 {'weight': 4}\n"), []string{"attributes of edges other than the weight are not read (1 of 2)"}},
		"GraphSAGE":  {putFile(t, sage), []string{`the attribute "feature" of nodes (1)`, `the attribute "weight" of links (1)`}},
		"GraphSAINT": {putFile(t, saint), []string{"nothing was read of the arrays times (1)"}},
		"METIS":      {one(t, "g.graph", "2 1 11\n5 2 1\n5 1 1\n"), []string{"weights and sizes of nodes are not read (2)"}},
		"MUSAE":      {putFile(t, wide), []string{`m_edges.csv: columns that are not read: "since" (2)`, `m_target.csv: columns that are not read: "days" (4)`}},
		"OGB":        {putFile(t, ogb), []string{"nothing was read of raw/node_year.csv.gz, which"}},
		"OGB arrays": {putFile(t, arrays), []string{"data.npz: nothing was read of the arrays node_year (1)"}},
	} {
		t.Run(name, func(t *testing.T) {
			said := ""
			d, _ := converted(t, c.src, Options{Note: func(text string) { said += text + "\n" }, OverlappingSplits: true})
			for _, want := range c.want {
				kept := slices.ContainsFunc(d.Meta.Notices, func(n notice.Notice) bool { return strings.Contains(n.String(), want) })
				if !strings.Contains(said, want) || !kept {
					t.Errorf("said %q, want %q", said, want)
				}
			}
		})
	}
}

// The arrays of SciPy's other formats have the same names, and another meaning.
func TestSparseFormat(t *testing.T) {
	files := saintFiles()
	files["adj_full.npz"] = npzFile(map[string]string{
		"indptr": npyFile("<i4", "6,", []int32{0, 2, 3, 4, 4, 4}), "indices": npyFile("<i4", "4,", []int32{1, 2, 2, 3}), "format": npyFile("|S3", "", []byte("csc")),
	})
	refused(t, putFile(t, files), Options{}, "csc", "matrix.tocsr()")
	files["adj_full.npz"] = npzFile(map[string]string{
		"indptr": npyFile("<i4", "6,", []int32{0, 2, 3, 4, 4, 4}), "indices": npyFile("<i4", "4,", []int32{1, 2, 2, 3}), "format": npyFile("<U3", "", []byte("c\x00\x00\x00s\x00\x00\x00r\x00\x00\x00")),
	})
	converted(t, putFile(t, files), Options{})
}

// Nodes of an adjacency list that have no neighbours stay when nodes are renumbered.
func TestAdjacencyKeepsLonelyNodes(t *testing.T) {
	d, _ := converted(t, one(t, "g.adjlist", "10 30\n20\n30\n"), Options{Relabel: true})
	if got := drawn(d.Graph); d.Nodes() != 3 || got != "0→2" {
		t.Errorf("%d nodes and the edges %s, want 3 and 0→2", d.Nodes(), got)
	}
}

// Masks of several sets become sets of splits; a single mask is that of every set, and of two files for a split the second is
// named as not read.
func TestNumPySetsOfSplits(t *testing.T) {
	files := map[string]string{
		"edge_index.npy": npyFile("<i8", "2, 2", []int64{0, 1, 1, 2}), "y.npy": npyFile("<i8", "4,", []int64{0, 1, 0, 1}),
		"train_mask.npy": npyFile("|b1", "4, 2", []bool{true, false, false, true, false, false, false, false}),
		"val_mask.npy":   npyFile("|u1", "4, 2", []byte{0, 0, 0, 0, 1, 0, 0, 1}),
		"valid_idx.npy":  npyFile("<i8", "1,", []int64{0}),
		"test_mask.npy":  npyFile("|b1", "4,", []bool{false, true, false, false}),
	}
	said := ""
	d, _ := converted(t, putFile(t, files), Options{Note: func(s string) { said += s + "\n" }, OverlappingSplits: true})
	want := map[string][]int32{"train": {0}, "val": {2}, "test": {1}, "train@1": {1}, "val@1": {3}, "test@1": {1}}
	for name, ids := range want {
		if !slices.Equal(d.Splits[name], ids) {
			t.Errorf("the split %s is %v, want %v", name, d.Splits[name], ids)
		}
	}
	for _, word := range []string{"several sets of splits, numbered from 0 (2); gnb train --split", "the split test is that of every set (2)", "nothing was read of valid_idx.npy"} {
		if !strings.Contains(said, word) || len(d.Splits) != 6 {
			t.Errorf("%d splits, said %q, want %q", len(d.Splits), said, word)
		}
	}
	files["test_mask.npy"] = npyFile("|b1", "4, 3", make([]bool, 12))
	refused(t, putFile(t, files), Options{}, "3 sets", "test")
	files["test_mask.npy"] = npyFile("|u1", "4,", []byte{0, 1, 2, 0})
	refused(t, putFile(t, files), Options{}, "test_mask.npy", "entry 2 is 2")
}

func with(files map[string]string, name, text string) map[string]string {
	files[name] = text
	return files
}

func FuzzMUSAE(f *testing.F) {
	names := []string{"m_edges.csv", "m_features.json", "m_target.csv"}
	for i, name := range names {
		f.Add([]byte(musae()[name]), uint8(i))
	}
	f.Fuzz(func(t *testing.T, data []byte, which uint8) {
		fuzzed(t, musae(), names[which%3], data, Options{})
	})
}

func FuzzXZ(f *testing.F) {
	f.Add([]byte(xzOf("0 1\n1 2\n")))
	f.Add([]byte(xzOf("0 1\n") + xzOf("1 2\n")))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < 6 || string(data[:6]) != "\xfd7zXZ\x00" {
			return
		}
		fuzzed(t, nil, filepath.Base("g.txt.xz"), data, Options{Format: "edgelist"})
	})
}

// Each format that counts nodes from 1 says that the dataset counts them from 0.
func TestCountedFromOne(t *testing.T) {
	for file, text := range map[string]string{
		"g.mtx":   "%%MatrixMarket matrix coordinate pattern general\n3 3 2\n2 1\n3 2\n",
		"g.graph": "3 2\n2\n1 3\n2\n",
		"g.gr":    "p sp 3 2\na 1 2 1\na 2 3 1\n",
		"g.jlg":   "3,2,d,g\n1,2\n2,3\n",
	} {
		d, _ := converted(t, one(t, file, text), Options{})
		if !slices.ContainsFunc(d.Meta.Notices, func(n notice.Notice) bool { return n.Kind == notice.Renumbered && n.Count == 3 }) {
			t.Errorf("%s: the notices are %v", file, d.Meta.Notices)
		}
	}
}
