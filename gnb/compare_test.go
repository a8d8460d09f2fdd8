package gnb_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
)

func TestCompareShowsWhatDiffers(t *testing.T) {
	ds := load(t, "karate")
	dir := t.TempDir()
	var runs []*gnb.Run
	for i, lr := range []float64{0.01, 0.02} {
		run := train(t, ds, gnb.TrainOptions{Workers: 1 + i, Threads: 1, Epochs: 2, Hidden: 8, LR: lr, RunDir: filepath.Join(dir, "r"+string('0'+rune(i)))})
		again, err := gnb.OpenRun(run.Dir)
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, again)
	}
	c := gnb.Compare(runs...)
	differ := map[string][]string{}
	for _, r := range c.Settings {
		differ[r.Name] = r.Values
	}
	if len(differ) != 2 || strings.Join(differ["args.LR"], " ") != "0.01 0.02" || strings.Join(differ["workers"], " ") != "1 2" {
		t.Errorf("settings that differ: %v, want args.LR and workers", differ)
	}
	found := 0
	for _, r := range c.Results {
		if r.Name == "val_accuracy" || r.Name == "loss" {
			found++
		}
	}
	if found != 2 {
		t.Errorf("results: %v", c.Results)
	}
	for _, want := range []string{runs[0].Config.ID, "args.LR", "val_accuracy"} {
		if !strings.Contains(c.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, c)
		}
	}
}

func ExampleCompare() {
	defer inScratch()()
	ctx := context.Background()
	ds := gnb.Must(gnb.Load(ctx, "karate"))
	a := gnb.Must(gnb.Train(ctx, ds, gnb.SAGE, gnb.TrainOptions{Workers: 1, Epochs: 2, Hidden: 8, Quiet: true}))
	b := gnb.Must(gnb.Train(ctx, ds, gnb.SAGE, gnb.TrainOptions{Workers: 1, Epochs: 2, Hidden: 16, Quiet: true}))
	for _, row := range gnb.Compare(a, b).Settings {
		fmt.Println(row.Name, row.Values)
	}
	// Output: args.Sizes.hidden [8 16]
}
