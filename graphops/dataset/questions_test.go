package dataset_test

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset"
)

// Questions keep their bits through a directory and shared memory, and are part of the digest; those that mean nothing are refused.
func TestQuestionsAreKept(t *testing.T) {
	d := messages(t)
	before, err := d.Digests(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	nan := float32(math.NaN())
	q := &dataset.Questions{
		Nodes: []int32{1, 0, 3}, Times: []int64{5, 20, 20}, Answers: []float32{1.5, 0, nan, 1, -2, nan},
		Columns: []dataset.QuestionColumn{{Name: "amount"}, {Name: "back", Classes: []string{"no", "yes"}}},
	}
	if err := d.SetQuestions(q); err != nil {
		t.Fatal(err)
	}
	after, err := d.Digests(t.Context(), nil)
	if err != nil || after == before {
		t.Errorf("the digest does not tell the questions: %v", err)
	}
	dir := filepath.Join(t.TempDir(), "d")
	if err := dataset.Write(dir, d); err != nil {
		t.Fatal(err)
	}
	opened, err := dataset.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	f, err := d.Share(t.Context(), dataset.CheckOnceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	shared, err := dataset.OpenFD(f)
	if err != nil {
		t.Fatal(err)
	}
	defer shared.Close()
	for name, of := range map[string]*dataset.Dataset{"in memory": d, "opened": opened, "shared": shared} {
		got, err := of.Questions()
		if err != nil || got == nil || len(got.Nodes) != 3 || got.Nodes[2] != 3 || got.Times[1] != 20 || got.Answers[4] != -2 || got.Answers[2] == got.Answers[2] || got.Columns[1].Classes[1] != "yes" {
			t.Errorf("%s: the questions are %+v, %v", name, got, err)
		}
		if err := of.Check(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	some, err := d.Subset([]int32{0, 3})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := some.Questions(); err != nil || len(got.Nodes) != 2 || got.Nodes[0] != 0 || got.Nodes[1] != 1 || got.Times[0] != 20 || got.Answers[2] != -2 {
		t.Errorf("of the nodes 0 and 3 the questions are %+v, %v", got, err)
	}
	if none, err := d.Subset([]int32{2}); err != nil || len(none.Meta.Questions) != 0 {
		t.Errorf("of node 2 there are questions: %v", err)
	}
	for want, change := range map[string]func(q *dataset.Questions){
		"is about node 4":      func(q *dataset.Questions) { q.Nodes[0] = 4 },
		"as an earlier one is": func(q *dataset.Questions) { q.Nodes[1] = 3 },
		"times ascend":         func(q *dataset.Questions) { q.Times[0] = 21 },
		"is +Inf":              func(q *dataset.Questions) { q.Answers[0] = float32(math.Inf(1)) },
		"its classes are":      func(q *dataset.Questions) { q.Answers[1] = 2 },
		"each question has":    func(q *dataset.Questions) { q.Answers = q.Answers[1:] },
		"there are none, or t": func(q *dataset.Questions) { q.Columns = nil },
	} {
		bad := &dataset.Questions{Nodes: []int32{1, 0, 3}, Times: []int64{5, 20, 20}, Answers: []float32{1.5, 0, nan, 1, -2, nan}, Columns: q.Columns}
		change(bad)
		if err := messages(t).SetQuestions(bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q", err, want)
		}
	}
	if got, err := messages(t).Questions(); got != nil || err != nil {
		t.Errorf("without questions there are %v, %v", got, err)
	}
}
