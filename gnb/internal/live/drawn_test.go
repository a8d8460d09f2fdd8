package live

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/screen"
	"github.com/graphnb/graphnb/gnb/internal/screen/screentest"
)

// What a program logs to look at is one output below the panel, which stays when the run has ended, and changes only with
// what is drawn.
func TestDrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &screentest.Tape{}
		sink := New(screen.Options{Display: d})
		s := sampleRun(100, 1, 0.5, screen.Running)
		table := Drawn{Name: "<i>mistakes</i>", At: "step 7", Text: "1 row", Head: []string{"a", "<b>"}, Rows: [][]string{{"1", "</td>"}}}
		s.Drawn = []Drawn{
			{Name: "weights", At: "step 100", Text: "3 <values>", PNG: []byte("one"), Width: 432, Height: 240, Areas: `{"charts":[]}`},
			table,
			{Name: "second", At: "step 100", PNG: []byte("two"), Width: 432, Height: 240},
			{Name: "third", At: "step 100", PNG: []byte("three"), Width: 880, Height: 240},
		}
		for range 5 {
			sink.Update(s)
			time.Sleep(time.Second)
		}
		drawn := func() (out []string) {
			for _, o := range d.All() {
				if strings.HasSuffix(o.DisplayID, "_drawn") {
					out = append(out, screentest.HTMLOf(o))
				}
			}
			return out
		}
		if n := len(drawn()); n != 1 {
			t.Fatalf("the drawings were shown %d times, want once", n)
		}
		text := screentest.CheckHTML(t, drawn()[0])
		if n := strings.Count(drawn()[0], "data:image/png;base64,"); n != 3 || !strings.Contains(text, "<i>mistakes</i>") || !strings.Contains(text, "</td>") || !strings.Contains(text, "step 100") {
			t.Errorf("%d pictures in %s", n, text)
		}
		s.Drawn = append([]Drawn{}, s.Drawn...)
		s.Drawn[1].At, s.Drawn[1].Rows = "step 8", nil
		sink.Update(s)
		time.Sleep(time.Second)
		s.State = screen.Done
		if err := sink.Close(s); err != nil {
			t.Fatal(err)
		}
		if all := drawn(); len(all) != 2 || !strings.Contains(all[1], "step 8") {
			t.Errorf("after a change the drawings were shown %d times", len(all))
		}
		out := d.Outputs()
		if len(out) != 3 || !strings.HasSuffix(out[1].DisplayID, "_drawn") || !strings.Contains(screentest.PlainOf(out[1]), "weights, step 100: 3 <values>\n<i>mistakes</i>, step 8: 1 row\n  a | <b>\nsecond") {
			t.Errorf("%d outputs remain; the second is %q", len(out), screentest.PlainOf(out[1]))
		}
	})
}

// However much is logged, an output stays small, and says what is missing.
func TestDrawnIsBounded(t *testing.T) {
	var all []Drawn
	for i := range 24 {
		all = append(all, Drawn{Name: fmt.Sprint(i), PNG: make([]byte, 20_000), Width: 432, Height: 240})
	}
	all = append([]Drawn{{}}, all...)
	all[0] = Drawn{Name: "table", Head: []string{"x"}, Rows: make([][]string, 50)}
	for i := range all[0].Rows {
		all[0].Rows[i] = []string{"cell"}
	}
	html := drawnHTML("id", all)
	text := screentest.CheckHTML(t, html)
	if len(html) > 210_000 || !strings.Contains(text, "and 18 more that the run's directory has") || !strings.Contains(text, "and 38 more rows") {
		t.Errorf("%d bytes: %s", len(html), text)
	}
}
