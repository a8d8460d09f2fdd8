package monitor

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/live"
	"github.com/graphnb/graphnb/gnb/internal/screen"
	"github.com/graphnb/graphnb/internal/machine"
)

// A long watch takes a bounded amount of memory.
func TestReportKeepsEvenlySpacedSamples(t *testing.T) {
	w := &watch{o: Options{Quiet: true}, sink: live.NewMonitor(screen.Options{Quiet: true})}
	for i := range 10000 {
		w.add(machine.Sample{Time: time.Unix(int64(i), 0), Host: machine.Host{CPU: machine.Value(i%100) / 100}})
	}
	r := w.close(t.Context())
	if n := len(r.Samples); n > 1440 || n < 600 {
		t.Errorf("the report keeps %d of 10000 samples", n)
	}
	step := r.Samples[1].Time.Sub(r.Samples[0].Time)
	for i := 1; i < len(r.Samples); i++ {
		if d := r.Samples[i].Time.Sub(r.Samples[i-1].Time); d != step {
			t.Fatalf("samples %d and %d are %v apart, the first two %v", i-1, i, d, step)
		}
	}
	if r.Host.CPU.N != 10000 {
		t.Errorf("the summary has %d samples, want all", r.Host.CPU.N)
	}
}

// Every figure of internal/machine has a field here with the same name in JSON, and sampleOf copies
// it.
func TestSampleOfCopiesEverything(t *testing.T) {
	var full machine.Sample
	n := 0
	fill(reflect.ValueOf(&full).Elem(), &n)
	full.GPUs[0].Throttled = []string{"power cap"}
	full.GPUs[0].MemoryUsed = machine.Value(math.NaN())
	for name, s := range map[string]machine.Sample{"full": full, "zero": {}, "no GPUs": {GPUs: []machine.GPU{}}} {
		want, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		out := sampleOf(s)
		got, err := json.Marshal(out)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s: the JSON is\n%s\nwant\n%s", name, got, want)
		}
		var back Sample
		if err := json.Unmarshal(got, &back); err != nil {
			t.Fatal(err)
		}
		if again, err := json.Marshal(back); err != nil || string(again) != string(want) {
			t.Errorf("%s: after reading and writing the JSON is %s, %v", name, again, err)
		}
	}
	if g := sampleOf(full).GPUs[0]; g.MemoryOf("") != Value(full.GPUs[0].MemoryOf("")) || g.MemoryUsed.Known() || !g.PowerW.Known() {
		t.Errorf("%+v", g)
	}
}

// fill sets every field to a different value and gives every slice one element.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(int64(*n), 0).UTC()))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), n)
	case reflect.String:
		v.SetString(string(rune('a' + *n%26)))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Float64:
		v.SetFloat(float64(*n))
	default:
		panic(v.Kind().String())
	}
}
