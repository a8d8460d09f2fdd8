package convert

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
	"github.com/graphnb/graphnb/internal/tabular"
)

// TypedReaders returns the formats of graphs with types, in the order in which they are tried.
func TypedReaders() []Reader {
	return []Reader{wordnetReader{}, ogbTypedReader{}, dglReader{}, tablesReader{}, triplesReader{}}
}

// Changes says how to change the relations of a converted graph.
type Changes struct {
	// Without are relations to leave out, each by its name, which leaves out all relations of that name,
	// or by its three names, such as author:writes:paper. In a graph that has the relation hypernym,
	// "hypernyms" is short for the hypernyms and hyponyms of WordNet, and those of instances.
	Without []string
	// Reverses adds the reverse of each relation ([graphops.Graph.WithReverses]).
	Reverses bool
	// SelfLoops adds a relation for each node type that joins each node to itself
	// ([graphops.Graph.WithSelfLoops]).
	SelfLoops bool
}

// hypernyms are the relations that "hypernyms" is short for.
var hypernyms = []string{"hypernym", "instance_hypernym", "hyponym", "instance_hyponym"}

// Transform returns the function that makes the changes, for [Options.Transform], or nil if
// there are none. The function returns an error for a graph without types, for a name that is of no
// relation, and for a graph with splits of edges.
func Transform(c Changes) func(*dataset.Dataset, notice.Func) (*dataset.Dataset, error) {
	if len(c.Without) == 0 && !c.Reverses && !c.SelfLoops {
		return nil
	}
	return func(d *dataset.Dataset, say notice.Func) (*dataset.Dataset, error) {
		schema := d.Schema()
		switch {
		case schema == nil:
			return nil, errors.New("its nodes and edges have no types, so it has none of --without, --reverses and --typed-loops; --undirected adds the reverse of each edge")
		case len(d.EdgeSplits) > 0 || d.EdgeAnswers != nil:
			return nil, errors.New("its edges have splits, which --without, --reverses and --typed-loops would renumber; convert without them, and change the graph in the program (Graph.OfRelations, WithReverses, WithSelfLoops)")
		}
		kept, err := keptRelations(schema, c.Without)
		if err != nil {
			return nil, err
		}
		g := d.Graph
		if len(kept) < len(schema.Relations) {
			if g, err = g.OfRelations(kept...); err != nil {
				return nil, err
			}
		}
		if c.Reverses {
			SayReversed(g.Schema, d.Name(), say)
			if g, err = g.WithReverses(0); err != nil {
				return nil, err
			}
		}
		if c.SelfLoops {
			if g, err = g.WithSelfLoops(0); err != nil {
				return nil, err
			}
		}
		changed := *d
		changed.Graph = g
		return &changed, nil
	}
}

// SayReversed says which relations of a graph get no reverse, because they have one.
func SayReversed(s *graphops.Schema, where string, say notice.Func) {
	had := s.Reversed()
	if len(had) == 0 {
		return
	}
	names := make([]string, len(had))
	for i, r := range had {
		names[i] = r.String()
	}
	say(notice.Notice{Kind: notice.Told, Where: where, What: "relations have a reverse already, and get no other: " + someOf(names), Count: int64(len(had)), Of: int64(len(s.Relations))})
}

// keptRelations returns the numbers of the relations that no name leaves out.
func keptRelations(s *graphops.Schema, without []string) ([]int, error) {
	gone := map[int]bool{}
	for _, text := range without {
		names := []string{text}
		if text == "hypernyms" && slices.ContainsFunc(s.Relations, func(r graphops.Relation) bool { return r.Name == hypernyms[0] }) {
			names = hypernyms
		}
		found := false
		for i, r := range s.Relations {
			if slices.Contains(names, r.Name) || r.String() == text {
				gone[i], found = true, true
			}
		}
		if !found {
			return nil, fmt.Errorf("there is no relation %q to leave out; the relations are %s", text, relationsOf(s))
		}
	}
	var kept []int
	for i := range s.Relations {
		if !gone[i] {
			kept = append(kept, i)
		}
	}
	return kept, nil
}

// relationsOf lists at most 40 relations.
func relationsOf(s *graphops.Schema) string {
	names := make([]string, 0, 40)
	for i, r := range s.Relations {
		if i == cap(names) {
			return fmt.Sprintf("%s and %d more", strings.Join(names, ", "), len(s.Relations)-i)
		}
		names = append(names, r.String())
	}
	return strings.Join(names, ", ")
}

// wrong returns an error about the content of a file of the source.
func wrong(s *source, name, format string, args ...any) error {
	return tabular.Wrong(strings.TrimRight(s.Path, "/")+"/"+name, format, args...)
}

// typedFirstLine returns the first line of a file, of which it reads at most 64 KiB.
func typedFirstLine(s *source, name string) ([]byte, error) {
	f, err := s.Open(name, "")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	if !lines.Scan() {
		return nil, lines.Err()
	}
	return bytes.Clone(lines.Bytes()), nil
}

// numbering numbers names in the order in which they first occur.
type numbering struct {
	of    map[string]int
	names []string
}

func newNumbering() numbering { return numbering{of: map[string]int{}} }

func (n *numbering) number(name []byte) int {
	if i, ok := n.of[string(name)]; ok {
		return i
	}
	i := len(n.names)
	n.names = append(n.names, string(name))
	n.of[n.names[i]] = i
	return i
}
