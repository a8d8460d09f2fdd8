package datasets

import (
	"fmt"
	"math"
	"net/url"
	"slices"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/philox"
)

// MoleculesOptions are the parameters of [Molecules]. The zero value makes 10,000 graphs.
type MoleculesOptions struct {
	// Graphs is the number of graphs; 0 means 10,000.
	Graphs int
	// Noise is the standard deviation of what is added to the target; 0 means 0.1, and a negative number no noise.
	Noise float64
	// Seed is the random seed; 0 is a seed like any other.
	Seed uint64
}

// The molecules: their sizes, the atoms that decide about the class, and the kinds of atoms and bonds.
const (
	moleculeLeast = 16
	moleculeMost  = 24
	moleculeBonds = 4 // of an atom, at most
	// heteroatoms is the number of atoms N and that of atoms O of each molecule.
	heteroatoms = 3

	carbon, nitrogen, oxygen, fluorine = 0, 1, 2, 3
	atomKinds                          = 4

	singleBond, doubleBond, ringBond = 0, 1, 2
	bondKinds                        = 3
)

const (
	moleculesKey = 0x6d6f6c6563756c65
	one16        = 0x3c00 // 1 in float16
)

// Molecules generates a dataset of many small graphs like molecules: trees of 16 to 24 atoms with no, one or two rings of five or
// six, and at most four bonds an atom. What there is to predict is in the structure alone:
//
//	target = number of bonds between an atom N and an atom O, plus noise
//	class  = 1 if that number is 2 or more, and 0 otherwise
//
// Each molecule has three atoms N and three atoms O, whatever its class. The numbers of other atoms, of bonds and of rings do not
// depend on the class either. A model that adds the features of all nodes without edges therefore is right in half of the cases,
// and its best prediction of the target is the mean. One layer of sums over neighbours, as of the graph isomorphism network (K. Xu
// et al., ICLR 2019, arXiv:1810.00826), sees these bonds.
//
// Features of nodes are the kind of atom, one-hot (C, N, O, F); features of edges, in float16, the kind of bond (single, double,
// ring), which says nothing about the class. 80 % of the graphs are train, 10 % val and 10 % test, at random.
//
// The result depends only on the options, bit for bit, not on the number of threads. It returns an error for options out of
// range. Cost of a million graphs: 860 MB, and 10 seconds of processor time with writing them; nothing is allocated per graph.
func Molecules(o MoleculesOptions) (*dataset.Dataset, error) {
	d := MoleculesOptions{Graphs: 10_000, Noise: 0.1, Seed: o.Seed}
	if o.Graphs != 0 {
		d.Graphs = o.Graphs
	}
	if o.Noise != 0 {
		d.Noise = max(0, o.Noise)
	}
	return molecules(d, 0, nil)
}

func loadMolecules(q url.Values, m *meter) (*dataset.Dataset, error) {
	o := MoleculesOptions{Graphs: 10_000, Noise: 0.1}
	if err := parseParams("molecules", q, []param{wholeParam("graphs", &o.Graphs), realParam("noise", &o.Noise, "a number"), seedParam(&o.Seed)}); err != nil {
		return nil, err
	}
	return molecules(o, 0, m)
}

// molecules generates with the given options; zeros mean zero.
func molecules(o MoleculesOptions, threads int, m *meter) (*dataset.Dataset, error) {
	const most = math.MaxInt32 / moleculeMost
	switch {
	case o.Graphs < 10 || o.Graphs > most:
		return nil, fmt.Errorf("dataset: molecules: graphs is %d; it must lie in [10, %d]", o.Graphs, most)
	case !(o.Noise >= 0 && o.Noise <= 1e6):
		return nil, fmt.Errorf("dataset: molecules: noise is %v; it is a standard deviation and must lie in [0, 1e6]", o.Noise)
	}
	nodes := o.Graphs * (moleculeLeast + moleculeMost) / 2
	if err := generatorRoom("molecules", nodes, atomKinds+4, float64(nodes)); err != nil {
		return nil, err
	}
	m.expect(2 * int64(o.Graphs))
	at, edgesAt := make([]int64, o.Graphs+1), make([]int64, o.Graphs+1)
	each := func(visit func(g int, mol *molecule)) {
		parallel.For(threads, o.Graphs, 1<<10, func(lo, hi int) {
			if !m.add(hi - lo) {
				return
			}
			var mol molecule
			for g := lo; g < hi; g++ {
				mol.draw(o.Seed^moleculesKey, g)
				visit(g, &mol)
			}
		})
	}
	each(func(g int, mol *molecule) {
		at[g+1], edgesAt[g+1] = int64(mol.n), int64(mol.ends)
	})
	if err := m.err(); err != nil {
		return nil, err
	}
	for g := range o.Graphs {
		at[g+1] += at[g]
		edgesAt[g+1] += edgesAt[g]
	}
	nodes, ends := int(at[o.Graphs]), edgesAt[o.Graphs]
	x := &graphops.EdgeFeatures{Cols: bondKinds, F16: make([]uint16, ends*bondKinds)}
	graph := &graphops.Graph{Indptr: make([]int64, nodes+1), Indices: make([]int32, ends), EdgeFeatures: x}
	features := &dataset.Matrix{Rows: nodes, Cols: atomKinds, F32: make([]float32, nodes*atomKinds)}
	labels, targets := make([]int32, o.Graphs), &dataset.Matrix{Rows: o.Graphs, Cols: 1, F32: make([]float32, o.Graphs)}
	scale := o.Noise / math.Sqrt(4*(1<<32-1)/12.0)
	each(func(g int, mol *molecule) {
		e := edgesAt[g]
		for v := range mol.n {
			row := mol.next[v][:mol.degree[v]]
			for _, end := range row {
				graph.Indices[e] = int32(at[g]) + int32(end.to)
				x.F16[e*bondKinds+int64(end.kind)] = one16
				e++
			}
			graph.Indptr[at[g]+int64(v)+1] = e
			features.F32[(at[g]+int64(v))*atomKinds+int64(mol.kind[v])] = 1
		}
		if mol.pairs >= 2 {
			labels[g] = 1
		}
		u := mol.stream
		a, b := u.Next(), u.Next()
		z := float64(float64(int32(a&0xffff+a>>16+b&0xffff+b>>16)-2*0xffff) * scale) // converted against a fused multiply-add
		targets.F32[g] = float32(float64(mol.pairs) + z)
	})
	if err := m.err(); err != nil {
		return nil, err
	}
	d := &dataset.Dataset{
		Graph: graph, Features: features, GraphOffsets: at, Splits: map[string][]int32{},
		Graphs: &dataset.Dataset{Labels: labels, Targets: targets, Meta: dataset.Metadata{NumClasses: 2, NumNodes: o.Graphs, TargetNames: []string{"N-O bonds"}, ClassNames: []string{"below 2", "2 or more"}}},
		Meta: dataset.Metadata{
			Name: "molecules", Undirected: true, FeatureNames: []string{"C", "N", "O", "F"}, EdgeFeatureNames: []string{"single", "double", "ring"},
			Source: fmt.Sprintf("generated by molecules?graphs=%d&noise=%v&seed=%d", o.Graphs, o.Noise, o.Seed), Licence: "CC0-1.0",
		},
	}
	if err := d.Graphs.SplitAtRandom(dataset.SplitOptions{Seed: o.Seed, Plain: true}); err != nil {
		return nil, err
	}
	d.Describe()
	return d, nil
}

// bondEnd is a bond as an atom sees it.
type bondEnd struct {
	to   int8
	kind int8
}

// molecule is one graph; drawing one overwrites another.
type molecule struct {
	n, ends int // atoms; bonds, in both directions
	degree  [moleculeMost]int8
	next    [moleculeMost][moleculeBonds]bondEnd // ascending
	kind    [moleculeMost]int8
	pairs   int // bonds between N and O
	stream  philox.Stream
}

func (m *molecule) below(n int) int { return int(philox.Bounded(m.stream.Next(), uint32(n))) }

func (m *molecule) bond(u, v, kind int) {
	m.next[u][m.degree[u]] = bondEnd{int8(v), int8(kind)}
	m.degree[u]++
	m.next[v][m.degree[v]] = bondEnd{int8(u), int8(kind)}
	m.degree[v]++
	m.ends += 2
}

// draw draws molecule g.
func (m *molecule) draw(key uint64, g int) {
	*m = molecule{stream: philox.NewStream(key, int64(g), 0, philox.C3(philox.User, 0, 0))}
	m.n = moleculeLeast + m.below(moleculeMost-moleculeLeast+1)
	rings := m.below(3)
	// Rings come first, and then atoms that hang on one of those before them, so that the graph is connected.
	for v := 0; v < m.n; {
		if v > 0 {
			m.hang(v)
		}
		if size := 5 + m.below(2); rings > 0 {
			rings--
			for i := 1; i < size; i++ {
				m.bond(v+i-1, v+i, ringBond)
			}
			m.bond(v+size-1, v, ringBond)
			v += size
			continue
		}
		v++
	}
	for v := range m.n {
		row := m.next[v][:m.degree[v]]
		slices.SortFunc(row, func(a, b bondEnd) int { return int(a.to) - int(b.to) })
	}
	m.atoms()
}

// hang bonds atom v to one before it that has place for a further bond. Among the atoms of a tree there always is one.
func (m *molecule) hang(v int) {
	u := m.below(v)
	for m.degree[u] >= moleculeBonds {
		u = (u + 1) % v
	}
	kind := singleBond
	if m.below(5) == 0 {
		kind = doubleBond
	}
	m.bond(u, v, kind)
}

// atoms chooses the kinds of the atoms: how many bonds there are between N and O first, and then the places of the others so
// that there are no further ones, if possible.
func (m *molecule) atoms() {
	var order [moleculeMost]int8
	for i := range m.n {
		order[i] = int8(i)
	}
	for i := m.n - 1; i > 0; i-- {
		j := m.below(i + 1)
		order[i], order[j] = order[j], order[i]
	}
	want, of := m.below(heteroatoms+1), [atomKinds]int{nitrogen: heteroatoms, oxygen: heteroatoms}
	for _, u := range order[:m.n] {
		if m.pairs == want {
			break
		}
		if m.kind[u] != carbon || m.beside(u, nitrogen)+m.beside(u, oxygen) > 0 {
			continue
		}
		for _, end := range m.next[u][:m.degree[u]] {
			if m.kind[end.to] == carbon && m.beside(end.to, nitrogen)+m.beside(end.to, oxygen) == 0 {
				m.kind[u], m.kind[end.to] = nitrogen, oxygen
				of[nitrogen]--
				of[oxygen]--
				m.pairs++
				break
			}
		}
	}
	for _, anywhere := range []bool{false, true} {
		for _, u := range order[:m.n] {
			for _, pair := range [2][2]int8{{nitrogen, oxygen}, {oxygen, nitrogen}} {
				kind, other := pair[0], pair[1]
				if m.kind[u] == carbon && of[kind] > 0 && (anywhere || m.beside(u, other) == 0) {
					m.kind[u] = kind
					of[kind]--
					m.pairs += m.beside(u, other)
				}
			}
		}
	}
	for _, u := range order[:m.n] {
		if m.kind[u] == carbon && m.below(10) == 0 {
			m.kind[u] = fluorine
		}
	}
}

// beside counts the neighbours of u of a kind.
func (m *molecule) beside(u, kind int8) (n int) {
	for _, end := range m.next[u][:m.degree[u]] {
		if m.kind[end.to] == kind {
			n++
		}
	}
	return n
}
