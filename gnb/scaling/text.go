package scaling

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/graphnb/graphnb/gnb/internal/boards"
	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/internal/phrase"
)

func (c Curve) title() string {
	kind := "strong"
	if c.Weak {
		kind = "weak"
	}
	return fmt.Sprintf("%s scaling of %s on %s", kind, cmp.Or(c.Model, strings.TrimPrefix(c.Task, "gnb.")), c.Dataset)
}

// machine describes the machine on which the curve was measured.
func (c Curve) machine() string {
	on := ""
	switch {
	case c.GPUs > 0:
		on = " and " + phrase.Count(c.GPUs, "GPU")
	case c.Device != "":
		on = " (" + c.Device + ")"
	}
	return fmt.Sprintf("%s%s, %s per worker; median of %s of %s; low and high are the extremes",
		phrase.Count(c.Cores, "core"), on, phrase.Count(c.Threads, "thread"), phrase.Count(c.Repeats, "repeat"), phrase.Count(c.Steps, "step"))
}

// String returns the curve as a table, with a sentence on each point that is not ideal.
func (c Curve) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n", c.title(), c.machine())
	if len(c.Points) == 0 {
		b.WriteString("nothing was measured\n")
		return phrase.Clean(b.String())
	}
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	base := c.Points[0]
	_, what := c.units(base.Workers)
	together := slices.ContainsFunc(c.Points, func(p Point) bool { return p.Cooperative })
	fmt.Fprint(w, "workers\t"+what+"s\tbatch\t"+cmp.Or(phrase.CleanLine(c.Unit), "seeds")+"/s\tspeed-up\tlow\thigh\tideal\tms/step\tedges×\trows×\t")
	if together {
		fmt.Fprint(w, "MB moved\t")
	}
	fmt.Fprintln(w)
	for _, p := range c.Points {
		units, _ := c.units(p.Workers)
		fmt.Fprintf(w, "%s\t%d\t%d\t%.0f\t%.2f\t%.2f\t%.2f\t%.2f\t%.4g\t%.2f\t%.2f\t",
			p.name(), units, p.Batch, p.Rate, p.Speedup, p.Low, p.High, p.Ideal, 1e3*p.Seconds, p.RepeatedEdges, p.RepeatedRows)
		if together {
			fmt.Fprintf(w, "%.1f\t", p.Moved/1e6)
		}
		fmt.Fprintln(w)
	}
	_ = w.Flush() // to memory
	for _, p := range c.Points[1:] {
		if s := c.why(p, base); s != "" {
			b.WriteString(s + "\n")
		}
	}
	return phrase.Clean(b.String())
}

// name is the number of workers, and how they make a batch unless each makes its own share.
func (p Point) name() string {
	if p.Cooperative {
		return fmt.Sprintf("%d cooperative", p.Workers)
	}
	return fmt.Sprint(p.Workers)
}

// why explains a point below the ideal: the stages that took more time, the repeated work, and
// missing cores.
func (c Curve) why(p, base Point) string {
	var parts []string
	if lost := p.lost(base); p.Efficiency < 0.95 && len(lost) > 0 {
		var stages []string
		for _, v := range lost[:min(len(lost), 3)] {
			stages = append(stages, fmt.Sprintf("%s %.2f ms", v.stage, 1e3*v.seconds))
		}
		parts = append(parts, "compared with the ideal, a step spends more time in "+strings.Join(stages, ", "))
	}
	if again := p.RepeatedEdges / base.RepeatedEdges; again > 1.01 {
		parts = append(parts, fmt.Sprintf("%.0f %% more edges are sampled and %.0f %% more rows read, because workers sample independently",
			100*(again-1), 100*(p.RepeatedRows/base.RepeatedRows-1)))
	}
	if units, what := c.units(p.Workers); units < p.Workers || what == "core" && units < p.Workers*c.Threads {
		parts = append(parts, fmt.Sprintf("they share %s, so more workers cannot be faster", phrase.Count(units, what)))
	}
	if parts == nil {
		return ""
	}
	workers := phrase.Count(p.Workers, "worker")
	if p.Cooperative {
		workers = p.name() + " workers"
	}
	return fmt.Sprintf("%s: %s", workers, strings.Join(parts, "; "))
}

// picture returns the curve in the form that package live draws.
func (c Curve) picture() boards.Scaling {
	s := boards.Scaling{Title: c.title(), Note: c.machine()}
	seen := map[string]bool{}
	for _, p := range c.Points {
		for name, sec := range p.Stages {
			seen[name] = seen[name] || sec > 0.005*p.Seconds // skip stages too short to be visible
		}
	}
	for _, p := range c.Points {
		units, what := c.units(p.Workers)
		q := boards.ScalingPoint{
			Workers: p.Workers, Cooperative: p.Cooperative, On: phrase.Count(units, what), Speedup: p.Speedup, Low: p.Low, High: p.High, Efficiency: p.Efficiency,
			RepeatedEdges: p.RepeatedEdges, RepeatedRows: p.RepeatedRows,
		}
		for _, name := range runfile.Stages {
			if seen[name] {
				q.Stages = append(q.Stages, boards.StageTime{Name: name, Seconds: p.Stages[name]})
			}
		}
		s.Points = append(s.Points, q)
	}
	if len(c.Points) > 0 {
		first := c.Points[0]
		for n := first.Workers; n <= c.Points[len(c.Points)-1].Workers; n++ {
			s.Ideal = append(s.Ideal, chart.Point{Step: n, Y: c.ideal(n, first.Workers)})
		}
	}
	return s
}

// PNG returns the curve as a picture: the speed-up next to the ideal, the time of a step by stage,
// and the repeated work.
func (c Curve) PNG() ([]byte, error) {
	pic, err := boards.ScalingPNG(c.picture())
	if err != nil {
		return nil, fmt.Errorf("scaling: drawing the curve: %w", err)
	}
	return pic.PNG, nil
}
