package gnb

import (
	"context"
	"math"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/internal/machine"
)

// Every numeric option refuses values out of bounds and values that are not numbers, with its name.
func TestBounds(t *testing.T) {
	ds, err := Load(context.Background(), "planted?nodes=300&features=8&classes=3&seed=2")
	if err != nil {
		t.Fatal(err)
	}
	try := func(o TrainOptions) error {
		_, l, err := nodes.complete(t.Context(), ds, nodeOptions{"sage", o})
		if err != nil {
			return err
		}
		return l.inBounds()
	}
	refused := func(name string, o TrainOptions, v any) {
		t.Helper()
		err := try(o)
		if err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s %v: %v", name, v, err)
		}
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[TrainOptions]()) {
		var o TrainOptions
		v := reflect.ValueOf(&o).Elem().FieldByIndex(f.Index)
		switch {
		case f.Type.Kind() == reflect.Int:
			for _, x := range []int64{-2, math.MinInt64, math.MaxInt64} {
				v.SetInt(x)
				refused(f.Name, o, x)
			}
		case f.Type.Kind() == reflect.Float64:
			for _, x := range []float64{-1, -0.5, math.Inf(1), math.Inf(-1), math.NaN()} {
				v.SetFloat(x)
				refused(f.Name, o, x)
				if err := try(o); x != x && err != nil && !strings.Contains(err.Error(), "not a number") {
					t.Errorf("%s NaN: %v", f.Name, err)
				}
			}
		}
	}
	for _, fanouts := range [][]int{{-2}, {5, math.MaxInt}, make([]int, 300)} {
		if err := try(TrainOptions{SamplerOptions: SamplerOptions{Fanouts: fanouts}}); err == nil || !strings.Contains(err.Error(), "anout") {
			t.Errorf("%d fanouts: %v", len(fanouts), err)
		}
	}
}

// Train accepts exactly the fanouts that a Loader's sampler accepts.
func TestOneJudgeOfFanouts(t *testing.T) {
	ds, err := Load(context.Background(), "karate")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []int{-3, -2, -1, 0, 1, 10, 1 << 18, 1<<18 + 1, math.MaxInt, math.MinInt} {
		f := []int{k, 2}
		_, _, train := nodes.complete(t.Context(), ds, nodeOptions{"sage", TrainOptions{SamplerOptions: SamplerOptions{Fanouts: f}}})
		if loader := Fanouts(f).Check(); (train == nil) != (loader == nil) {
			t.Errorf("fanout %d: Train says %v, samplers %v", k, train, loader)
		}
	}
}

// Limits that depend on the machine leave room for other programs.
func TestBoundsOfTheMachine(t *testing.T) {
	if n := entry.MaxWorkers(); n < 64 && runtime.GOOS == "linux" || n > 1024 || machine.MaxThreads() < 8*runtime.NumCPU() {
		t.Errorf("%d workers, %d threads", n, machine.MaxThreads())
	}
	o := LaunchOptions{Workers: entry.MaxWorkers() + 1}
	if err := o.inBounds(); err == nil || !strings.Contains(err.Error(), "Workers is "+strconv.Itoa(o.Workers)+"; it is 1 to "+strconv.Itoa(entry.MaxWorkers())) {
		t.Error(err)
	}
}
