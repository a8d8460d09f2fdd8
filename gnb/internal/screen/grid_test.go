package screen

import (
	"errors"
	"strings"
	"testing"

	"github.com/janpfeifer/gonb/gonbui/protocol"

	"github.com/graphnb/graphnb/gnb/internal/screen/screentest"
)

func TestGridsHTML(t *testing.T) {
	got := gridsHTML("a <plan>", []Grid{{Head: []string{"part", "bytes"}, Rows: [][]string{{"a & b", "3\n"}}}}, []string{"It fits."})
	for _, want := range []string{"<b>a &lt;plan&gt;</b>", `<th style="text-align:left">part</th>`, `<td style="text-align:left">a &amp; b</td>`, `<td style="text-align:right">3`, "<div>It fits.</div>"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in %s", want, got)
		}
	}
}

// A cell gets the tables with their text; a pipe gets no output.
func TestShowGrids(t *testing.T) {
	t.Setenv("GONB_PIPE", "")
	if err := ShowGrids("plan", nil, nil, "text"); err != nil {
		t.Error(err)
	}
	d := &screentest.Tape{}
	if err := showGrids("plan", []Grid{{Head: []string{"a"}}}, nil, "text", Options{Display: d}); err != nil {
		t.Fatal(err)
	}
	if len(d.Sent) != 1 || d.Sent[0].Data[protocol.MIMETextPlain] != "text" || !strings.Contains(d.Sent[0].Data[protocol.MIMETextHTML].(string), "<th") {
		t.Errorf("sent %v", d.Sent)
	}
}

// A cell gets a drawing with its text; a pipe gets no output, and a broken display is an error.
func TestShowSVG(t *testing.T) {
	t.Setenv("GONB_PIPE", "")
	if err := ShowSVG("<svg/>", "text", Options{}); err != nil {
		t.Error(err)
	}
	d := &screentest.Tape{}
	if err := ShowSVG("<svg/>", "text", Options{Display: d}); err != nil {
		t.Fatal(err)
	}
	if len(d.Sent) != 1 || d.Syncs != 1 || d.Sent[0].Data[protocol.MIMETextPlain] != "text" || d.Sent[0].Data[protocol.MIMEImageSVG] != "<svg/>" {
		t.Errorf("sent %v", d.Sent)
	}
	d.Fail = errors.New("gone")
	if err := ShowSVG("<svg/>", "text", Options{Display: d}); !errors.Is(err, d.Fail) {
		t.Errorf("the error is %v", err)
	}
}

// No text of a table, of a report or a plan, becomes an element, an attribute or a script of a page.
func TestHostileNames(t *testing.T) {
	for what, text := range screentest.Hostile {
		t.Run(what, func(t *testing.T) {
			grids := []Grid{{Title: "a", Head: []string{"a", "b"}, Rows: [][]string{{"a", "b"}, {"c"}}}}
			screentest.Poison(&grids, text)
			screentest.CheckHTML(t, gridsHTML(text, grids, []string{text}))
			var b strings.Builder
			Drawing{SVG: []byte("<svg/>"), Areas: "{}"}.HTML(&b, text, text)
			screentest.CheckHTML(t, "<div>"+b.String()+"</div>")
		})
	}
}
