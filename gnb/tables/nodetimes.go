package tables

import (
	"cmp"
	"math"
	"slices"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
)

// always is the time of a node that has no time: it exists from the beginning.
const always = math.MinInt64

// timesOfNodes reports whether a column of nodes says from when on they exist.
func (r *Recipe) timesOfNodes() bool {
	return slices.ContainsFunc(r.Nodes, func(t Table) bool { return t.column(Time) != nil })
}

// checkTime returns an error for times of graphs, or of their nodes.
func (s *source) checkTime(cols []Column) error {
	if i := slices.IndexFunc(cols, func(c Column) bool { return c.Kind == Time }); i >= 0 && !s.edges && (s.graphs || s.many) {
		return fault("%s: the column %s is to be a time, and in a dataset of many graphs nodes and graphs have none; choose another kind (Kinds, --kinds)", s.table.path, shown(cols[i].Name))
	}
	return nil
}

// settleNodeTimes returns an error unless the times of nodes are in one unit, which is that of the edges.
func (r *Recipe) settleNodeTimes(all []*nodes, list []*edges, o *Options) error {
	if !r.timesOfNodes() {
		return nil
	}
	unitIn := func(c *Column) string {
		if c.Epoch {
			return c.Unit
		}
		return ""
	}
	first, own := "", ""
	for _, e := range list {
		if c := e.t.column(Time); c != nil && first == "" {
			first, own = e.t.name(true), unitIn(c)
		}
	}
	looks, _ := unitOf(r.TimeUnit) // of plain numbers
	for _, e := range list {
		for _, t := range e.times {
			looks = max(looks, likelyUnit(t))
		}
	}
	for _, n := range all {
		c := n.t.column(Time)
		if c == nil {
			continue
		}
		is := unitIn(c)
		if first == "" {
			first, own = n.t.name(false), is
		}
		if is != own {
			return fault("the times of %s are in %s and those of %s in %s; say one unit for all, as in TimeUnit: %q (--time-unit s), and give all tables dates or none", first, cmp.Or(own, "plain numbers"), n.t.name(false), cmp.Or(is, "plain numbers"), "s")
		}
		if c.Layout != "" && !zoned(c.Layout) {
			sayUTC(n.t.name(false), c.Name, int64(len(n.times)), o.say)
		}
		for _, t := range n.times {
			u := likelyUnit(t)
			switch {
			case is != "" || u == noUnit || o.TimeUnit != "":
			case looks == noUnit:
				looks = u
			case u != looks:
				return fault("the times are in mixed units: those of %s look like %s since 1970, such as %d, and others like %s; write them in one unit, or say in TimeUnit (--time-unit) that all are in one", n.t.name(false), u, t, looks)
			}
		}
	}
	if !r.Events && own != "" {
		r.TimeUnit = own
	}
	return nil
}

// putNodeTimes gives a dataset the times of its nodes, which exist always if their table has no times, and says what is odd about them.
func (r *Recipe) putNodeTimes(d *dataset.Dataset, all []*nodes, o *Options) {
	if !r.timesOfNodes() {
		return
	}
	d.Meta.TimeUnit = r.TimeUnit
	var early, without int64
	for _, n := range all {
		if n.t.column(Time) == nil {
			n.times, without = slices.Repeat([]int64{always}, n.rows), without+int64(n.rows)
		}
		for _, t := range n.times {
			if t < 0 && t != always {
				early++
			}
		}
		d.NodeTimes = append(d.NodeTimes, n.times...)
	}
	say := func(count, of int64, what string) {
		if count > 0 {
			o.say(notice.Notice{Kind: notice.Told, Where: "nodes", What: what, Count: count, Of: of})
		}
	}
	nodes := int64(len(d.NodeTimes))
	say(without, nodes, "nodes are of types without a column of times, and exist always")
	say(early, nodes, "times of nodes are negative, or before 1970")
	say(d.EdgesBeforeNodes(), d.Edges(), "edges are earlier than one of their nodes; as of a time, such an edge is known from the later node's time on")
}
