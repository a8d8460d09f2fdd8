package links_test

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/links"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/internal/testkit/linkstest"
	"github.com/graphnb/graphnb/internal/testneed"
)

func shop(t testing.TB) *gnb.Dataset {
	t.Helper()
	ds, err := linkstest.Shop()
	if err != nil {
		t.Fatal(err)
	}
	return ds
}

// Each batch of a relation is clean, whatever the division of a step: same samples, pairs, weights and metrics.
// The reverses of likes have another name, and knows has its own.
func TestRelations(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	for name, s := range map[string]linkstest.Setting{
		"likes": {Relation: "likes", ByRelation: true}, "by degree, both ends": {Relation: "likes", Negatives: links.NegativeOptions{From: links.ByDegree, BothEnds: true}},
		"knows": {Relation: "user:knows:user", Disjoint: 0.4, KnownMessages: true}, "labor, in-batch": {Relation: "liked_by", Labor: gnb.Labor{Fanouts: gnb.Fanouts{5, 3}}, Negatives: links.NegativeOptions{From: links.InBatch}},
	} {
		t.Run(name, func(t *testing.T) {
			s.Epochs, s.Hidden = 2, 8
			ds, err := divided.OneWidth(shop(t)) // as Train does
			if err != nil {
				t.Fatal(err)
			}
			want := launched(t, "1 worker", s, gnb.LaunchOptions{Data: ds, Workers: 1, VirtualRanks: 4})
			if v := want.Value; v("checked") == 0 || v("predicted") != v("train_edges") {
				t.Errorf("%v batches were checked, which predict %v of %v edges", v("checked"), v("predicted"), v("train_edges"))
			}
			for _, workers := range []int{2, 4} {
				alike(t, fmt.Sprint(workers, " workers"), launched(t, "", s, gnb.LaunchOptions{Data: ds, Workers: workers, VirtualRanks: 4 / workers, Threads: 3}), want, false)
			}
			if name == "likes" { // parts have features of one width
				parts := eighths(t, ds, divided.Options{})
				on := launched(t, "parts", s, gnb.LaunchOptions{Data: parts, Workers: 1, VirtualRanks: 8})
				alike(t, "parts", launched(t, "", s, gnb.LaunchOptions{Data: parts, Workers: 2, VirtualRanks: 4}), on, false)
				if on.Result.Text["digest"] != want.Result.Text["digest"] {
					t.Error("runs on parts sample otherwise")
				}
			}
		})
	}
}

// A batch with its own edges, or with those that are held out, is found by the edges of the relation and by
// their reverses in another relation.
func TestRelationLeaks(t *testing.T) {
	for want, s := range map[string]linkstest.Setting{
		"which is an edge that the batch predicts, or the reverse of one": {KeepEdges: true}, "edge of validation or test": {HeldOut: true},
	} {
		s.Relation = "likes"
		ds, err := divided.OneWidth(shop(t))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := launch(t, s, gnb.LaunchOptions{Data: ds, Workers: 1}); err == nil || !strings.Contains(err.Error(), "a leak: the messages of layer") || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want a leak %q", err, want)
		}
	}
}

// Train predicts a relation, a run tells its options, and recommendations are of the right type.
func TestTrainRelation(t *testing.T) {
	testneed.NotShort(t, "it trains for 30 epochs")
	ds := shop(t)
	o := links.Options{
		Relation:          "likes",
		EvalNegatives:     5,
		KeepSource:        true,
		EvaluationOptions: gnb.EvaluationOptions{Metric: "recall_10", EvalEvery: 10},
		OptimizerOptions:  gnb.OptimizerOptions{Epochs: 30, Batch: 128, LR: 0.01},
		ModelOptions:      gnb.ModelOptions{Hidden: 16, Bases: 2},
		LaunchOptions: gnb.LaunchOptions{
			Workers:      1,
			VirtualRanks: 2,
			Threads:      1,
			Quiet:        true,
			RunDir:       t.TempDir(),
		},
		SamplerOptions: gnb.SamplerOptions{RelationFanouts: map[string][]int{"of": {1, 1}}, Digest: true},
	}
	run, err := links.Train(t.Context(), ds, o)
	if err != nil {
		t.Fatal(err)
	}
	if auc := run.Value("test_auc"); !(auc > 0.65) {
		t.Errorf("the AUC is %v, and 0.5 is chance", auc)
	}
	for _, name := range []string{"adamic_adar_auc", "val_recall_10", "test_recall_10", "adamic_adar_recall_10"} {
		if math.IsNaN(run.Value(name)) {
			t.Errorf("the run has no %s", name)
		}
	}
	had, err := links.OptionsOf(run)
	if err != nil || had.Model.Name() != "rgcn" || had.Relation != "user:likes:item" || had.Bases != 2 || len(had.RelationFanouts["item:of:brand"]) != 2 || !slices.Equal(had.Fanouts, []int{10, 10}) {
		t.Errorf("the run's options are %+v, %v", had, err)
	}
	o.Workers, o.VirtualRanks, o.RunDir = 2, 1, t.TempDir()
	two, err := links.Train(t.Context(), ds, o)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(weights(t, run), weights(t, two)) || run.Result.Text["digest"] != two.Result.Text["digest"] {
		t.Error("two workers have other weights or samples than one with two virtual ranks")
	}
	rec, err := links.Recommend(t.Context(), run, ds, nil, 5, links.RecommendOptions{InferOptions: links.InferOptions{InferOptions: gnb.InferOptions{Quiet: true}}, ExcludeKnown: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(rec.Nodes) != 80 {
		t.Errorf("there are recommendations to %d nodes, want the 80 users", len(rec.Nodes))
	}
	for k, u := range rec.Nodes {
		ids, _ := rec.Of(k)
		if len(ids) != 5 {
			t.Fatalf("%d nodes are recommended to user %d, want 5", len(ids), u)
		}
		for _, v := range ids {
			if v < 80 || v >= 200 || slices.Contains(ds.Graph.InNeighbors(v), u) {
				t.Fatalf("node %d is recommended to user %d", v, u)
			}
		}
	}
	for want, e := range map[string]links.Edges{"": {Src: []int32{3}, Dst: []int32{90}}, "relation user:likes:item leads from nodes 0 to 79 (user) to nodes 80 to 199 (item)": {Src: []int32{90}, Dst: []int32{3}}} {
		_, err := links.Score(t.Context(), run, ds, e, links.InferOptions{InferOptions: gnb.InferOptions{Quiet: true}})
		if got := fmt.Sprint(err); want == "" && err != nil || !strings.Contains(got, want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if _, err := links.Recommend(t.Context(), run, ds, []int32{203}, 5, links.RecommendOptions{}); err == nil || !strings.Contains(err.Error(), "node 203 is no source of relation user:likes:item") {
		t.Errorf("got %v for a brand", err)
	}
}

func TestRelationErrors(t *testing.T) {
	ds := shop(t)
	for want, o := range map[string]links.Options{
		"links: shop has types of edges, so say which of them to predict: set Relation (--relation) to one of user:likes:item, ": {},
		`graphops: the graph has no relation "hates"`:                              {Relation: "hates"},
		`pairs: the reverse relation: graphops: the graph has no relation "liked"`: {Relation: "likes", ReverseRelation: "liked"},
		"relation user:knows:user cannot be the reverse of user:likes:item":        {Relation: "likes", ReverseRelation: "knows"},
		"links: Metric is recall_121, but shop has only 120 nodes to recommend":    {Relation: "likes", EvaluationOptions: gnb.EvaluationOptions{Metric: "recall_121"}},
		"links: Metric is recall_80, but shop has only 79 nodes to recommend":      {Relation: "knows", EvaluationOptions: gnb.EvaluationOptions{Metric: "recall_80"}},
	} {
		o.Quiet, o.RunDir = true, t.TempDir()
		if _, err := links.Train(t.Context(), ds, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if _, err := links.Train(t.Context(), load(t, planted), links.Options{Relation: "likes"}); err == nil || !strings.Contains(err.Error(), `links: Relation is "likes", but planted has no types of edges; leave it out`) {
		t.Errorf("got %v", err)
	}
}
