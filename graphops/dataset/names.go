package dataset

import (
	"bufio"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"

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
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, math.MaxInt32)
	for lines.Scan() {
		names = append(names, lines.Text())
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("dataset: reading the names of %s: %w", filepath.Join(dir, file), err)
	}
	return names, nil
}

// NamesFile is the name of the file, in the directory of a dataset that was made of tables, with the original id of each
// node of a type, one a line in the order of ids. A dataset without types has the type "".
func NamesFile(nodeType string) string {
	if nodeType == "" {
		nodeType = "node"
	}
	return "names." + nodeType + ".txt"
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
