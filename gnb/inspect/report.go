package inspect

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/graphnb/graphnb/gnb/internal/boards"
	"github.com/graphnb/graphnb/internal/phrase"
)

func (r Report) title() string {
	return fmt.Sprintf("a batch of %s of %s, fanout %s, epoch %d, step %d", phrase.Count(r.Seeds, "seed"), r.Dataset, fanoutText(r.Fanouts), r.Epoch, r.Step)
}

func (r Report) machine() string {
	return fmt.Sprintf("%s on %s, %s: %.2f ms a step, nothing overlapping", r.Model, r.Device, phrase.Count(r.Threads, "thread"), 1e3*r.Seconds())
}

// Seconds returns the time of the step.
func (r Report) Seconds() (sum float64) {
	for _, s := range r.Spans {
		sum += s.Seconds
	}
	return sum
}

func fanoutText(fanouts []int) string {
	s := make([]string, len(fanouts))
	for i, f := range fanouts {
		if s[i] = fmt.Sprint(f); f < 0 {
			s[i] = "all"
		}
	}
	return strings.Join(s, ", ")
}

// String returns a table of the batch's hops and one of the step's stages.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n", r.title(), r.machine())
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "hop\tdestinations\tedges\tsources\tnew\tedges a new source\tKB\t\n")
	for i, h := range r.Hops {
		fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%d\t%.2f\t%.1f\t\n", i+1, h.Dst, h.Edges, h.Src, h.Src-h.Dst, h.Duplication, float64(h.Bytes)/1e3)
	}
	_ = w.Flush() // to memory
	w = tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "stage\tms\tshare\tMB\tGB/s\t\n")
	total := r.Seconds()
	for _, s := range r.Spans {
		rate := "–"
		if s.Seconds > 0 {
			rate = fmt.Sprintf("%.1f", float64(s.Bytes)/s.Seconds/1e9)
		}
		fmt.Fprintf(w, "%s\t%.3f\t%.0f %%\t%.2f\t%s\t\n", s.Stage, 1e3*s.Seconds, 100*s.Seconds/max(total, 1e-12), float64(s.Bytes)/1e6, rate)
	}
	_ = w.Flush()
	n := r.Around
	fmt.Fprintf(&b, "around node %d: %s, %s", n.Seed, phrase.Count(len(n.Nodes)+n.LeftOut, "node"), phrase.Count(len(n.Edges), "edge"))
	if n.LeftOut > 0 {
		fmt.Fprintf(&b, " among the first %d of them", len(n.Nodes))
	}
	b.WriteByte('\n')
	for i, t := range r.Types {
		b.WriteString([]string{"types: ", "; "}[min(i, 1)] + t.Name + ", " + t.describe())
	}
	if r.Types != nil {
		b.WriteByte('\n')
	}
	return phrase.Clean(b.String())
}

// picture returns the report in the form that package live draws.
func (r Report) picture() boards.Batch {
	p := boards.Batch{Title: r.title(), Note: r.machine(), LeftOut: r.Around.LeftOut}
	for _, s := range r.Spans {
		p.Spans = append(p.Spans, boards.Span{Name: s.Stage, Start: s.Start, Seconds: s.Seconds, Bytes: s.Bytes})
	}
	for _, h := range r.Hops {
		p.Hops = append(p.Hops, boards.Hop{Edges: h.Edges, Sources: h.Src, Duplication: h.Duplication})
	}
	for _, n := range r.Around.Nodes {
		p.Nodes = append(p.Nodes, boards.GraphNode{Label: fmt.Sprint(n.ID), Hop: n.Hop})
	}
	for _, x := range r.Around.Edges {
		p.Edges = append(p.Edges, [2]int{x.Src, x.Dst})
	}
	return p
}

// PNG returns the report as a picture: the neighbourhood of a seed and the step's time line.
func (r Report) PNG() ([]byte, error) {
	pic, err := boards.BatchPNG(r.picture())
	if err != nil {
		return nil, fmt.Errorf("inspect: drawing the batch: %w", err)
	}
	return pic.PNG, nil
}
