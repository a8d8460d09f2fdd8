package runs

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/gnb/internal/live"
	"github.com/graphnb/graphnb/internal/phrase"
)

// String returns the comparison as text: settings that differ, results, and each run's curves as a
// line of block characters, all on one scale.
func (c Comparison) String() string { return phrase.Clean(c.text(c.picture())) }

// text is String for curves that were already read.
func (c Comparison) text(p live.Comparison) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	line := func(name string, values []string) {
		fmt.Fprint(w, oneLineOf(name))
		for _, v := range values {
			fmt.Fprintf(w, "\t%s", cmp.Or(readable(oneLineOf(v)), "–"))
		}
		fmt.Fprintln(w)
	}
	ids := make([]string, len(c.Runs))
	for i, r := range c.Runs {
		ids[i] = r.Config.ID
	}
	line("", ids)
	for _, row := range c.Settings {
		line(row.Name, row.Values)
	}
	fmt.Fprintln(w)
	for _, row := range c.Results {
		line(row.Name, row.Values)
	}
	_ = w.Flush() // to memory
	sparks(&b, "loss by step", p.Runs, func(r live.ComparedRun) []chart.Point { return r.Loss })
	sparks(&b, p.Metric+" by epoch", p.Runs, func(r live.ComparedRun) []chart.Point { return r.Metric })
	return b.String()
}

// PNG returns the comparison as a picture: losses and a validation metric of the first 18 runs in
// one chart, with a legend.
func (c Comparison) PNG() ([]byte, error) {
	pic, err := live.ComparisonPNG(c.picture())
	if err != nil {
		return nil, fmt.Errorf("runs: drawing the comparison: %w", err)
	}
	return pic.PNG, nil
}

// picture returns the comparison in the form that package live draws. It leaves out metrics that
// cannot be read.
func (c Comparison) picture() live.Comparison {
	p := live.Comparison{Title: c.title(), Note: c.note()}
	labels := c.labels()
	byName := make([]map[string][]chart.Point, len(c.Runs))
	for i, r := range c.Runs {
		byName[i] = map[string][]chart.Point{}
		cr := live.ComparedRun{Name: labels[i]}
		_ = r.Events(func(e Event) {
			switch e.Kind {
			case KindSteps:
				for _, s := range e.Records {
					cr.Loss = append(cr.Loss, chart.Point{Step: int(s.Total), Y: float64(s.Loss)})
				}
			case KindMetrics:
				for _, v := range e.Values {
					byName[i][v.Name] = append(byName[i][v.Name], chart.Point{Step: e.Epoch + 1, Y: v.Value})
				}
			}
		})
		p.Runs = append(p.Runs, cr)
	}
	metric := c.metric(byName)
	p.Metric = strings.ReplaceAll(metric, "_", " ")
	for i, r := range c.Runs {
		p.Runs[i].Metric = byName[i][metric]
		p.Runs[i].Result = r.outcome()["state"]
		if v := r.Value(metric); !math.IsNaN(v) {
			p.Runs[i].Result += fmt.Sprintf(", %s %.4g", p.Metric, v)
		}
	}
	return p
}

// metric returns the name of the metric that most runs have; it prefers validation metrics.
func (c Comparison) metric(byName []map[string][]chart.Point) string {
	count := map[string]int{}
	for i, m := range byName {
		for name := range m {
			if split, ok := c.Runs[i].hasMetric(name); ok {
				count[name] += 2
				if split == "val" {
					count[name]++
				}
			}
		}
	}
	best := "val_accuracy"
	for name, n := range count {
		if n > count[best] || n == count[best] && name < best {
			best = name
		}
	}
	return best
}

// title returns the settings that all runs share.
func (c Comparison) title() string {
	of := func(name string) (value string, same bool) {
		for i, r := range c.Runs {
			v := r.Fields()[name]
			if i > 0 && v != value {
				return "", false
			}
			value = v
		}
		return value, value != ""
	}
	t := phrase.Count(len(c.Runs), "run")
	if model, ok := of("model"); ok {
		t += " of " + model
	}
	if ds, ok := of("dataset"); ok {
		t += " on " + ds
	}
	return t
}

// told returns the settings that distinguish the runs, the model first: those that users vary on
// purpose or, if there are none, any.
func (c Comparison) told() []ComparedField {
	var varied []ComparedField
	for _, row := range c.Settings {
		if !slices.Contains(leastTelling, row.Name) {
			varied = append(varied, row)
		}
	}
	if len(varied) == 0 {
		return c.Settings
	}
	if i := slices.IndexFunc(varied, func(r ComparedField) bool { return r.Name == "args.Model" }); i > 0 {
		model := varied[i]
		varied = slices.Insert(slices.Delete(varied, i, i+1), 0, model)
	}
	return varied
}

// shorten returns the shortest unambiguous names of settings.
func (c Comparison) shorten(rows []ComparedField) []string {
	settings := make([]map[string]string, len(c.Runs))
	for i, r := range c.Runs {
		settings[i] = r.settings()
	}
	names := make([]string, len(rows))
	for i, row := range rows {
		names[i] = shortName(row.Name, settings)
	}
	return names
}

func (c Comparison) note() string {
	if len(c.Settings) == 0 {
		return "the same settings"
	}
	return "they differ in " + strings.Join(c.shorten(c.Settings), ", ")
}

// labels returns a distinct label for each run: the settings in which the runs differ, and the
// run's name if those are not enough.
func (c Comparison) labels() []string {
	told := c.told()
	names := c.shorten(told)
	labels, seen := make([]string, len(c.Runs)), map[string]int{}
	for i := range c.Runs {
		words := make([]string, len(told))
		for k, row := range told {
			words[k] = names[k] + " " + cmp.Or(readable(row.Values[i]), "–")
		}
		labels[i] = strings.Join(words, ", ")
		seen[labels[i]]++
	}
	for i, r := range c.Runs {
		switch {
		case labels[i] == "":
			labels[i] = r.name()
		case seen[labels[i]] > 1:
			labels[i] += ", " + r.name()
		}
	}
	return labels
}

// sparkWidth is the maximum width, in columns, of a curve as text.
const sparkWidth = 40

// sparks writes one line per run, all on one scale, each with its last value.
func sparks(b *strings.Builder, title string, runs []live.ComparedRun, of func(live.ComparedRun) []chart.Point) {
	lo, hi, from, to := math.Inf(1), math.Inf(-1), math.MaxInt, 0
	for _, r := range runs {
		for _, q := range of(r) {
			if !math.IsNaN(q.Y) && !math.IsInf(q.Y, 0) {
				lo, hi = min(lo, q.Y), max(hi, q.Y)
				from, to = min(from, q.Step), max(to, q.Step)
			}
		}
	}
	if lo > hi {
		return
	}
	fmt.Fprintf(b, "\n%s, %d to %d, from %.4g to %.4g\n", oneLineOf(title), from, to, lo, hi)
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	for _, r := range runs {
		line, last := spark(of(r), lo, hi, from, to)
		fmt.Fprintf(w, "%s\t%s\t%s\n", line, last, oneLineOf(r.Name))
	}
	_ = w.Flush() // to memory
}

// spark returns a curve as block characters and its last value; each column is the mean of its
// steps.
func spark(points []chart.Point, lo, hi float64, from, to int) (line, last string) {
	blocks := []rune("▁▂▃▄▅▆▇█")
	width := min(sparkWidth, to-from+1)
	sum, n := make([]float64, width), make([]int, width)
	last = "–"
	for _, q := range points {
		if math.IsNaN(q.Y) || math.IsInf(q.Y, 0) {
			continue
		}
		at := (q.Step - from) * (width - 1) / max(to-from, 1)
		sum[at] += q.Y
		n[at]++
		last = fmt.Sprintf("%.4g", q.Y)
	}
	out := make([]rune, width)
	for i := range out {
		out[i] = ' '
		if n[i] > 0 {
			share := 0.0
			if hi > lo {
				share = (sum[i]/float64(n[i]) - lo) / (hi - lo)
			}
			out[i] = blocks[min(int(share*float64(len(blocks))), len(blocks)-1)]
		}
	}
	return string(out), last
}
