package dataset

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/atomicfile"
)

// EntityNames is the name of the file, in the directory of a converted knowledge graph, with the name of
// each entity, one a line in the order of ids.
const EntityNames = "names.entity.txt"

// ReadNames returns the lines of a file of names, such as [EntityNames], in a dataset directory. The error for a file that
// is not there wraps fs.ErrNotExist.
func ReadNames(dir, file string) ([]string, error) {
	in, err := atomicfile.Open(filepath.Join(dir, file))
	if err != nil {
		return nil, fmt.Errorf("dataset: reading names: %w", err)
	}
	defer in.Close()
	var names []string
	returns := 0
	for lines := bufio.NewReader(in); ; {
		line, err := lines.ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("dataset: reading the names of %s: %w", filepath.Join(dir, file), err)
		}
		if line != "" {
			line = strings.TrimSuffix(line, "\n")
			if names = append(names, line); strings.HasSuffix(line, "\r") {
				returns++
			}
		}
		if err != nil {
			break
		}
	}
	if returns == len(names) { // the lines of a program on Windows, not names that end like this
		for i, name := range names {
			names[i] = strings.TrimSuffix(name, "\r")
		}
	}
	return names, nil
}

// checkNames is a check: a file of names has a line for each node.
func (d *Dataset) checkNames(r *reading) error {
	if d.dir == "" || d.whole != nil || d.Meta.Part != nil {
		return nil
	}
	types := []graphops.NodeType{{Count: d.Nodes()}}
	if s := d.Schema(); s != nil {
		types = s.Nodes
	}
	for _, t := range types {
		file := NamesFile(t.Name)
		n, err := countLines(r.ctx, filepath.Join(d.dir, file))
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return fmt.Errorf("dataset: reading the names of %s: %w", filepath.Join(d.dir, file), err)
		case n != t.Count:
			return d.wrong(file, "it has %d lines, and there are %d nodes: a line for each", n, t.Count)
		}
	}
	return nil
}

func countLines(ctx context.Context, path string) (n int, err error) {
	in, err := atomicfile.Open(path)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	piece, last := make([]byte, 1<<20), byte('\n')
	for {
		k, err := in.Read(piece)
		if k > 0 {
			n += bytes.Count(piece[:k], []byte("\n"))
			last = piece[k-1]
		}
		switch {
		case errors.Is(err, io.EOF) && last != '\n':
			return n + 1, nil
		case errors.Is(err, io.EOF):
			return n, nil
		case err != nil || ctx.Err() != nil:
			return n, cmp.Or(err, ctx.Err())
		}
	}
}

// NamesFile is the name of the file, in the directory of a dataset that was made of tables, with the original id of each
// node of a type, one a line in the order of ids. A dataset without types has the type "".
func NamesFile(nodeType string) string {
	if nodeType == "" {
		nodeType = "node"
	}
	return "names." + nodeType + ".txt"
}

// GraphNamesFile is the name of the file, in the directory of a dataset of many graphs that was made of tables, with the original
// id of each graph, one a line.
const GraphNamesFile = "names.graph.txt"

// GraphIDs returns the original ids of the graphs of a dataset of many, in the order of their numbers: those of the tables that
// the dataset was made of. The error for a dataset without them wraps fs.ErrNotExist. Cost: reading the file.
func (d *Dataset) GraphIDs() ([]string, error) {
	if d.dir == "" || d.GraphOffsets == nil {
		return nil, fmt.Errorf("dataset: %s has no original ids of graphs: %w", d.Name(), fs.ErrNotExist)
	}
	names, err := ReadNames(d.dir, GraphNamesFile)
	if err == nil && len(names) != d.NumGraphs() {
		err = fmt.Errorf("dataset: %s has %d ids of %d graphs", filepath.Join(d.dir, GraphNamesFile), len(names), d.NumGraphs())
	}
	return names, err
}

// IDs returns the original ids of the nodes, in the order of their numbers: those of the tables that the dataset was
// made of. The error for a dataset without them wraps fs.ErrNotExist. Cost: reading the file.
func (d *Dataset) IDs() ([]string, error) {
	types := []graphops.NodeType{{Count: d.Nodes()}}
	if s := d.Schema(); s != nil {
		types = s.Nodes
	}
	var all []string
	for _, t := range types {
		file := NamesFile(t.Name)
		if d.dir == "" {
			return nil, fmt.Errorf("dataset: %s is in memory and has no original ids: %w", d.Name(), fs.ErrNotExist)
		}
		names, err := ReadNames(d.dir, file)
		if err != nil {
			return nil, err
		}
		if len(names) != t.Count {
			return nil, fmt.Errorf("dataset: %s has %d names for %d nodes", filepath.Join(d.dir, file), len(names), t.Count)
		}
		all = append(all, names...)
	}
	return all, nil
}
