package export

import (
	"encoding/json"
	"strings"
	"testing"
)

func notebook(t *testing.T, cells ...string) []byte {
	t.Helper()
	type cell struct {
		Type   string `json:"cell_type"`
		Source any    `json:"source"`
	}
	nb := struct {
		Format int    `json:"nbformat"`
		Cells  []cell `json:"cells"`
	}{4, []cell{{"markdown", []string{"# text\n", "%%"}}}}
	for i, c := range cells {
		if i%2 == 0 {
			nb.Cells = append(nb.Cells, cell{"code", strings.SplitAfter(c, "\n")}) // nbformat allows both
		} else {
			nb.Cells = append(nb.Cells, cell{"code", c})
		}
	}
	raw, err := json.Marshal(nb)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// The program of a cell has what the cells up to it declare, each thing as it was declared last, with its comments, and the
// cell's statements.
func TestOf(t *testing.T) {
	raw := notebook(t,
		"import (\n\t\"fmt\"\n\tx \"strings\"\n)\n// one is replaced.\nfunc one() int { return 1 }\ntype T struct{} // of many\nfunc (t *T) Name() string { return x.ToUpper(\"t\") }\nvar a, b = 1, 2\nconst (\n\tp = iota\n\tq\n)\nfunc init_seed() { a++ }",
		"%%bash\necho no Go at all",
		"import x \"os\"\n!pip install things\n%goflags -race\n// two is kept.\nfunc two() int { return one() }\nvar b = 3\n%%\nfmt.Println(\"first\")",
		"func one() int {\n\treturn 11 // eleven\n}\n%% --verbose\nfmt.Println(one(), two(), a, b, p, q, x.Args, (&T{}).Name())\nif true {\n\tfmt.Println(`\n`)\n}",
		"func one() int { return 111 }",
	)
	p, err := Of(raw, 0)
	if err != nil {
		t.Fatal(err)
	}
	got := string(p.Source)
	for text, n := range map[string]int{
		"package main": 1, "return 11 // eleven": 1, "return 1 }": 0, "111": 0, "// one is replaced.": 0, "// two is kept.\nfunc two()": 1, "x \"strings\"": 0, "x \"os\"": 1,
		"func (t *T) Name()": 1, "type T struct{} // of many": 1, "var a, b": 0, "var b = 3": 1, "q\n)": 1, "func init()": 1, "init_seed": 0, "first": 0, "flag.Parse()": 1, "multigpu.Leave(0)": 1, "\"flag\"": 1, "(&T{}).Name())": 1, "pip": 0,
	} {
		if c := strings.Count(got, text); c != n {
			t.Errorf("the program has %q %d times, want %d:\n%s", text, c, n, got)
		}
	}
	want := []string{"code cell 2: a cell of %%bash", "code cell 3: the command !pip install things", "code cell 3: the command %goflags -race", "code cell 4: the arguments --verbose"}
	if p.Cell != 4 || strings.Join(p.Left, "\n") != strings.Join(want, "\n") {
		t.Errorf("code cell %d; left out: %q", p.Cell, p.Left)
	}
	if p, err := Of(raw, 3); err != nil || p.Cell != 3 || !strings.Contains(string(p.Source), "Println(\"first\")") || strings.Contains(string(p.Source), "eleven") {
		t.Errorf("the program of code cell 3 is %+v, %v", p, err)
	}
}

// What no program can be made of is a sentence that names the cell.
func TestRefused(t *testing.T) {
	runs := "%%\nprintln(1)"
	for _, c := range []struct {
		raw  []byte
		cell int
		want string
	}{
		{[]byte("no JSON"), 0, "it is not a notebook"},
		{[]byte(`{"nbformat": 3, "worksheets": []}`), 0, "nbformat 4"},
		{notebook(t, "func a() {}"), 0, "no cell has a line %%"},
		{notebook(t, "func a() {}", runs), 1, "code cell 1 has no line %%"},
		{notebook(t, runs), 2, "there is no code cell 2; the notebook has 1"},
		{notebook(t, runs), -1, "there is no code cell -1"},
		{notebook(t, "x := 1", runs), 0, "code cell 1: line 1:"},
		{notebook(t, "%%\n\nif {", runs), 0, "code cell 1: line 3:"},
		{notebook(t, "func main() {}", runs), 0, "code cell 1: it declares func main"},
	} {
		if _, err := Of(c.raw, c.cell); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("the error is %v, want %q", err, c.want)
		}
	}
}
