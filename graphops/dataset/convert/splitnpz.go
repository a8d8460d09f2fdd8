package convert

import (
	"fmt"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/columns"
	"github.com/graphnb/graphnb/graphops/dataset/internal/npy"
	"github.com/graphnb/graphnb/internal/philox"
	"github.com/graphnb/graphnb/internal/tabular"
)

// SplitSizes are the sizes of random splits of the labelled nodes.
type SplitSizes struct {
	Sets  int // number of sets of splits; 0 means 10
	Train int // nodes of each class in train
	Val   int // other nodes in val, of all classes together
	Test  int // further nodes in test; 0 means all that are left
}

// DrawSplits gives a dataset with a class for each node random splits of the given sizes in place of its own, as Yang et al.
// (Revisiting semi-supervised learning with graph embeddings, arXiv:1603.08861) chose those of Cora: train has as many
// nodes of each class, all of a class with fewer, and val and test are drawn from the other labelled nodes. The ids ascend.
// The splits depend only on the labels, the sizes and the seed.
func DrawSplits(d *dataset.Dataset, sizes SplitSizes, seed uint64) error {
	sets := max(sizes.Sets, 1)
	if sizes.Sets == 0 {
		sets = 10
	}
	switch {
	case d.Labels == nil:
		return tabular.Errorf("%s: random splits need a class for each node, and it has none", d.Name())
	case sizes.Train < 1 || sizes.Val < 0 || sizes.Test < 0 || sizes.Sets < 0 || sets > maxSets:
		return tabular.Errorf("%s: random splits have at least one train node a class, no negative sizes and at most %d sets", d.Name(), maxSets)
	}
	members, labelled := make([][]int32, d.Classes()), 0
	for v, c := range d.Labels {
		if c >= 0 && int(c) < len(members) {
			members[c] = append(members[c], int32(v))
			labelled++
		}
	}
	train := 0
	for _, all := range members {
		train += min(sizes.Train, len(all))
	}
	if left := labelled - train - sizes.Val; left < max(sizes.Test, 1) {
		return tabular.Errorf("%s has %d labelled nodes, of which random splits take %d for train, %d for val and %d for test; take smaller sizes", d.Name(), labelled, train, sizes.Val, max(sizes.Test, 1))
	}
	d.Splits = map[string][]int32{}
	for k := range sets {
		drawn := func(c int64, ids []int32, n int) {
			for i := range n {
				u := philox.NewStream(seed^randomKey, c<<20|int64(i&(1<<20-1)), k, philox.C3(philox.User, siteSplitSizes, 0))
				j := i + int(philox.Bounded(u.Next(), uint32(len(ids)-i)))
				ids[i], ids[j] = ids[j], ids[i]
			}
		}
		parts, rest := [3][]int32{}, []int32{}
		for c, all := range members {
			order := slices.Clone(all)
			n := min(sizes.Train, len(order))
			drawn(int64(c)+1, order, n)
			parts[0], rest = append(parts[0], order[:n]...), append(rest, order[n:]...)
		}
		slices.Sort(rest) // the draw depends on the set of the others alone
		end := len(rest)
		if sizes.Test > 0 {
			end = sizes.Val + sizes.Test
		}
		drawn(0, rest, min(end, len(rest)))
		parts[1], parts[2] = rest[:sizes.Val], rest[sizes.Val:end]
		for i, name := range columns.Parts {
			ids := slices.Clone(parts[i])
			slices.Sort(ids)
			d.Splits[dataset.SplitSetName(name, k)] = ids
		}
	}
	return nil
}

// splitNames are the names under which a file of splits has each part.
var splitNames = [len(columns.Parts)][]string{
	{"train", "train_idx", "train_mask", "train_masks"},
	{"val", "valid", "validation", "val_idx", "valid_idx", "val_mask", "val_masks"},
	{"test", "test_idx", "test_mask", "test_masks"},
}

// npzSplits reads the splits of n nodes or graphs in a .npz file: for each part the ids of its members, [ids], or masks, [n] or of
// several sets [sets, n].
func npzSplits(path string, n int) (map[string][]int32, error) {
	f, err := npy.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	splits, sets, of := map[string][]int32{}, 0, ""
	for k, names := range splitNames {
		var a *npy.Array
		for _, name := range names {
			if a == nil {
				a = f.Find(name)
			}
		}
		if a == nil {
			if k == 1 { // a dataset can be without validation nodes
				continue
			}
			return nil, f.Errorf("it has no array %s; its arrays are %.200q", strings.Join(names, ", "), f.Names())
		}
		ids, err := partOf(a, n)
		switch {
		case err != nil:
			return nil, f.Errorf("%w", err)
		case sets > 0 && len(ids) != sets:
			return nil, f.Errorf("%s has %d sets of splits and %s has %d; each set has one of each", of, sets, a.Name, len(ids))
		}
		sets, of = len(ids), a.Name
		for set, list := range ids {
			slices.Sort(list)
			splits[dataset.SplitSetName(columns.Parts[k], set)] = list
		}
	}
	if left := f.Unread(); len(left) > 0 {
		return nil, f.Errorf("it also has the arrays %s, which are no split; a file of splits has train, val and test", strings.Join(left[:min(len(left), 10)], ", "))
	}
	return splits, nil
}

// partOf reads the nodes of one part of the splits by set.
func partOf(a *npy.Array, nodes int) ([][]int32, error) {
	switch {
	case len(a.Shape) == 2 && a.Is(2, true) == nil:
		if a.Shape[0] > maxSplitSets {
			return nil, fmt.Errorf("%s is %s; there are at most %d sets of splits", a.Name, a.Describe(), maxSplitSets)
		}
		if err := checkMasks(a, int64(nodes)); err != nil {
			return nil, err
		}
		masks := map[string][]int32{}
		if err := loadMasks(masks, a.Name, a); err != nil {
			return nil, err
		}
		sets := make([][]int32, a.Shape[0])
		for k := range sets {
			if sets[k] = masks[dataset.SplitSetName(a.Name, k)]; sets[k] == nil {
				sets[k] = []int32{}
			}
		}
		return sets, nil
	case a.Is(1, true) != nil:
		return nil, a.Is(1, true)
	}
	ids, mask := []int32{}, strings.HasSuffix(a.Name, "_mask")
	if mask && a.Len() != int64(nodes) {
		return nil, fmt.Errorf("%s has %d entries for %d nodes", a.Name, a.Len(), nodes)
	}
	seen := make([]uint64, (nodes+63)/64)
	err := a.EachInt(func(at int64, xs []int64) error {
		for i, x := range xs {
			v := x
			if mask {
				if x != 0 && x != 1 {
					return fmt.Errorf("entry %d of %s is %d; a mask is of 0 and 1", at+int64(i), a.Name, x)
				}
				if x == 0 {
					continue
				}
				v = at + int64(i)
			}
			if err := tabular.Claim(seen, v, nodes); err != nil {
				return fmt.Errorf("entry %d of %s: %w", at+int64(i), a.Name, err)
			}
			ids = append(ids, int32(v))
		}
		return nil
	})
	return [][]int32{ids}, err
}
