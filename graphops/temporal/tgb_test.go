package temporal_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/pairs"
	"github.com/graphnb/graphnb/graphops/temporal"
	"github.com/graphnb/graphnb/internal/testneed"
)

// fixture is testdata/tgb.json, which testdata/tgb_fixtures.py writes with py-tgb 2.3.0 and tgm-lib 0.1.0b1.
type fixture struct {
	Src, Dst   []int32
	Time       []int64
	Hist12     [][]int32 `json:"hist_rnd_12"`
	Hist1000   string    `json:"hist_rnd_1000"`
	Hist25     string    `json:"hist_rnd_25"`
	Rnd12      string    `json:"rnd_12"`
	CollegeMsg string    `json:"collegemsg"`
	EdgeBank   struct{ Unlimited, Fixed string }
	Scores     struct {
		Pos, Neg []float32
		MRR      float64
		Hits10   float64 `json:"hits_10"`
	}
}

func fixtures(t *testing.T) (f fixture, e *temporal.Events, s temporal.Split) {
	t.Helper()
	text, err := os.ReadFile("testdata/tgb.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &f); err != nil {
		t.Fatal(err)
	}
	if e, err = temporal.New(45, f.Src, f.Dst, f.Time); err != nil {
		t.Fatal(err)
	}
	if s, err = temporal.SplitTimes(f.Time, temporal.SplitOptions{}); err != nil {
		t.Fatal(err)
	}
	return f, e, s
}

// digest is that of tgb_fixtures.py.
func digest(n *temporal.Negatives) string {
	h := sha256.New()
	from, to := n.Events()
	for e := from; e < to; e++ {
		of := n.Of(e)
		raw := binary.LittleEndian.AppendUint32(nil, uint32(len(of)))
		for _, v := range of {
			raw = binary.LittleEndian.AppendUint32(raw, uint32(v))
		}
		h.Write(raw)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Negatives are those of py-tgb, number for number: with equal times, equal events, sources without a past, and fewer candidates than
// negatives.
func TestTGBNegatives(t *testing.T) {
	f, e, s := fixtures(t)
	n, err := temporal.TGB(e, s.Train, s.Val, temporal.TGBOptions{Negatives: 12, Seed: 42})
	if err != nil {
		t.Fatal(err)
	}
	if from, to := n.Events(); from != s.Train || to-from != len(f.Hist12) {
		t.Fatalf("there are negatives of the events %d to %d, want %d", from, to, len(f.Hist12))
	}
	for i, want := range f.Hist12 {
		if got := n.Of(s.Train + i); !slices.Equal(got, want) {
			t.Fatalf("event %d: %v, want %v", s.Train+i, got, want)
		}
	}
	for name, c := range map[string]struct {
		o    temporal.TGBOptions
		want string
	}{
		"more than there are": {temporal.TGBOptions{Seed: 5}, f.Hist1000},
		"share of history":    {temporal.TGBOptions{Negatives: 25, Seed: 123, History: 0.3}, f.Hist25},
		"no history":          {temporal.TGBOptions{Negatives: 12, Seed: 42, History: -1}, f.Rnd12},
	} {
		n, err := temporal.TGB(e, s.Train, s.Val, c.o)
		if err != nil || digest(n) != c.want {
			t.Errorf("%s: the negatives are others than those of py-tgb, %v", name, err)
		}
	}
	// Ids that are higher by a number give the same negatives, higher by it.
	dst := slices.Clone(f.Dst)
	for i := range dst {
		dst[i] += 100
	}
	high, err := temporal.New(145, f.Src, dst, f.Time)
	if err != nil {
		t.Fatal(err)
	}
	n, err = temporal.TGB(high, s.Train, s.Val, temporal.TGBOptions{Negatives: 12, Seed: 42})
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range n.Of(s.Train) {
		if v != f.Hist12[0][k]+100 {
			t.Fatalf("with destinations behind the sources the negatives are %v, want %v and 100", n.Of(s.Train), f.Hist12[0])
		}
	}
	for _, bad := range []struct {
		train, val int
		o          temporal.TGBOptions
		want       string
	}{
		{10, 5, temporal.TGBOptions{}, "the validation is from event 10 to 5 of 400"},
		{0, 401, temporal.TGBOptions{}, "the parts of a split are in order"},
		{0, 5, temporal.TGBOptions{Negatives: -1}, "the number is not negative"},
		{0, 5, temporal.TGBOptions{History: 1.5}, "the share at most 1"},
	} {
		if _, err := temporal.TGB(e, bad.train, bad.val, bad.o); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%v, want %q", err, bad.want)
		}
	}
}

// A stream without events, and one of a single destination, have no negatives.
func TestFewNegatives(t *testing.T) {
	for n := range 3 {
		e, err := temporal.New(2, make([]int32, n), slices.Repeat([]int32{1}, n), make([]int64, n))
		if err != nil {
			t.Fatal(err)
		}
		got, err := temporal.TGB(e, 0, 0, temporal.TGBOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			if of := got.Of(i); len(of) != 0 {
				t.Errorf("of %d events, %d has the negatives %v", n, i, of)
			}
		}
	}
}

// The negatives of tgbl-uci, which is CollegeMsg with its ids from 0, are py-tgb's.
func TestTGBNegativesOfCollegeMsg(t *testing.T) {
	testneed.NotShort(t, "it draws 36 million numbers")
	path := testneed.RealData(t, "temporal/collegemsg/uci.csv")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var src, dst []int32
	var time []int64
	number := func(s string) int64 {
		x, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	for _, row := range rows[1:] {
		src, dst, time = append(src, int32(number(row[0])-1)), append(dst, int32(number(row[1])-1)), append(time, number(row[2]))
	}
	e, err := temporal.New(1899, src, dst, time)
	if err != nil {
		t.Fatal(err)
	}
	s, err := temporal.SplitTimes(time, temporal.SplitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n, err := temporal.TGB(e, s.Train, s.Val, temporal.TGBOptions{Seed: 42})
	if err != nil {
		t.Fatal(err)
	}
	f, _, _ := fixtures(t)
	if from, to := n.Events(); to-from != 8975+8976 || digest(n) != f.CollegeMsg {
		t.Errorf("the negatives of %d events are others than those of py-tgb", to-from)
	}
}

// MRR and hits of scores with ties are those of py-tgb's Evaluator, which computes in float32.
func TestRanksAreThoseOfTGB(t *testing.T) {
	f, _, _ := fixtures(t)
	ranks, err := pairs.Ranks(f.Scores.Pos, f.Scores.Neg)
	if err != nil {
		t.Fatal(err)
	}
	if mrr, hits := pairs.MRR(ranks), pairs.HitsAt(ranks, 10); math.Abs(mrr-f.Scores.MRR) > 1e-6 || hits != f.Scores.Hits10 {
		t.Errorf("MRR %v and hits@10 %v, want %v and %v", mrr, hits, f.Scores.MRR, f.Scores.Hits10)
	}
}

// EdgeBank answers as its definition on every pair after each step, whatever its memory; unlimited and with TGB's window as
// tgm-lib's, too. It forgets what happens after the moment that it is asked about.
func TestEdgeBank(t *testing.T) {
	f, e, s := fixtures(t)
	window := temporal.TrainingWindow(e, s.Train)
	for name, c := range map[string]struct {
		o    temporal.EdgeBankOptions
		want string
		from func(known []int64) float64
	}{
		"unlimited": {temporal.EdgeBankOptions{}, f.EdgeBank.Unlimited, func([]int64) float64 { return math.Inf(-1) }},
		"window":    {temporal.EdgeBankOptions{Window: window}, f.EdgeBank.Fixed, func(known []int64) float64 { return float64(known[len(known)-1]) - window }},
		"recent":    {temporal.EdgeBankOptions{Recent: 0.15}, "", func(known []int64) float64 { return temporal.Quantile(known, 0.85) }},
	} {
		bank, err := temporal.NewEdgeBank(e, c.o)
		if err != nil {
			t.Fatal(err)
		}
		if bank.Until(0); bank.Score(f.Src[0], f.Dst[0]) != 0 {
			t.Errorf("%s: a pair is known before the first event", name)
		}
		bank.Until(e.Len())
		var lines []string
		for at := s.Train; at < e.Len(); at += 20 {
			bank.Until(at)
			from := c.from(f.Time[:at])
			for u := range int32(30) {
				line := ""
				for v := range int32(45) {
					want := float32(0)
					for i := range at {
						if f.Src[i] == u && f.Dst[i] == v && float64(f.Time[i]) >= from {
							want = 1
						}
					}
					if got := bank.Score(u, v); got != want {
						t.Fatalf("%s: before event %d, %d → %d scores %v, want %v", name, at, u, v, got, want)
					}
					line += strconv.Itoa(int(want))
				}
				lines = append(lines, line)
			}
		}
		if h := sha256.Sum256([]byte(strings.Join(lines, "\n"))); c.want != "" && hex.EncodeToString(h[:]) != c.want {
			t.Errorf("%s: the answers are others than those of tgm-lib", name)
		}
	}
	for _, o := range []temporal.EdgeBankOptions{{Window: -1}, {Window: math.NaN()}, {Recent: 1}, {Window: 5, Recent: 0.5}} {
		if _, err := temporal.NewEdgeBank(e, o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}

// Negatives of training exist at the event's moment, are never the event's destination nor, if strict, that of one with its source and time,
// and are what their definition says, uniformly; nothing after the event's time changes them.
func TestDrawer(t *testing.T) {
	f, e, _ := fixtures(t)
	for _, o := range []temporal.DrawOptions{{}, {Count: 7}, {Count: 4, Strict: true}, {Count: 8, History: 0.5}, {Count: 5, History: 1, Strict: true}} {
		d := temporal.NewDrawer(e, o)
		for i := range e.Len() {
			exists, excluded, partners := map[int32]bool{}, map[int32]bool{f.Dst[i]: true}, map[int32]bool{}
			for k := range i + 1 {
				exists[f.Dst[k]] = true
			}
			for k := range e.Len() {
				if o.Strict && f.Src[k] == f.Src[i] && f.Time[k] == f.Time[i] {
					excluded[f.Dst[k]] = true
				}
			}
			for k := range i {
				if f.Src[k] == f.Src[i] && !excluded[f.Dst[k]] {
					partners[f.Dst[k]] = true
				}
			}
			some := false
			for v := range exists {
				some = some || !excluded[v]
			}
			got := d.Append([]int32{-1}, 3, 2, i)[1:]
			if want := max(1, o.Count); some && len(got) != want || !some && len(got) != 0 {
				t.Fatalf("%+v: event %d has %d negatives, want %d", o, i, len(got), want)
			}
			for k, v := range got {
				if !exists[v] || excluded[v] {
					t.Fatalf("%+v: event %d has the negative %d, which is excluded or does not exist", o, i, v)
				}
				if k < int(o.History*float64(o.Count)+0.5) && len(partners) > 0 && !partners[v] {
					t.Fatalf("%+v: event %d has the negative %d, which is no earlier partner", o, i, v)
				}
			}
			if again := d.Append(nil, 3, 2, i); !slices.Equal(again, got) {
				t.Fatalf("%+v: event %d has other negatives when asked again", o, i)
			}
			end := e.Until(f.Time[i])
			head, err := temporal.New(45, f.Src[:end], f.Dst[:end], f.Time[:end])
			if err != nil {
				t.Fatal(err)
			}
			if i%20 == 0 {
				if early := temporal.NewDrawer(head, o).Append(nil, 3, 2, i); !slices.Equal(early, got) {
					t.Fatalf("%+v: event %d has other negatives without the events after it", o, i)
				}
			}
		}
	}
	// Each candidate is about as likely, in another epoch and with another seed there are others.
	d := temporal.NewDrawer(e, temporal.DrawOptions{Count: 20000})
	count := map[int32]int{}
	for _, v := range d.Append(nil, 1, 0, 399) {
		count[v]++
	}
	exists := map[int32]bool{}
	for _, v := range f.Dst {
		exists[v] = true
	}
	if len(count) != len(exists)-1 {
		t.Errorf("%d destinations are drawn, of %d", len(count), len(exists)-1)
	}
	mean := 20000 / float64(len(count))
	for v, n := range count {
		if math.Abs(float64(n)-mean) > 6*math.Sqrt(mean) {
			t.Errorf("destination %d is drawn %d times, and the mean is %.0f", v, n, mean)
		}
	}
	if got := temporal.NewDrawer(e, temporal.DrawOptions{Count: 300_000, History: 1}).Append(nil, 1, 0, 399); len(got) != 300_000 {
		t.Errorf("%d negatives are drawn, want 300,000", len(got))
	}
	d = temporal.NewDrawer(e, temporal.DrawOptions{Count: 10})
	first := d.Append(nil, 1, 0, 399)
	if slices.Equal(first, d.Append(nil, 1, 1, 399)) || slices.Equal(first, d.Append(nil, 2, 0, 399)) || slices.Equal(first, d.Append(nil, 1, 0, 398)) {
		t.Error("another epoch, seed or event has the same negatives")
	}
}
