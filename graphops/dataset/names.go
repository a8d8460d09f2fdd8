package dataset

import (
	"bufio"
	"fmt"
	"math"
	"path/filepath"

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
