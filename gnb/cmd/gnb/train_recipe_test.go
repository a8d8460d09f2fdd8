package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/runs"
)

// gnb train --recipe takes the recipe's model and options, but for flags that were given, also those of 0; the run resumes by
// its directory alone; a task without recipes refuses the flag, and a run without one ends with what the recipe would add.
func TestTrainRecipe(t *testing.T) {
	t.Setenv("GNB_RUNS", t.TempDir())
	const set = "planted?nodes=600&features=8&classes=3&seed=2"
	trained := func(args ...string) (text string, run *runs.Run) {
		var o, e bytes.Buffer
		if status := dispatch(t.Context(), append([]string{"train"}, args...), &o, &e); status != 0 {
			t.Fatalf("%v: status %d: %s", args, status, e.String())
		}
		run, err := runs.Last(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(o.String()), run
	}
	text, run := trained(set, "--recipe", "strong", "--epochs", "3", "--hidden", "8", "--dropout", "0", "--workers", "1", "--resume", "never")
	model, had, err := gnb.OptionsOf(run)
	if err != nil || model != "gcn" || had.Recipe != "strong" || had.Epochs != 3 || had.Hidden != 8 || had.Dropout != 0 || had.Arrangement != "strong" || had.LR == 0.01 && had.WeightDecay == 0 || !had.FullGraph {
		t.Errorf("the run has the model %s and %+v, %v", model, had, err)
	}
	if !strings.Contains(had.Chosen, "because of 600 nodes") || strings.Contains(text, "--recipe strong would") {
		t.Errorf("the command says %s", text)
	}
	if _, again := trained("--resume", run.Dir); again.Dir != run.Dir {
		t.Errorf("resumed is %s, not %s", again.Dir, run.Dir)
	}
	text, _ = trained(set, "--epochs", "1", "--workers", "1", "--resume", "never")
	lines := strings.Split(text, "\n")
	if last := lines[len(lines)-1]; !strings.HasPrefix(last, "--recipe strong would train gcn with arrangement strong") {
		t.Errorf("the last line of a run without a recipe is %q", last)
	}
	for _, c := range []struct{ args, want string }{
		{"--task links --recipe strong", "--recipe is for nodes"},
		{"--recipe nobody", "there is no recipe"},
		{"--recipe cora --model gin", "settings for gcn, sage, gat"},
		{"--recipe strong --model hgt", "take rgcn"},
		{"--full-graph --fanout 5,5", "leave one of them out"},
	} {
		var o, e bytes.Buffer
		if status := dispatch(t.Context(), append([]string{"train", set}, strings.Fields(c.args)...), &o, &e); status == 0 || !strings.Contains(e.String(), c.want) {
			t.Errorf("%s: status %d, %s; want %q", c.args, status, e.String(), c.want)
		}
	}
}

// A sweep can start from a recipe: what it searches is not the recipe's.
func TestSweepRecipe(t *testing.T) {
	t.Setenv("GNB_RUNS", t.TempDir())
	var o, e bytes.Buffer
	args := []string{"sweep", "planted?nodes=300&features=8&classes=3&seed=2", "--recipe", "strong", "--epochs", "2", "--hidden", "8", "--workers", "1", "--param", "dropout=0.1,0.3", "--method", "grid", "--json"}
	if status := dispatch(t.Context(), args, &o, &e); status != 0 {
		t.Fatalf("status %d: %s", status, e.String())
	}
	lines := strings.Split(strings.TrimSpace(o.String()), "\n")
	var result struct{ Trials []struct{ Run string } }
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &result); err != nil {
		t.Fatal(err)
	}
	seen := map[float64]bool{}
	for _, trial := range result.Trials {
		r, err := runs.Open(trial.Run)
		if err != nil {
			t.Fatal(err)
		}
		if _, had, err := gnb.OptionsOf(r); err == nil && had.Arrangement == "strong" && had.Hidden == 8 && had.FullGraph {
			seen[had.Dropout] = true
		}
	}
	if !seen[0.1] || !seen[0.3] || len(seen) != 2 {
		t.Errorf("of %d trials those with the recipe have the dropouts %v", len(result.Trials), seen)
	}
}
