package tables

import (
	"slices"

	"github.com/graphnb/graphnb/graphops/dataset"
)

// Decoder tells the raw values of the nodes of a dataset from their features, by the recipe: see [Column.Decode]. It is safe for
// concurrent use.
type Decoder struct {
	r     *Recipe
	ds    *dataset.Dataset
	names map[string][]string
}

// NewDecoder returns the decoder of a dataset, as it was loaded, by its recipe.
func NewDecoder(ds *dataset.Dataset, r *Recipe) *Decoder {
	return &Decoder{r, ds, ds.NamedFeatures()}
}

// Columns returns the columns of the table of a node type, "" without types, that became features. It returns nil if the first
// features of the dataset are not those of the recipe.
func (d *Decoder) Columns(typ string) (list []*Column) {
	k := d.r.nodeTable(typ)
	if k < 0 {
		return nil
	}
	t := &d.r.Nodes[k]
	names := d.names[typ]
	if names == nil {
		names = d.names[""]
	}
	if own := t.Features(); len(own) > len(names) || !slices.Equal(own, names[:len(own)]) {
		return nil
	}
	for i := range t.Columns {
		if t.Columns[i].Width > 0 {
			list = append(list, &t.Columns[i])
		}
	}
	return list
}

// Value returns the raw value of a node, by its number within its type, in a column of [Decoder.Columns]. exact is false where its
// features do not tell it.
func (d *Decoder) Value(typ string, number int, c *Column) (value string, exact bool) {
	of := dataset.NodeFeatures{Dense: d.ds.Features, Sparse: d.ds.SparseFeatures}
	if d.ds.NodeFeatures != nil {
		k := d.ds.Schema().NodeType(typ)
		if k < 0 {
			return "", false
		}
		of = d.ds.NodeFeatures[k]
	}
	row := make([]float32, of.Cols())
	half := false
	switch {
	case of.Dense != nil:
		half = of.Dense.Half()
		of.Dense.Gather(row, []int32{int32(number)}, 1)
	case of.Sparse != nil:
		columns, values := of.Sparse.Row(number)
		for i, k := range columns {
			if row[k] = 1; values != nil {
				row[k] = values[i]
			}
		}
	default:
		return "", false
	}
	return c.Decode(row, half)
}
