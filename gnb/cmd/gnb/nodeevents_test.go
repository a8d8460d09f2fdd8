package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A table of events is converted, a model of what nodes will do is trained and reported on, and answers as of a date; flags of other runs
// are refused.
func TestNodeEvents(t *testing.T) {
	dir := t.TempDir()
	var b strings.Builder
	b.WriteString("who,what,time\n")
	random := rand.New(rand.NewPCG(1, 1))
	for day := range 100 {
		for person := range 12 {
			for range (day+person)%3*2 + random.IntN(2) {
				fmt.Fprintf(&b, "p%d,w%d,%d\n", person, random.IntN(4), 1700006400+day*86400+1+random.IntN(86000))
			}
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "events.csv"), []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	result(t, dir, "data", "convert", "events.csv", "acts", "--kinds", "who=source,what=target")
	_, trained := result(t, dir, "train", "acts", "--task", "node-events", "--window", "1d", "--epochs", "12", "--lr", "0.01", "--batch", "24", "--workers", "2", "--json")
	has(t, trained, "test_mae", "val_rmse", "test_persistent_mae", "test_average_mae", "proved_steps", "proved_questions")
	if got, average := trained["test_mae"].(float64), trained["test_average_mae"].(float64); got > 0.7*average {
		t.Errorf("the error is %v, that of the moving average %v", got, average)
	}
	run := trained["run"].(string)

	_, r := result(t, dir, "infer", "acts", "--run", run, "--as-of", "2024-01-15", "--out", "next.csv", "--json")
	rows, err := os.ReadFile(filepath.Join(dir, "next.csv"))
	lines := strings.Split(strings.TrimSpace(string(rows)), "\n")
	if err != nil || len(lines) != 13 || lines[0] != "id,time,count" || !strings.Contains(lines[1], ",2024-01-15T00:00:00Z,") || r["nodes"] != 12.0 || r["until"] != 1705363200.0 {
		t.Errorf("the answers are %q, %v, %v", lines, r, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "some.txt"), []byte("p7\np3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	result(t, dir, "infer", "acts", "--run", run, "--nodes", "some.txt", "--out", "some.npy", "--json")
	if ids, err := os.ReadFile(filepath.Join(dir, "some.ids.txt")); string(ids) != "p7\np3\n" {
		t.Errorf("the ids are %q, %v", ids, err)
	}
	status, stdout, stderr := gnbRun(t, dir, "report", run, "--html", "page.html")
	if status != 0 || !strings.Contains(stdout, "count of events by sources over 1d") || !strings.Contains(stdout, "moving average") {
		t.Errorf("the report: %d, %s%s", status, stdout, stderr)
	}
	var q strings.Builder
	q.WriteString("who,date,busy\n")
	for day := range 100 {
		for person := range 12 {
			fmt.Fprintf(&q, "p%d,%s,%v\n", person, time.Unix(1700006400+int64(day)*86400, 0).UTC().Format(time.RFC3339), (day+person)%3 == 2)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "q.csv"), []byte(q.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	result(t, dir, "data", "convert", "events.csv", "given", "--kinds", "edges.who=source,what=target,questions.date=time,questions.who=id", "--questions", "q.csv")
	_, trained = result(t, dir, "train", "given", "--task", "node-events", "--window", "1d", "--epochs", "8", "--lr", "0.01", "--batch", "24", "--json")
	if auc, frequent := trained["test_auc"], trained["test_frequent_auc"]; auc == nil || auc.(float64) < 0.9 || frequent == nil {
		t.Errorf("the ROC AUC of given answers is %v, and that of the most frequent one %v", auc, frequent)
	}
	result(t, dir, "infer", "given", "--run", trained["run"].(string), "--out", "busy.csv", "--json")
	if rows, err := os.ReadFile(filepath.Join(dir, "busy.csv")); err != nil || !strings.HasPrefix(string(rows), "id,time,probability_false,probability_true\n") {
		t.Errorf("the answers are %q, %v", rows, err)
	}
	for args, want := range map[string]string{
		"infer acts --out x.csv --recommend 3 --run " + run:                                    "--recommend does not apply",
		"infer acts --out x.csv --as-of tomorrow --run " + run:                                 `--as-of is "tomorrow"`,
		"infer acts --out x.csv --as-of 1999-01-01 --run " + run:                               "nothing has happened",
		"train acts --task node-events":                                                        "--window) is missing",
		"train acts --task node-events --window 1d --negatives 3":                              "--negatives is for",
		"train acts --task events --ask any":                                                   "--ask is for node-events",
		"train acts --task node-events --window 1d --ask mean --of price":                      "they have none",
		"train planted?nodes=100&classes=2 --task node-events --window 1d":                     "have no times",
		"sweep acts --task node-events --window 1d --param hidden=4,8 --trials 0 --epochs one": "one",
	} {
		if status, _, stderr := gnbRun(t, dir, strings.Fields(args)...); status == 0 || !strings.Contains(stderr, want) {
			t.Errorf("%s: %d, %s; want %q", args, status, stderr, want)
		}
	}
}
