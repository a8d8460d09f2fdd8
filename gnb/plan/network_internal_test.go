package plan

import (
	"math"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/sample"
)

func TestParseNetwork(t *testing.T) {
	for text, want := range map[string]Network{
		"10Gbit/s,0.1ms": {1.25e9, 1e-4}, " 1 Gbit/s, 2ms ": {1.25e8, 2e-3}, "100MB/s,0s": {1e8, 0}, "800bit/s,1s": {100, 1}, "1.5TB/s,3us": {1.5e12, 3e-6},
	} {
		n, err := ParseNetwork(text)
		if err != nil || math.Abs(n.BytesPerSecond/want.BytesPerSecond-1) > 1e-12 || math.Abs(n.RoundTrip-want.RoundTrip) > 1e-12 {
			t.Errorf("%q is %+v (%v), want %+v", text, n, err, want)
		}
	}
	for _, text := range []string{"", "10Gbit/s", "10Gbit,1ms", "fast,1ms", "10G/s,1ms", "-1Gbit/s,1ms", "0Gbit/s,1ms", "NaNbit/s,1ms", "Infbit/s,1ms", "1e300GB/s,1ms", "1Gbit/s,-1ms", "1Gbit/s,1", "G/s,1ms", "B/s,1ms", ",", "/s,1ms"} {
		if n, err := ParseNetwork(text); err == nil || !strings.Contains(err.Error(), "10Gbit/s,0.1ms") {
			t.Errorf("%q is %+v, %v", text, n, err)
		}
	}
}

// onTwo is a job on a dataset in two parts, on two machines.
func onTwo(t *testing.T) Job {
	j := job(t)
	j.Data, j.Workers, j.Here, j.Eval, j.Prefetch, j.Batch = inTwo(t, j.Data), 2, 1, "none", 4, 64
	return j
}

// The rows that a plan counts between machines are those that a window asks for over the steps of an epoch, at whose begin it is empty.
func TestWireRows(t *testing.T) {
	j := onTwo(t)
	l, err := j.loads(t.Context(), planSteps, planTime)
	if err != nil {
		t.Fatal(err)
	}
	views, err := j.views()
	if err != nil {
		t.Fatal(err)
	}
	s, ids, err := j.sampler(1)
	if err != nil {
		t.Fatal(err)
	}
	count := func(window int) float64 { // rank 0's steps one after the other
		asked, shares := 0, 0
		last, order := map[int32]int{}, sample.EpochOrder(j.Seed, 0, ids)
		for step := range j.steps(len(ids)) {
			seeds := order[step*j.Batch : min((step+1)*j.Batch, len(ids))]
			b, err := sampleShare(s, 0, step, seeds, views[0].parts.Share(seeds, 0))
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range b.Blocks[0].SrcIDs() {
				if v%2 == 0 {
					continue
				}
				if at, ok := last[v]; !ok || step-at > window {
					asked++
				}
				last[v] = step
			}
			shares++
			b.Release()
		}
		return float64(asked) / float64(shares)
	}
	if want := count(3); math.Abs(l.window.wire/want-1) > 0.1 {
		t.Errorf("%.0f rows of a share are planned, and %.0f are asked for", l.window.wire, want)
	}
	j.Cache = "50%"
	cached, err := j.loads(t.Context(), planSteps, planTime)
	if err != nil {
		t.Fatal(err)
	}
	if got, all := cached.window.wire, l.window.wire; got > 0.9*all || got < 0.1*all {
		t.Errorf("with a cache, %.0f rows of a share come from the other machine; %.0f without", got, all)
	}
	j.Cache, j.Here = "", 2
	here, err := j.loads(t.Context(), planSteps, planTime)
	if err != nil || here.window.wire != 0 || j.traffic(here) != (traffic{}) {
		t.Errorf("on one machine %v rows come from others (%v)", here.window.wire, err)
	}
}

// A step takes the larger of what a machine computes and of what comes over the network, and the sum of gradients.
func TestNetworkSeconds(t *testing.T) {
	j := onTwo(t)
	l, err := j.loads(t.Context(), planSteps, planTime)
	if err != nil {
		t.Fatal(err)
	}
	r := flat(2)
	own := j.ownSeconds(l, r)
	if got := j.stepSeconds(l, r); math.Abs(got-own) > 1e-12 || !strings.Contains(j.networkNote(l, r), "not known; state it: --network") {
		t.Errorf("over an unknown network a step takes %g s and computing %g s; %s", got, own, j.networkNote(l, r))
	}
	const trip = 2e-3
	width := float64(rowBytes(j.Data) + 4)
	weights := float64(4 * l.params)
	for _, c := range []struct {
		rate  float64
		late  bool
		words string
	}{{1e12, false, "computing takes longer"}, {1e5, true, "the network takes longer"}} {
		j.network = Network{c.rate, trip}
		ahead := trip/2 + l.window.wire*width/c.rate
		want := max(own, ahead) + trip/2 + weights/c.rate // a sum of one round
		if got := j.stepSeconds(l, r); math.Abs(got/want-1) > 1e-3 || (j.aheadSeconds(l, r) > own) != c.late || !strings.Contains(j.networkNote(l, r), c.words) {
			t.Errorf("at %g B/s a step takes %g s, want %g (%s)", c.rate, got, want, j.networkNote(l, r))
		}
	}
	// Messages of a divided topology wait for the hop before, and all of them for the network.
	before, fast := j.aheadSeconds(l, r), j.network
	j.Divided = true
	if l, err = j.loads(t.Context(), planSteps, planTime); err != nil {
		t.Fatal(err)
	}
	bytes := 0.0
	for _, h := range l.hops {
		if h.far != h.Asked+h.Answered {
			t.Errorf("all workers are on other machines, and %d of %d bytes are", h.far, h.Asked+h.Answered)
		}
		bytes += float64(h.far)
	}
	inPlace := 0.0
	for _, s := range j.ownStages(l, r) {
		if s.Name == "sample" || s.Name == messageStage {
			inPlace += s.Seconds
		}
	}
	if got, want := j.aheadSeconds(l, r), before+2*2*trip/2+bytes/fast.BytesPerSecond+inPlace; math.Abs(got/want-1) > 0.02 {
		t.Errorf("with a divided topology rows and edges take %g s, want %g", got, want)
	}
	if own := j.ownSeconds(l, r); j.messageSeconds(l, r) <= 0 || own < j.messageSeconds(l, r) {
		t.Errorf("messages take %g s of %g", j.messageSeconds(l, r), own)
	}
	j.Embedding, j.Divided = 16, false // no features travel, and learned rows wait for each other
	if l, err = j.loads(t.Context(), 8, planTime); err != nil {
		t.Fatal(err)
	}
	if s := j.traffic(l); s.ahead != 0 || s.waits != 5 || s.within < int64(weights) {
		t.Errorf("learned rows: %+v", s)
	}
}

// A plan of several machines has the memory of one, and compares with a run on one machine.
func TestPlanOfMachines(t *testing.T) {
	j := onTwo(t)
	ctx := Over(t.Context(), Network{1.25e8, 1e-3})
	p, err := planned(ctx, j, func(bool) (*Rates, error) { return flat(2), nil })
	if err != nil {
		t.Fatal(err)
	}
	one := false
	for _, c := range p.Choices {
		one = one || c.Machines == 0 && c.Workers == 1 && c.Virtual == 2 && c.Same
	}
	if p.Machines != 2 || p.Network == nil || p.TotalBytes != p.Memory.Total(1) || !one {
		t.Errorf("%+v", p)
	}
	for _, want := range []string{"2 workers of 1 thread on 2 machines", aheadStage, withinStage, "a machine: 1 worker and what is there once", "waits for the sum of gradients"} {
		if !strings.Contains(p.String(), want) {
			t.Errorf("%q is missing in\n%s", want, p)
		}
	}
}
