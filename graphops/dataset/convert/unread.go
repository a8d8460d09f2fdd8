package convert

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/graphnb/graphnb/internal/tabular"
)

// UnreadError is the error of data that is recognised and cannot be converted.
type UnreadError struct {
	Path string
	What string // what it is
	Way  string // what to do instead
}

func (e *UnreadError) Error() string {
	return fmt.Sprintf("convert: %s is %s: %s", e.Path, e.What, e.Way)
}

const exportTables = "export its tables of nodes and edges as CSV or Parquet into a folder, as nodes.csv and edges.csv, and convert that with --format tables"

// addresses are beginnings of sources that are no paths.
var addresses = []struct{ schemes, what, way string }{
	{"postgres postgresql mysql mariadb sqlite sqlite3 duckdb mssql sqlserver oracle mongodb neo4j bolt jdbc clickhouse snowflake", "the address of a database, which is not read", exportTables + " (DuckDB's COPY … TO writes Parquet from most databases)"},
	{"http https ftp s3 gs gcs az abfs hdfs file", "an address, and files are read from disks only", "fetch the file or folder, and convert the copy"},
}

var scheme = regexp.MustCompile(`^([a-z][a-z0-9+]{1,15}):`)

// CheckAddress returns an error for a source that is an address instead of a path.
func CheckAddress(src string) error {
	m := scheme.FindStringSubmatch(strings.ToLower(src))
	if m == nil {
		return nil
	}
	if _, err := os.Stat(src); err == nil {
		return nil
	}
	name, _, _ := strings.Cut(m[1], "+") // mysql+pymysql
	for _, a := range addresses {
		for _, s := range strings.Fields(a.schemes) {
			if s == name {
				return &UnreadError{withoutPassword(src), a.what, a.way}
			}
		}
	}
	return nil
}

// withoutPassword returns an address without what stands before its host.
func withoutPassword(address string) string {
	head, rest, ok := strings.Cut(address, "://")
	if at := strings.LastIndexByte(rest, '@'); ok && at >= 0 {
		return head + "://…@" + rest[at+1:]
	}
	return address
}

// magic are the first bytes of files that other programs write.
var magic = []struct {
	begins string
	at     int
	what   string
	way    string
}{
	{"SQLite format 3\x00", 0, "an SQLite database, which is not read", exportTables},
	{"DUCK", 8, "a DuckDB database, which is not read", exportTables},
	{"PAR1", 0, "one Parquet file", "a graph is a folder with nodes.parquet and edges.parquet; convert that with --format tables"},
	{"ARROW1", 0, "one Arrow file", "a graph is a folder with nodes.arrow and edges.arrow; convert that with --format tables"},
	{"\x89HDF\r\n", 0, "an HDF5 file, which is not read", "save its arrays as NumPy files: edge_index.npy, x.npy, y.npy"},
	{"MATLAB 5.0 MAT-file", 0, "a MATLAB file, which is not read", "save its matrices by scipy.io.loadmat as MatrixMarket or NumPy files"},
	{"\x80", 0, "a pickle, which could execute code and is not read", "load it in Python and save its arrays as NumPy files: edge_index.npy, x.npy, y.npy"},
	{"\x93NUMPY", 0, "one NumPy array", "a graph is a folder with edge_index.npy, and maybe x.npy and y.npy"},
}

var markup = []struct{ word, what string }{{"<graphml", "GraphML"}, {"<gexf", "GEXF"}, {"<graph", "a graph in XML"}}

// recognise returns an error for a source that is of a kind which is known and not read.
func recognise(s *source) error {
	unread := func(what, way string) error { return &UnreadError{s.Path, what, way} }
	if s.Dir {
		return nil
	}
	if dir, file := filepath.Split(s.Path); strings.Contains(file, "_A.") || strings.Contains(file, "_graph_indicator.") {
		if entries, err := os.ReadDir(filepath.Clean(dir + ".")); err == nil {
			var names []string
			for _, e := range entries {
				names = append(names, e.Name())
			}
			if name := tuName(names); name != "" && strings.HasPrefix(file, name+"_") {
				return unread("a file of many graphs in the format of TU Dortmund", "convert its folder, "+filepath.Clean(dir+"."))
			}
		}
	}
	for _, m := range magic {
		if len(s.Head) > m.at && bytes.HasPrefix(s.Head[m.at:], []byte(m.begins)) {
			return unread(m.what, m.way)
		}
	}
	text := bytes.ToLower(bytes.TrimSpace(s.Head))
	switch {
	case bytes.HasPrefix(text, []byte("pk\x03\x04")) && bytes.Contains(text, []byte("data.pkl")):
		return unread("a file of PyTorch, whose pickle could execute code and is not read", "load it in Python and save its arrays as NumPy files: edge_index.npy, x.npy, y.npy")
	case bytes.HasPrefix(text, []byte("<")):
		for _, m := range markup {
			if bytes.Contains(text, []byte(m.word)) {
				return unread(m.what+", which is not read", "write it by networkx as an edge list (write_edgelist), or as nodes.csv and edges.csv")
			}
		}
	case bytes.HasPrefix(text, []byte("graph")) && bytes.Contains(text, []byte("[")) || bytes.HasPrefix(text, []byte("creator \"")):
		return unread("GML, which is not read", "write it by networkx as an edge list (write_edgelist), or as nodes.csv and edges.csv")
	case bytes.HasPrefix(text, []byte("*vertices")):
		return unread("a Pajek file, which is not read", "write it by networkx as an edge list (write_edgelist), or as nodes.csv and edges.csv")
	}
	return nil
}

// tuName returns the name of a dataset of TU Dortmund if the files are of one, "" otherwise.
func tuName(files []string) string {
	for _, file := range files {
		if name, ok := strings.CutSuffix(strings.TrimSuffix(file, ".gz"), "_graph_indicator.txt"); ok {
			return name
		}
	}
	return ""
}

// manyTables returns an error for a folder of tables of many graphs.
func manyTables(s *source) error {
	if name := s.Find(tabular.CSVNames("graphs")...); name != "" && s.Find(tabular.CSVNames("nodes")...) != "" {
		return &UnreadError{s.Path, "a folder of tables of many graphs (" + name + ")", "--format tables reads it, in a program package gnb/tables"}
	}
	return nil
}

// tableFiles reports whether a folder has tables of nodes and edges that only the format tables reads.
func tableFiles(s *source) error {
	for _, file := range s.Files {
		if tabular.HasEnding(file, ".parquet", ".arrow", ".feather") && (strings.HasPrefix(file, "nodes") || strings.HasPrefix(file, "edges")) {
			return &UnreadError{s.Path, "a folder of tables in Parquet or Arrow", "--format tables reads it, in a program package gnb/tables"}
		}
	}
	return nil
}
