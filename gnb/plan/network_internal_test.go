package plan

import (
	"math"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/internal/runfile"
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

// A step takes the larger of what a machine computes and of what comes over the network, and the sum of gradients.
func TestNetworkSeconds(t *testing.T) {
	j := onTwo(t)
	l, err := j.loads(t.Context(), 8, planTime)
	if err != nil {
		t.Fatal(err)
	}
	tried := &Trial{StepSeconds: 0.5, Stages: map[string]float64{runfile.StageSample: 0.125}, Read: 1000, Asked: 500}
	if got := j.stepSeconds(l, tried); got != 0.5 || !strings.Contains(j.networkNote(l, tried), "not known; state it: --network") {
		t.Errorf("over an unknown network a step takes %g s; %s", got, j.networkNote(l, tried))
	}
	const trip = 2e-3
	weights := float64(4 * l.params)
	rows := 250 * float64(rowBytes(j.Data)+4) // of each of two workers
	for _, c := range []struct {
		rate  float64
		words string
	}{{1e12, "computing takes longer"}, {1e4, "the network takes longer"}} {
		j.network = Network{c.rate, trip}
		want := max(0.5, trip/2+rows/c.rate) + trip/2 + weights/c.rate // a sum of one round
		if got := j.stepSeconds(l, tried); math.Abs(got/want-1) > 1e-3 || !strings.Contains(j.networkNote(l, tried), c.words) {
			t.Errorf("at %g B/s a step takes %g s, want %g (%s)", c.rate, got, want, j.networkNote(l, tried))
		}
	}
	if s := j.traffic(l, nil); s.ahead <= j.traffic(l, tried).ahead {
		t.Errorf("without a trial %d bytes come from the other machine, and %d by the trial's window and cache", s.ahead, j.traffic(l, tried).ahead)
	}
	// Messages of a divided topology wait for the hop before, and all of them for sampling.
	before, fast := j.aheadSeconds(j.traffic(l, tried), tried), j.network
	j.Divided = true
	if l, err = j.loads(t.Context(), 8, planTime); err != nil {
		t.Fatal(err)
	}
	bytes := 0.0
	for _, h := range l.hops {
		if d := h.far - h.Asked - h.Answered; d < 0 || d > 1 { // means are rounded
			t.Errorf("all workers are on other machines, and %d of %d bytes are", h.far, h.Asked+h.Answered)
		}
		bytes += float64(h.far)
	}
	if got, want := j.aheadSeconds(j.traffic(l, tried), tried), before+2*2*trip/2+bytes/fast.BytesPerSecond+0.125; math.Abs(got/want-1) > 0.02 {
		t.Errorf("with a divided topology rows and edges take %g s, want %g", got, want)
	}
	j.Embedding, j.Divided = 16, false // no features travel, and learned rows wait for each other
	if l, err = j.loads(t.Context(), 8, planTime); err != nil {
		t.Fatal(err)
	}
	if s := j.traffic(l, tried); s.ahead != 0 || s.waits != 5 || s.within < int64(weights) {
		t.Errorf("learned rows: %+v", s)
	}
}

// A plan of several machines has the memory of one, and compares with a run on one machine.
func TestPlanOfMachines(t *testing.T) {
	j := onTwo(t)
	ctx := Over(t.Context(), Network{1.25e8, 1e-3})
	s := &stopwatch{}
	j.Trier = s
	p, err := Make(ctx, j)
	if err != nil {
		t.Fatal(err)
	}
	// One machine's worker computes the shares of both, after each other: half of it is a machine's time.
	if s.ways[0] != (Way{1, 2, 1, false, "float32"}) || p.Measured || p.StepSeconds < 0.1 || p.StepSeconds > 0.11 {
		t.Errorf("%+v was tried, and a step takes %g s", s.ways[0], p.StepSeconds)
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
