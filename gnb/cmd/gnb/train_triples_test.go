package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/internal/testneed"
)

// gnb train --task links trains on triples if the decoder scores triples.
func TestTrainTriples(t *testing.T) {
	testneed.NotShort(t, "it trains")
	dir := t.TempDir()
	src := filepath.Join(dir, "family")
	if err := os.Mkdir(src, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"train.txt": "ann\tmother\tbob\nbob\tchild\tann\nann\tmother\teve\neve\tchild\tann\ndan\tfather\teve\n", "valid.txt": "eve\tchild\tdan\n", "test.txt": "dan\tfather\tbob\n",
	} {
		if err := os.WriteFile(filepath.Join(src, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data := filepath.Join(dir, "data")
	result(t, dir, "data", "convert", src, data, "--json")
	_, got := result(t, dir, "train", data, "--task", "triples", "--decoder", "complex", "--dim", "4", "--epochs", "3", "--eval-every", "1", "--smoothing", "0", "--json")
	has(t, got, "val_mrr", "test_mrr", "test_hits_1", "test_mean_rank", "best_epoch")

	run := got["run"].(string)
	_, again := result(t, dir, "train", "--resume", run, "--json")
	if again["test_mrr"] != got["test_mrr"] {
		t.Errorf("the run has MRR %v, and resumed %v", got["test_mrr"], again["test_mrr"])
	}
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	asked := write("asked.tsv", "dan\tfather\t?\n?\tmother\teve\n")
	_, r := result(t, dir, "infer", data, "--run", run, "--complete", asked, "--best", "2", "--known", "--out", "found.csv", "--json")
	if r["triples"] != 2. {
		t.Errorf("completing: %v", r)
	}
	b, err := os.ReadFile(filepath.Join(dir, "found.csv"))
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	if err != nil || len(lines) != 5 || lines[0] != "head,relation,tail,rank,score" || !strings.HasPrefix(lines[1], "dan,father,") || !strings.Contains(lines[4], ",mother,eve,2,") {
		t.Errorf("found %q, %v", lines, err)
	}
	result(t, dir, "infer", data, "--run", run, "--triples", write("t.csv", "head,relation,tail\nann,mother,bob\nann,child, dan\n"), "--out", "scores.csv", "--json")
	b, err = os.ReadFile(filepath.Join(dir, "scores.csv"))
	lines = strings.Split(strings.TrimSpace(string(b)), "\n")
	if err != nil || len(lines) != 3 || !strings.HasPrefix(lines[1], "ann,mother,bob,") || !strings.HasPrefix(lines[2], "ann,child,dan,") {
		t.Errorf("scores %q, %v", lines, err)
	}
	for _, c := range []struct{ args, want string }{
		{"", "give either --triples FILE"},
		{"--triples " + asked, `there is no entity of the name "?"`},
		{"--complete " + write("both.tsv", "?\tmother\t?\n"), "exactly one of head and tail is ?"},
		{"--complete " + write("two.tsv", "dan\tfather\n"), "a line has a head, a relation and a tail"},
		{"--complete " + write("none.tsv", "\n"), "has no triples"},
		{"--complete " + write("rel.tsv", "dan\tuncle\t?\n"), `there is no relation of the name "uncle"`},
		{"--triples " + write("number.csv", "0,child,3\n"), `there is no entity of the name "0"`},
		{"--complete " + asked + " --best 0", "--best is 0"},
		{"--triples " + asked + " --best 2", "--best and --known go with --complete"},
		{"--recommend 2", "give either --triples FILE"},
		{"--complete " + asked + " --workers 2", "--workers does not apply"},
	} {
		status, _, stderr := gnbRun(t, dir, append([]string{"infer", data, "--run", run, "--out", "x.csv"}, strings.Fields(c.args)...)...)
		if status == 0 || !strings.Contains(stderr, c.want) {
			t.Errorf("gnb infer %s: status %d, %s, want %q", c.args, status, stderr, c.want)
		}
	}
	for _, command := range []string{"plan", "inspect"} { // of nodes
		if status, _, stderr := gnbRun(t, dir, command, data); status == 0 || !strings.Contains(stderr, "does not know models of triples") {
			t.Errorf("gnb %s: status %d, %s", command, status, stderr)
		}
	}
	if status, stdout, stderr := gnbRun(t, dir, "plan", data, "--task", "triples"); status != 0 || !strings.Contains(stdout, " triples, ") {
		t.Errorf("a plan: status %d\n%s%s", status, stdout, stderr)
	}
	if status, stdout, stderr := gnbRun(t, dir, "scaling", data, "--task", "triples", "--workers", "1", "--repeats", "1", "--steps", "2"); status != 0 || !strings.Contains(stdout, "triples/s") {
		t.Errorf("a scaling curve: status %d\n%s%s", status, stdout, stderr)
	}
}
