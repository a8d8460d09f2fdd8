package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/graphnb/graphnb/gnb/internal/screen"
	"github.com/graphnb/graphnb/internal/phrase"
)

func sortChoices(c []Choice) {
	slices.SortStableFunc(c, func(a, b Choice) int { return cmp.Compare(a.EpochSeconds, b.EpochSeconds) })
}

// describe names a choice.
func (c Choice) describe() string {
	s := phrase.Count(c.Workers, "worker") + " of " + phrase.Count(c.Threads, "thread")
	if c.Machines > 1 {
		s += fmt.Sprintf(" on %d machines", c.Machines)
	}
	if c.Virtual > 1 {
		s += fmt.Sprintf(", %d virtual ranks each", c.Virtual)
	}
	if c.Mode != "independent" {
		s += ", " + c.Mode
	}
	if c.Precision != "float32" {
		s += ", " + c.Precision
	}
	if c.Topology != "replicated" {
		s += ", " + c.Topology + " topology"
	}
	return s
}

func ms(seconds float64) string {
	if seconds == 0 {
		return "–"
	}
	return fmt.Sprintf("%.3g", 1e3*seconds)
}

// title names the planned run.
func (p *Plan) title() string {
	how := ""
	if p.Fanouts != nil {
		how = ", fanout " + fanoutText(p.Fanouts)
	}
	if p.Sampler != "" {
		how += ", sampler " + p.Sampler
	}
	batch := "the whole graph in each step"
	if p.Batch > 0 {
		batch = strings.TrimSuffix(fmt.Sprintf("batch %d %s", p.Batch, phrase.CleanLine(p.Unit)), " ")
	}
	return fmt.Sprintf("plan of %s on %s: %s%s, %s, %s an epoch", p.Model, p.Dataset, p.describe(), how, batch, phrase.Count(p.Steps, "step"))
}

// grids returns the plan's tables.
func (p *Plan) grids() (all []screen.Grid) {
	memory := screen.Grid{Head: []string{"memory", "bytes"}}
	add := func(name string, bytes int64) {
		memory.Rows = append(memory.Rows, []string{name, phrase.Bytes(bytes)})
	}
	for _, i := range p.Memory.Worker {
		add("a worker: "+i.Name, i.Bytes)
	}
	add("a worker in all", p.WorkerBytes)
	for _, i := range p.Memory.Shared {
		add("once: "+i.Name, i.Bytes)
	}
	if p.GPU != nil {
		p.GPU.rows(add)
	}
	whole, workers := "the run: ", p.Workers
	if p.Machines > 1 {
		whole, workers = "a machine: ", (p.Workers+p.Machines-1)/p.Machines
	}
	add(whole+phrase.Count(workers, "worker")+" and what is there once", p.TotalBytes)
	hops := screen.Grid{Head: []string{"hop of a share", "destinations", "edges", "sources"}}
	asks := len(p.Hops) > 0 && p.Hops[0].Messages > 0
	if asks {
		hops.Head = append(hops.Head, "messages", "asked", "answered")
	}
	for i, h := range p.Hops {
		row := strings.Fields(fmt.Sprint(i+1, h.Destinations, h.Edges, h.Sources))
		if asks {
			row = append(row, fmt.Sprint(h.Messages), phrase.Bytes(h.Asked), phrase.Bytes(h.Answered))
		}
		hops.Rows = append(hops.Rows, row)
	}
	stages := screen.Grid{Head: []string{"stage of a step", "ms", "MB"}}
	mb := func(bytes int64) string { return fmt.Sprintf("%.2f", float64(bytes)/1e6) }
	for _, s := range p.Stages {
		bytes := mb(s.Bytes)
		if p.Task != "" && s.Name == passStage { // only the task knows its layers
			bytes = "–"
		}
		stages.Rows = append(stages.Rows, []string{s.Name, ms(s.Seconds), bytes})
	}
	for _, s := range p.Sources {
		stages.Rows = append(stages.Rows, []string{"rows from " + s.Name, "", mb(s.Bytes)})
	}
	all = []screen.Grid{memory, hops, stages}
	if p.StepSeconds == 0 {
		return all
	}
	ways := screen.Grid{Head: []string{"ways to run", "ms a step", "s an epoch", "memory", "weights"}}
	for _, c := range p.Choices {
		weights := "others"
		if c.Same {
			weights = "the same"
		}
		about := "~"
		if c.Measured {
			about = ""
		}
		ways.Rows = append(ways.Rows, []string{c.describe(), about + ms(c.StepSeconds), about + fmt.Sprintf("%.3g", c.EpochSeconds), phrase.Bytes(c.TotalBytes), weights})
	}
	return append(all, ways)
}

// sentences returns the sentences below the tables.
func (p *Plan) sentences() []string {
	all := []string{p.fitText()}
	if p.GPU != nil {
		all = append(all, p.GPU.text()...)
	}
	return append(all, p.Notes...)
}

// String returns the plan as tables.
func (p *Plan) String() string {
	var b strings.Builder
	fmt.Fprintln(&b, p.title())
	for _, g := range p.grids() {
		w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
		for _, row := range append([][]string{g.Head}, g.Rows...) {
			fmt.Fprintln(w, strings.Join(row, "\t")+"\t")
		}
		_ = w.Flush() // to memory
	}
	for _, s := range p.sentences() {
		fmt.Fprintln(&b, s)
	}
	return phrase.Clean(b.String())
}

// Show shows the plan in a cell; elsewhere it does nothing.
func (p *Plan) Show() {
	_ = screen.ShowGrids(p.title(), p.grids(), p.sentences(), p.String()) // a broken display does not fail the plan
}

// fitText says in one sentence whether the run fits.
func (p *Plan) fitText() string {
	if p.Fit == "" {
		return "This system does not say how much memory is free."
	}
	s := fmt.Sprintf("%s of %s are free: %s", phrase.Bytes(p.Free), owner(p.Limit), fitWords(p.Fit))
	if p.Memory.Mapped > 0 {
		s += fmt.Sprintf("; %s of files are mapped, and read again from disk where memory is short", phrase.Bytes(p.Memory.Mapped))
	}
	return s + "."
}

// fitWords says what a fit means.
func fitWords(fit string) string {
	switch fit {
	case "no":
		return "the run does not fit"
	case "near":
		return "the run is near the limit"
	}
	return "the run fits"
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
