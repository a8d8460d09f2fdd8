package convert

import (
	"bytes"
	"context"
	"path/filepath"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
	"github.com/graphnb/graphnb/internal/tabular"
)

var _ Reader = adjacencyReader{}

// adjacencyReader reads the adjacency lists that networkx writes: in each line a node and the nodes to which it has edges.
type adjacencyReader struct{}

func (adjacencyReader) Name() string { return "adjlist" }

func (adjacencyReader) About() string {
	return "an adjacency list, as networkx writes it: in each line the number of a node and of those to which it has edges"
}

// Detect reports whether the file's name or the comments of networkx say so, because each line could also be an edge with a
// weight.
func (adjacencyReader) detect(s *source) bool {
	if s.Dir {
		return false
	}
	lines := bytes.SplitN(s.Head, []byte{'\n'}, 4)
	return tabular.HasEnding(s.Path, ".adjlist", ".adj") ||
		len(lines) > 3 && bytes.HasPrefix(lines[0], []byte("#")) && bytes.HasPrefix(lines[1], []byte("# GMT ")) && bytes.HasPrefix(lines[2], []byte("#"))
}

func (adjacencyReader) read(ctx context.Context, s *source, o Options) (*dataset.Dataset, error) {
	f, err := s.Open("", "")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	l := &edgeList{most: -1}
	var src, dst tabular.Pile[int32]
	var alone []int64 // nodes of lines without neighbours
	parse := func(b tabular.Block) ([]int64, error) {
		var all []int64 // for each line the number of its ids, and the ids
		err := b.Lines(func(line []byte, number int64) error {
			if tabular.Comment(line) {
				return nil
			}
			at := len(all)
			all = append(all, 0)
			for rest := line; len(rest) > 0; {
				var text []byte
				text, rest = tabular.Field(rest)
				id, ok := tabular.Whole(text)
				if !ok || id < 0 || id >= MaxNodes {
					return tabular.AtLine(number, "%s is not a node id; ids are whole numbers from 0 to %d (names and attributes of edges are read from tables)", tabular.Shown(text), MaxNodes-1)
				}
				all = append(all, id)
			}
			all[at] = int64(len(all) - at - 1)
			return nil
		})
		return all, err
	}
	err = tabular.EachBlock(ctx, f, o.Threads, parse, func(all []int64) error {
		for len(all) > 0 {
			ids := all[1 : 1+all[0]]
			if o.Relabel && len(ids) == 1 {
				alone = append(alone, ids[0])
			}
			for k, id := range ids {
				l.most = max(l.most, id)
				if k > 0 {
					src.Add(int32(ids[0]))
					dst.Add(int32(id))
				}
			}
			all = all[1+all[0]:]
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case src.N == 0:
		return nil, f.Wrong("it has no edges")
	}
	l.src, l.dst = src.Flat(), dst.Flat()
	if o.Relabel {
		for i := range l.src {
			l.wide = append(l.wide, int64(l.src[i]), int64(l.dst[i]))
		}
		l.alone = alone
	}
	e, err := l.number(f, 0, o)
	if err != nil {
		return nil, err
	}
	if o.Relabel {
		s.keepIDs(l.ids, filepath.Base(f.Path), o)
	}
	if !o.Undirected {
		o.said.Add(notice.Notice{Kind: notice.Guessed, Where: filepath.Base(f.Path), What: "the edges lead from the first node of a line to the others; networkx writes each edge of an undirected graph once", Count: int64(len(l.src)), Option: "--undirected adds the reverse of each"})
	}
	return e.dataset(o)
}
