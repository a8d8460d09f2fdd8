package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/internal/testneed"
)

const linkData = "planted?nodes=300&features=16&classes=4&homophily=0.9&noise=0.5&seed=5"

// "gnb train --task links" reports the metrics of links and the baselines, learns, and has the same
// result for any number of workers with the same virtual ranks.
func TestTrainLinks(t *testing.T) {
	testneed.NotShort(t, "builds the command")
	dir := t.TempDir()
	args := []string{"train", linkData, "--task", "links", "--epochs", "8", "--batch", "256", "--hidden", "16", "--eval-negatives", "5", "--json"}
	_, one := result(t, dir, append(args, "--workers", "1", "--virtual-ranks", "2")...)
	has(t, one, "loss", "val_auc", "test_auc", "test_ap", "test_mrr", "adamic_adar_auc", "common_neighbours_auc", "resource_allocation_auc", "best_epoch", "parameters")
	if x, has := one["test_hits_10"]; has { // among six candidates
		t.Errorf("test_hits_10 is %v, which it is for any scores", x)
	}
	if auc := one["test_auc"].(float64); auc < 0.6 {
		t.Errorf("the test AUC is %v; a network that learns is above 0.6", auc)
	}
	_, two := result(t, dir, append(args, "--workers", "2", "--virtual-ranks", "1")...)
	for _, name := range []string{"loss", "val_auc", "test_auc", "test_mrr"} {
		if one[name] != two[name] {
			t.Errorf("%s is %v with one worker and %v with two", name, one[name], two[name])
		}
	}
}

// An interrupted run goes on by the same command, and by its directory with the same flags.
func TestTrainLinksResumes(t *testing.T) {
	testneed.NotShort(t, "builds the command")
	dir := t.TempDir()
	args := []string{"train", linkData, "--task", "links", "--epochs", "40", "--batch", "64", "--hidden", "16"}
	run := interruptedTraining(t, dir, args...)
	_, want := result(t, t.TempDir(), append(args, "--json")...)
	_, again := result(t, copied(t, run), append(args, "--resume", filepath.Join("runs", filepath.Base(run)), "--json")...)
	_, same := result(t, dir, append(args, "--json")...)
	if !strings.HasSuffix(same["run"].(string), filepath.Base(run)) {
		t.Errorf("the same command continued %v, want %s", same["run"], run)
	}
	for _, name := range []string{"loss", "test_auc", "steps"} {
		if again[name] != want[name] || same[name] != want[name] {
			t.Errorf("%s is %v when resumed by the directory and %v by the same command, want %v", name, again[name], same[name], want[name])
		}
	}
}

// "gnb train --resume RUN" takes all flags of links from the run.
func TestTrainLinksResumesByItsDirectoryAlone(t *testing.T) {
	testneed.NotShort(t, "builds the command")
	dir := t.TempDir()
	args := []string{
		"train", linkData, "--task", "links", "--epochs", "40", "--batch", "64", "--hidden", "16", "--model", "gcn", "--dim", "8", "--decoder", "mlp", "--dropout", "0.5",
		"--val", "0.1", "--negatives", "2", "--loss", "softmax", "--metric", "recall_10", "--keep-source", "--eval-negatives", "3", "--eval-every", "5",
	}
	run := interruptedTraining(t, dir, args...)
	_, want := result(t, t.TempDir(), append(args, "--json")...)
	_, again := result(t, dir, "train", "--resume", run, "--json")
	has(t, want, "test_recall_10", "val_ndcg_10", "adamic_adar_recall_10")
	for _, name := range []string{"loss", "test_auc", "test_recall_10", "val_ndcg_10", "steps", "epochs"} {
		if again[name] != want[name] {
			t.Errorf("%s is %v when resumed, want %v", name, again[name], want[name])
		}
	}
}

func TestLinkFlags(t *testing.T) {
	t.Setenv("GNB_RUNS", t.TempDir())
	for _, c := range []struct{ args, want string }{
		{"--decoder mlp", "--decoder is for links and triples, and this task is nodes; add --task links or --task triples"},
		{"--task molecules", `--task is "molecules"; it is nodes, links, triples`},
		{"--task links --val 0", "--val is 0; it is a fraction of the edges, or -1 for none"},
		{"--task links --margin 0", "--margin is 0; it is a number above 0"},
		{"--task links --negatives 0", "--negatives is 0; it must be at least 1"},
		{"--task links --decoder x", `there is no decoder "x"; choose dot, bilinear, mlp, hadamard or structural`},
		{"--task links --metric x", `there is no metric "x"`},
		{"--task links --cooperative", "--cooperative is for nodes, and this task is links"},
		{"--split time", "--split is time"},
		{"--task links --split year", `SplitBy is "year"`},
		{"--task links --split time", "the edges of the graph have no times"},
		{"--task links --times 3,x", `"x" is not a whole number`},
		{"--task links --times 3", "Times has 1 numbers"},
		{"--task links --split given", "needs the files ValEdges or TestEdges"},
		{"--task links --test-edges none.csv", "no such file"},
		{"--task links --metric recall_34", "karate has only 33 nodes to recommend"},
		{"--task links --negatives 100000000", "an edge has 1 to 65536 negatives"},
		{"--task triples --hidden 8", "--hidden is for nodes, links, numbers, graphs, events and node-events, and this task is triples"},
		{"--task triples --decoder rotate", "karate has no relations"},
		{"--task triples --encoder-blocks 2", `the encoder is ""`},
		{"--task links --messages 0.2", "--messages is for triples"},
		{"--task links --decoder complex", "are in package kg (--task triples)"},
		{"--task links --val 0.7 --test 0.5", "leaves none to train on"},
	} {
		status, stderr := say(t, append([]string{"train", "karate"}, strings.Fields(c.args)...)...)
		if status == 0 || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: status %d, %s; want %s", c.args, status, stderr, c.want)
		}
	}
}

// Links that cannot be trained on are one sentence each, in the command, before workers start.
func TestHostileLinks(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("GNB_RUNS", filepath.Join(dir, "runs"))
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	nodes := func(name string, n int) {
		text := "id\n"
		for v := range n {
			text += fmt.Sprintln(v)
		}
		write(name+"/nodes.csv", text)
	}
	convert := func(name, edges string, flags ...string) string {
		t.Helper()
		nodes(name, 6)
		write(name+"/edges.csv", edges)
		out := filepath.Join(dir, name+"-dataset")
		if status, said := say(t, append([]string{"data", "convert", filepath.Join(dir, name), out}, flags...)...); status != 0 {
			t.Fatalf("%s: %s", name, said)
		}
		return out
	}
	one := convert("one", "source,target\n0,1\n", "--undirected")
	complete := "source,target\n"
	for u := range 6 {
		for v := range u {
			complete += fmt.Sprintf("%d,%d\n", u, v)
		}
	}
	full := convert("full", complete, "--undirected")
	same := convert("same", "source,target,at\n0,1,5\n1,2,5\n2,3,5\n3,4,5\n", "--edge-times", "at")
	nodes("late", 3)
	late := write("late/edges.csv", "source,target,at\n0,1,5\n1,2,NaN\n")
	learned := " --task links --embedding 4 --hidden 4 --epochs 1"
	for _, c := range []struct{ args, want string }{
		{"train " + one + learned, "0.05 of 1 pair leaves no edge for validation; take a larger Val, or a negative one for none"},
		{"train " + one + learned + " --val -1", "0.1 of 1 pair leaves no edge for the test"},
		{"train " + full + learned + " --val 0.2 --test 0.2", "negatives for validation and the test: there can be no negatives: every pair of nodes that could be drawn is a known edge; take a graph with fewer edges"},
		{"train " + full + learned + " --val -1 --test -1", "there can be no negatives: every pair of nodes that could be drawn is a known edge"},
		{"train " + same + learned + " --split time --val 0.3 --test 0.3", "too many edges have the time 5"},
		{"train " + same + learned + " --times 7,6", "validation begins at time 7 and the test at 6; the test must not begin earlier"},
		{"train " + same + learned + " --times 8,9", "no edge is left for validation"},
		{"train " + same + learned + " --times NaN,2019", `"NaN" is not a whole number`},
		{"data convert " + filepath.Dir(late) + " " + filepath.Join(dir, "late-dataset") + " --edge-times at", `the time of the edge is "NaN"`},
		{"train karate" + learned + " --test-edges " + write("far.csv", "0,1\n0,34\n"), "edge 1 of the test edges is 0 → 34, but the graph has the nodes 0 to 33"},
		{"train karate" + learned + " --val-edges " + write("minus.csv", "0,1\n-1,3\n"), "line 2 has the node -1; nodes are whole numbers from 0"},
		{"train karate" + learned + " --test-edges " + write("loop.csv", "3,3\n"), "self-loops are not predicted"},
		{"train karate" + learned + " --test-edges " + write("twice.csv", "0,1\n") + " --val-edges " + write("twice2.csv", "1,0\n"), "is given for validation and for the test; give it once"},
		{"train karate" + learned + " --test-edges " + write("empty.csv", ""), "empty.csv has no edges; write one on each line"},
	} {
		status, said := say(t, strings.Fields(c.args)...)
		said = strings.TrimSuffix(said, "\"gnb train --help\" explains its flags\n")
		if status == 0 || !strings.Contains(said, c.want) || strings.Count(said, "\n") != 1 || strings.Contains(said, "goroutine") {
			t.Errorf("gnb %s: status %d, %q; want one line with %q", c.args, status, said, c.want)
		}
	}
}
