package pairs

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestReadEdges(t *testing.T) {
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	if _, err := z.Write([]byte("3 4\n")); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"":                                       "[] []",
		"0,1\n2,3":                               "[0 2] [1 3]",
		"\ufeffsource,target\r\n0;1\r\n":         "[0] [1]",
		"# a comment\nsource\ttarget\n7\t8\n\n#": "[7] [8]",
		"from to\n1  2\n":                        "[1] [2]",
		zipped.String():                          "[3] [4]",
		"0,1\nsource,target\n":                   `line 2 is "source,target"; nodes are whole numbers from 0 to 2147483647`,
		"paper,cites\n0,1\n":                     `line 1 is "paper,cites"`,
		"a,1":                                    `line 1 is "a,1"`,
		"0,NaN\n":                                `line 1 is "0,NaN"`,
		"1.5,2":                                  `line 1 is "1.5,2"`,
		"0,1,2":                                  `line 1 is "0,1,2"; a line has a source and a destination`,
		"0":                                      `line 1 is "0"; a line has a source and a destination`,
		"0,-1":                                   "line 1 has the node -1",
		"0,2147483648":                           "line 1 has the node 2147483648",
		"0,99999999999999999999":                 `line 1 is "0,99999999999999999999"`,
		"0,1\n" + strings.Repeat("1", 5000):      "line 2 is longer than 4096 bytes",
		zipped.String()[:12]:                     "EOF",
	} {
		path := filepath.Join(t.TempDir(), "edges.csv")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		e, err := ReadEdges(path)
		got := strings.Join([]string{sprint(e.Src), sprint(e.Dst)}, " ")
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("%q gives %s, want %s", text, got, want)
		}
		if err != nil && !strings.Contains(got, path) {
			t.Errorf("%q: the error %s does not name the file", text, got)
		}
	}
	if _, err := ReadEdges(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a file that is missing is no error")
	}
}

func sprint(ids []int32) string {
	s := []string{}
	for _, v := range ids {
		s = append(s, string('0'+v))
	}
	return "[" + strings.Join(s, " ") + "]"
}

func TestReadNodes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nodes.csv")
	for text, want := range map[string]string{"node\n4\n0\n4\n": "", "4,0": "a line has a node id"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		nodes, err := ReadNodes(path)
		switch {
		case want == "" && (err != nil || !slices.Equal(nodes, []int32{4, 0, 4})):
			t.Errorf("%q gives %v, %v", text, nodes, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q gives %v, want %q", text, err, want)
		}
	}
}

// Whatever the text is, reading ends with nodes in range or an error.
func FuzzReadEdges(f *testing.F) {
	for _, s := range []string{"0,1\n2,3\n", "source,target\n1,2", "#\n\n1 2", "\x1f\x8b\x08\x00", "9999999999,1"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		n := 0
		err := eachRow(bytes.NewReader(text), 2, func(ids []int32) {
			n++
			if ids[0] < 0 || ids[1] < 0 {
				t.Fatalf("edge %v", ids)
			}
		})
		if err == nil && n > bytes.Count(text, []byte("\n"))+1 && !bytes.HasPrefix(text, []byte{0x1f, 0x8b}) {
			t.Fatalf("%d edges in %d lines", n, bytes.Count(text, []byte("\n"))+1)
		}
	})
}
