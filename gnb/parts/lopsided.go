package parts

import (
	"fmt"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/partition"
)

// lopsided is the multiple of the mean above which the largest part is named.
const lopsided = 1.5

// count fills in what each part has, and notes where the largest part has much more than the mean.
func (d *Division) count(ds *dataset.Dataset) {
	d.InEdges = make([]int64, d.Parts)
	for v, p := range d.Of {
		d.InEdges[p] += int64(ds.Graph.InDegree(int32(v)))
	}
	if train := ds.Splits["train"]; len(train) > 0 {
		d.Train = make([]int64, d.Parts)
		for _, v := range train {
			d.Train[d.Of[v]]++
		}
	}
	switch f, sparse := ds.Features, ds.SparseFeatures; {
	case f != nil:
		row := 4 * int64(f.Cols)
		if f.Half() {
			row /= 2
		}
		for _, n := range d.Nodes {
			d.FeatureBytes = append(d.FeatureBytes, n*row)
		}
	case sparse != nil:
		d.FeatureBytes = make([]int64, d.Parts)
		element := int64(8) // its column and its value
		if sparse.Values == nil {
			element = 4
		}
		for v, p := range d.Of {
			d.FeatureBytes[p] += element * (sparse.Indptr[v+1] - sparse.Indptr[v])
		}
	}
	d.Notes = d.lopsided()
}

// lopsided returns a sentence for each quantity of which a part has much more than the mean.
func (d *Division) lopsided() (notes []string) {
	balanced := strings.Split(strings.ReplaceAll(d.Balance, " ", ""), ",")
	large := func(name string, of []int64, what, follows string) bool {
		var total int64
		for _, n := range of {
			total += n
		}
		most := slices.Max(of)
		times := float64(most) * float64(d.Parts) / float64(max(total, 1))
		if times <= lopsided || most <= (total+int64(d.Parts)-1)/int64(d.Parts) { // the second: it cannot be less
			return false
		}
		note := fmt.Sprintf("part %d has %.1f times as %s as the mean of the parts (%d of %d): %s", slices.Index(of, most), times, what, most, total, follows)
		switch {
		case name == "": // no balance evens it out
		case slices.Contains(balanced, name):
			note += fmt.Sprintf("; it is balanced as far as the method %s can", d.Method)
		case d.Method == partition.Multilevel:
			note += fmt.Sprintf("; balance %q to even this out", strings.Join(append(slices.Clone(balanced), name), ","))
		default:
			note += fmt.Sprintf("; balance %q to even this out, or several quantities by the method %s", name, partition.Multilevel)
		}
		notes = append(notes, note)
		return true
	}
	if !large("nodes", d.Nodes, "many nodes", "memory and the time of inference follow the nodes") && d.FeatureBytes != nil {
		large("", d.FeatureBytes, "many bytes of features", "memory follows them")
	}
	large("edges", d.InEdges, "many in-edges", "the time of inference and of evaluation follows them")
	if d.Train != nil {
		large("train", d.Train, "many training nodes", "the time of an epoch follows them")
	}
	return notes
}
