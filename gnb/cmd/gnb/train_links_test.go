package main

import (
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
	has(t, one, "loss", "val_auc", "test_auc", "test_ap", "test_mrr", "test_hits_10", "adamic_adar_auc", "common_neighbours_auc", "resource_allocation_auc", "best_epoch", "parameters")
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
		{"--decoder mlp", "--decoder is for links only; add --task links"},
		{"--task graphs", `--task is "graphs"; it is nodes or links`},
		{"--task links --val 0", "--val is 0; it is a fraction of the edges, or -1 for none"},
		{"--task links --margin 0", "--margin is 0; it is a number above 0"},
		{"--task links --negatives 0", "--negatives is 0; it must be at least 1"},
		{"--task links --decoder x", `--decoder is "x"; links have dot, bilinear, mlp, hadamard or structural, and triples distmult, complex, transe, rotate, conve`},
		{"--task links --metric x", `there is no metric "x"`},
		{"--task links --cooperative", "Train makes no cooperative batches"},
		{"--split time", "--split time is for links only; add --task links"},
		{"--task links --split year", "invalid value"},
		{"--task links --split time", "the edges of the graph have no times"},
		{"--task links --times 3,x", `"x" is not a whole number`},
		{"--task links --times 3", "Times has 1 numbers"},
		{"--task links --split given", "needs the files ValEdges or TestEdges"},
		{"--task links --test-edges none.csv", "no such file"},
		{"--task links --metric recall_34", "karate has only 33 nodes to recommend"},
		{"--task links --negatives 100000000", "an edge has 1 to 65536 negatives"},
		{"--task links --decoder complex --hidden 8", "--hidden does not apply to --decoder complex"},
		{"--task links --decoder rotate", "karate has no relations"},
		{"--task links --smoothing 0.2", "--smoothing is for decoders of triples"},
		{"--task links --val 0.7 --test 0.5", "leaves none to train on"},
	} {
		status, stderr := say(t, append([]string{"train", "karate"}, strings.Fields(c.args)...)...)
		if status == 0 || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: status %d, %s; want %s", c.args, status, stderr, c.want)
		}
	}
}
