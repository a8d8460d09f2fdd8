package tables

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
)

const asked = "src,dst,ts\na,b,1082008561\nc,a,1082009500\nd,b,1082010000\n"

// questionsOf reads events with a table of questions.
func questionsOf(t *testing.T, events, csv string, bipartite bool, o Options) (*dataset.Dataset, notice.List, error) {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, map[string]string{"e.csv": events, "q.csv": csv})
	var said notice.List
	o.Quiet, o.Notice = true, func(n notice.Notice) { said.Add(n) }
	ds, err := Read(t.Context(), dir+"/ds", Files{Edges: []Edges{{Path: dir + "/e.csv"}}, Events: true, Bipartite: bipartite, Questions: dir + "/q.csv"}, o)
	if err == nil {
		t.Cleanup(func() { ds.Close() })
	}
	return ds, said, err
}

// shownQuestions returns the questions by the original ids, as "node@time=answers".
func shownQuestions(t *testing.T, ds *dataset.Dataset) (all []string) {
	t.Helper()
	q, err := ds.Questions()
	if err != nil || q == nil {
		t.Fatal(q, err)
	}
	ids, err := ds.IDs()
	if err != nil {
		t.Fatal(err)
	}
	cols := len(q.Columns)
	for i, v := range q.Nodes {
		text := fmt.Sprintf("%s@%d", ids[v], q.Times[i])
		for c, y := range q.Answers[i*cols : (i+1)*cols] {
			switch names := q.Columns[c].Classes; {
			case y != y:
				text += "=?"
			case names != nil:
				text += "=" + names[int(y)]
			default:
				text += fmt.Sprint("=", y)
			}
		}
		all = append(all, text)
	}
	return all
}

// Rows become questions in the order of time, with the ids of the events and times in their unit; what is odd is counted.
func TestQuestions(t *testing.T) {
	for _, c := range []struct {
		name, csv string
		kinds     map[string]Kind
		want      []string
		said      string
	}{
		{"numbers and words", "id,time,spent,back\nc,1082009600,1.5,yes\na,1082009000,-2,no\n", nil, []string{"a@1082009000=-2=no", "c@1082009600=1.5=yes"}, "is predicted as one of 2 classes"},
		{"dates with a zone", "node,when,y\na,2004-04-15T08:00:00+02:00,3\n", map[string]Kind{"questions.when": Time}, []string{"a@1082008800=3"}, ""},
		{"dates without a zone", "node,date,y\na,2004-04-15 06:00:00,3\n", map[string]Kind{"questions.date": Time}, []string{"a@1082008800=3"}, "read as UTC"},
		{"an unknown node", "node,time,y\na,1082009000,3\nz,1082009000,4\n", nil, []string{"a@1082009000=3"}, "questions are about nodes that no event has, such as \"z\""},
		{"an unknown answer", "node,time,y,z\na,1082009000,3,\nc,1082009000,,\nd,1082009000,NaN,5\n", nil, []string{"a@1082009000=3=?", "d@1082009000=?=5"}, "questions have no known answer"},
		{"a question twice", "node,time,y\na,1082009000,3\na,1082009000,3\n", nil, []string{"a@1082009000=3"}, "are there twice"},
		{"numbers that are classes", "node,time,y\na,1082009000,10\nc,1082009000,2\n", map[string]Kind{"questions.y": Label}, []string{"a@1082009000=10", "c@1082009000=2"}, "one of 2 classes"},
		{"a label by its name", "node,time,label\na,1082009000,1\nc,1082009000,0\n", nil, []string{"a@1082009000=1", "c@1082009000=0"}, "one of 2 classes"},
		{"a column that is skipped", "node,time,y,note\na,1082009000,1,x\n", map[string]Kind{"note": Skip}, []string{"a@1082009000=1"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			ds, said, err := questionsOf(t, asked, c.csv, false, Options{Kinds: c.kinds})
			if err != nil {
				t.Fatal(err)
			}
			if got := shownQuestions(t, ds); !slices.Equal(got, c.want) {
				t.Errorf("the questions are %q, want %q", got, c.want)
			}
			if text := fmt.Sprint(said); !strings.Contains(text, c.said) {
				t.Errorf("it is said %s, want %q", text, c.said)
			}
			if err := ds.Check(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	ds, _, err := questionsOf(t, "user,film,ts\n1,7,1082008561\n2,1,1082009500\n", "film,time,y\n1,1082009000,3\n", true, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if q, err := ds.Questions(); err != nil || len(q.Nodes) != 1 || q.Nodes[0] != 3 { // user 1, user 2, film 7, film 1
		t.Errorf("the question about film 1 is %+v, %v", q, err)
	}
}

// Questions that cannot be read are refused in a sentence.
func TestHostileQuestions(t *testing.T) {
	for _, c := range []struct{ name, csv, want string }{
		{"no time", "node,y\na,3\n", "no column is the time"},
		{"no answers", "node,time\na,1082009000\n", "no column has answers"},
		{"a missing time", "node,time,y\na,,3\n", "the time is missing"},
		{"a missing node", "node,time,y\n,1082009000,3\n", "the node is missing"},
		{"another unit", "node,time,y\na,1082009000000,3\n", "look like another unit than s"},
		{"an infinite number", "node,time,y\na,1082009000,1e300\n", "no number in float32"},
		{"two answers", "node,time,y\na,1082009000,3\na,1082009000,4\n", "have different answers"},
		{"no rows", "node,time,y\n", "no rows"},
		{"only strangers", "node,time,y\nq,1082009000,3\n", "none of its 1 rows is a question"},
		{"no dates", "node,time,y\na,soon,3\n", "time"},
		{"a time finer than a second", "node,when,y\na,2004-04-15T08:00:00.5Z,3\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			kinds := map[string]Kind{}
			if strings.Contains(c.csv, "when") {
				kinds["questions.when"] = Time
			}
			_, said, err := questionsOf(t, asked, c.csv, false, Options{Kinds: kinds})
			if c.want == "" {
				if err != nil || !strings.Contains(fmt.Sprint(said), "rounded down to s") {
					t.Errorf("the error is %v, and it is said %v", err, said)
				}
			} else if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want %q", err, c.want)
			}
		})
	}
	dir := t.TempDir()
	write(t, dir, map[string]string{"nodes.csv": "id\na\nb\n", "edges.csv": "source,target\na,b\n", "q.csv": "node,time,y\na,1,2\n"})
	f := Of(dir+"/nodes.csv", dir+"/edges.csv")
	f.Questions = dir + "/q.csv"
	if _, err := Read(t.Context(), dir+"/ds", f, Options{Quiet: true}); err == nil || !strings.Contains(err.Error(), "are not of events") {
		t.Errorf("questions about a graph without events: %v", err)
	}
}
