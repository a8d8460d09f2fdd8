package tables

import (
	"context"
	"slices"

	"github.com/graphnb/graphnb/internal/tabular"
)

// ReadRows reads a table of a few rows, such as those of an [Encoder], as text: the names of its columns, in lower case, and the
// values by row. A missing value is "". Numbers of Parquet and Arrow files are the shortest text that reads back as the number; dates
// are RFC 3339.
func ReadRows(ctx context.Context, path string) (columns []string, rows [][]string, err error) {
	tab, err := openTable(path, &tabular.Meter{})
	if err != nil {
		return nil, nil, err
	}
	for _, name := range tab.names {
		if what, odd := tab.odd[name]; odd {
			return nil, nil, fault("%s: the column %s holds %s, which is not read", path, shown(name), what)
		}
	}
	err = tab.each(ctx, slices.Repeat([]bool{true}, len(tab.names)), func(b *batch) error {
		for i := range b.n {
			row := make([]string, len(b.cols))
			for c := range b.cols {
				if v := &b.cols[c]; !v.missing(i) {
					row[c] = v.value(i)
				}
			}
			rows = append(rows, row)
		}
		return nil
	})
	return slices.Clone(tab.names), rows, err
}
