package convert

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
	"github.com/graphnb/graphnb/internal/tabular"
)

var _ folderReader = sageReader{}

// sageReader reads the folders of GraphSAGE: NAME-G.json (NetworkX's node-link format; a node's val
// and test give its split), NAME-id_map.json (the number of each node), NAME-class_map.json, and
// NAME-feats.npy, which may be missing. If a folder holds several datasets, --name chooses one.
// Random walks are not read.
//
// Source: W. Hamilton, R. Ying, J. Leskovec, NIPS 2017, arXiv:1706.02216, and
// its repository's README.
type sageReader struct{}

const sageGraph = "-G.json"

func (sageReader) Name() string { return "graphsage" }

// Folder implements [folderReader].
func (sageReader) Folder() bool { return true }

func (sageReader) About() string {
	return "a GraphSAGE folder: NAME-G.json, NAME-id_map.json, NAME-class_map.json and maybe NAME-feats.npy"
}

func (sageReader) detect(s *source) bool { return len(s.prefixes("", sageGraph)) > 0 }

// prefixes returns the parts of the folder's file names between a beginning and an ending.
func (s *source) prefixes(begin, ending string) []string {
	var names []string
	for _, file := range s.Files {
		if rest, ok := strings.CutPrefix(file, begin); ok {
			if name, ok := strings.CutSuffix(rest, ending); ok && name != "" {
				names = append(names, name)
			}
		}
	}
	return names
}

// choose returns the dataset of the folder that the options choose.
func (s *source) choose(names []string, o Options) (string, error) {
	switch {
	case o.Name != "" && slices.Contains(names, o.Name):
		return o.Name, nil
	case len(names) == 1:
		return names[0], nil
	case o.Name != "":
		return "", tabular.Errorf("%s has no dataset %q; it has %s", s.Path, o.Name, strings.Join(names, ", "))
	}
	return "", tabular.Errorf("%s holds several datasets, %s: --name says which", s.Path, strings.Join(names, ", "))
}

func (sageReader) read(ctx context.Context, s *source, o Options) (*dataset.Dataset, error) {
	name, err := s.choose(s.prefixes("", sageGraph), o)
	if err != nil {
		return nil, err
	}
	if err := s.need(name+"-class_map.json", "the nodes' classes"); err != nil {
		return nil, err
	}
	ids, err := readIDMap(s, name+"-id_map.json")
	if err != nil {
		return nil, err
	}
	g, err := readNodeLink(ctx, s, name+sageGraph, ids)
	if err != nil {
		return nil, err
	}
	byName := func(a, b attribute) int { return cmp.Compare(a.String(), b.String()) }
	for _, a := range slices.SortedFunc(maps.Keys(g.skipped), byName) {
		o.said.Add(notice.Notice{Kind: notice.Dropped, Where: name + sageGraph, What: "nothing was read of " + a.String(), Count: g.skipped[a]})
	}
	d, err := g.edges.dataset(o)
	if err != nil {
		return nil, err
	}
	d.Splits = g.splits
	if err := sageLabels(s, name+"-class_map.json", ids, d); err != nil {
		return nil, err
	}
	feats := name + "-feats.npy"
	if s.Has(feats) && o.Features == "" {
		d.Features, err = s.features(feats, d.Nodes())
	} else if o.Features == "" {
		o.note("%s has no %s, so the dataset has no features; --features makes some", s.Path, feats)
	}
	if d.Meta.Name == "" {
		d.Meta.Name = name
	}
	return d, err
}

// readIDMap reads {"id": number, …}; the numbers must be 0 to n-1.
func readIDMap(s *source, name string) (map[string]int32, error) {
	f, err := s.Open(name, "the numbers of the nodes")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	ids := map[string]int32{}
	j := tabular.NewJSON(f, f.Wrong)
	err = j.Object(func(key string) error {
		v, err := j.Whole()
		if err != nil {
			return err
		}
		if v < 0 || v >= MaxNodes {
			return j.Wrong("the number of node %s is %d; numbers are 0 to the number of nodes less 1", tabular.Shown([]byte(key)), v)
		}
		if _, twice := ids[key]; twice {
			return j.Wrong("the node %s occurs twice", tabular.Shown([]byte(key)))
		}
		ids[key] = int32(v)
		return nil
	})
	if err == nil {
		err = j.End()
	}
	if err != nil {
		return nil, err
	}
	seen := make([]uint64, (len(ids)+63)/64)
	for key, v := range ids {
		if err := tabular.Claim(seen, int64(v), len(ids)); err != nil {
			return nil, f.Wrong("node %s: %w", tabular.Shown([]byte(key)), err)
		}
	}
	return ids, nil
}

// nodeLink is a graph in NetworkX's node-link format.
type nodeLink struct {
	edges  edges
	splits map[string][]int32

	ids map[string]int32
	// In links, whole numbers are node ids if the nodes' ids are whole numbers, and positions in
	// the list of nodes otherwise (NetworkX 1). Which of the two is known only after the nodes are
	// read, so links are stored unresolved until then: a non-negative value is a number from the
	// file, and -1-v is node v, found by its text.
	links   []int64
	order   []int32
	numbers bool // node ids are whole numbers
	seen    []uint64
	skipped map[attribute]int64 // attributes that are not read, and how often they occur
}

// maxSkipped bounds the different attributes that are counted.
const maxSkipped = 1000

// attribute is what a graph, or its nodes or links, have; the zero value stands for further ones.
type attribute struct{ of, key string }

func (a attribute) String() string {
	if a == (attribute{}) {
		return "further attributes"
	}
	return fmt.Sprintf("the attribute %s of %s", tabular.Shown([]byte(a.key)), a.of)
}

func (g *nodeLink) skip(j *tabular.JSON, of, key string) error {
	a := attribute{of, key}
	if _, ok := g.skipped[a]; !ok && len(g.skipped) >= maxSkipped {
		a = attribute{}
	}
	g.skipped[a]++
	return j.Skip()
}

func readNodeLink(ctx context.Context, s *source, name string, ids map[string]int32) (*nodeLink, error) {
	f, err := s.Open(name, "the graph")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	g := &nodeLink{
		ids: ids, splits: map[string][]int32{"train": {}, "val": {}, "test": {}},
		edges: edges{nodes: len(ids), undirected: true}, seen: make([]uint64, (len(ids)+63)/64), skipped: map[attribute]int64{},
	}
	j := tabular.NewJSON(f, f.Wrong)
	parts := map[string]bool{}
	err = j.Object(func(key string) error {
		if parts[key] {
			return j.Wrong("%q occurs twice", key)
		}
		parts[key] = true
		switch key {
		case "directed":
			directed, err := j.Boolean()
			g.edges.undirected = !directed
			return err
		case "nodes":
			return j.Array(func() error {
				if len(g.order)%4096 == 0 && ctx.Err() != nil {
					return ctx.Err()
				}
				return g.node(j)
			})
		case "links", "edges":
			return j.Array(func() error {
				if len(g.links)%8192 == 0 && ctx.Err() != nil {
					return ctx.Err()
				}
				return g.link(j)
			})
		}
		return j.Skip()
	})
	if err == nil {
		err = j.End()
	}
	switch {
	case err != nil:
		return nil, err
	case !parts["nodes"] || !parts["links"] && !parts["edges"]:
		return nil, f.Wrong(`it is not a graph in the node-link format: "nodes" or "links" is missing`)
	}
	if err := g.resolve(f); err != nil {
		return nil, err
	}
	for name := range g.splits {
		slices.Sort(g.splits[name])
	}
	return g, nil
}

// node reads {"id": …, "val": …, "test": …, …}. A node without val and test is in no split, as in
// GraphSAGE's loader.
func (g *nodeLink) node(j *tabular.JSON) error {
	id := int32(-1)
	var val, test, marked bool
	err := j.Object(func(key string) error {
		var err error
		switch key {
		case "id":
			var text string
			c, err := j.Peek()
			if err != nil {
				return err
			}
			if c == '"' {
				text, err = j.Text()
			} else {
				var n int64
				n, err = j.Whole()
				text = strconv.FormatInt(n, 10)
				g.numbers = true
			}
			if err != nil {
				return err
			}
			v, ok := g.ids[text]
			if !ok {
				return j.Wrong("the node %s is not in the id map", tabular.Shown([]byte(text)))
			}
			id = v
			return nil
		case "val":
			val, err = j.Boolean()
			marked = true
		case "test":
			test, err = j.Boolean()
			marked = true
		default:
			err = g.skip(j, "nodes", key)
		}
		return err
	})
	if err != nil {
		return err
	}
	if id < 0 {
		return j.Wrong("a node has no id")
	}
	if err := tabular.Claim(g.seen, int64(id), len(g.ids)); err != nil {
		return j.Wrong("%w", err)
	}
	g.order = append(g.order, id)
	if marked {
		name := "train"
		if test {
			name = "test"
		} else if val {
			name = "val"
		}
		g.splits[name] = append(g.splits[name], id)
	}
	return nil
}

// link reads {"source": …, "target": …, …}.
func (g *nodeLink) link(j *tabular.JSON) error {
	ends := [2]int64{}
	have := [2]bool{}
	err := j.Object(func(key string) error {
		i := slices.Index([]string{"source", "target"}, key)
		if i < 0 {
			return g.skip(j, "links", key)
		}
		have[i] = true
		c, err := j.Peek()
		if err != nil {
			return err
		}
		if c == '"' {
			text, err := j.Text()
			if err != nil {
				return err
			}
			v, ok := g.ids[text]
			if !ok {
				return j.Wrong("a link names the node %s, which is not in the id map", tabular.Shown([]byte(text)))
			}
			ends[i] = -1 - int64(v)
			return nil
		}
		ends[i], err = j.Whole()
		if err == nil && ends[i] < 0 {
			return j.Wrong("a link names the node %d", ends[i])
		}
		return err
	})
	if err != nil {
		return err
	}
	if !have[0] || !have[1] {
		return j.Wrong("a link has no source or no target")
	}
	g.links = append(g.links, ends[0], ends[1])
	return nil
}

// resolve turns the links into edges.
func (g *nodeLink) resolve(f *tabular.File) error {
	var byNumber map[int64]int32
	if g.numbers {
		byNumber = make(map[int64]int32, len(g.ids))
		for text, v := range g.ids {
			if n, ok := tabular.Whole([]byte(text)); ok {
				byNumber[n] = v
			}
		}
	}
	e := &g.edges
	e.src, e.dst = make([]int32, len(g.links)/2), make([]int32, len(g.links)/2)
	for i, end := range g.links {
		var v int32
		switch {
		case end < 0:
			v = int32(-1 - end)
		case g.numbers:
			var ok bool
			if v, ok = byNumber[end]; !ok {
				return f.Wrong("link %d names the node %d, which is not in the id map", i/2, end)
			}
		case end >= int64(len(g.order)):
			return f.Wrong("link %d names the node at place %d, but there are %d nodes", i/2, end, len(g.order))
		default:
			v = g.order[end]
		}
		if i%2 == 0 {
			e.src[i/2] = v
		} else {
			e.dst[i/2] = v
		}
	}
	g.links = nil
	return nil
}

func sageLabels(s *source, name string, ids map[string]int32, d *dataset.Dataset) error {
	f, err := s.Open(name, "the nodes' classes")
	if err != nil {
		return err
	}
	defer f.Close()
	l := newLabels(d.Nodes())
	j := tabular.NewJSON(f, f.Wrong)
	err = j.Object(func(key string) error {
		v, ok := ids[key]
		if !ok {
			return j.Wrong("the node %s is not in the id map", tabular.Shown([]byte(key)))
		}
		return l.read(j, int64(v))
	})
	if err == nil {
		err = j.End()
	}
	if err != nil {
		return err
	}
	return l.store(d, f.Path)
}
