package columns

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset/notice"
)

// look profiles the columns of a small table, given as lines with commas or semicolons.
func look(of Of, sep rune, lines ...string) Table {
	t := Table{Of: of, Path: "t.csv", Separator: sep, Names: strings.Split(lines[0], string(sep))}
	for range t.Names {
		t.Profiles = append(t.Profiles, &Profile{})
	}
	m := NewMissing(nil, nil)
	for _, line := range lines[1:] {
		for i, s := range strings.Split(line, string(sep)) {
			if m.Value(s) {
				t.Profiles[i].AddMissing()
			} else {
				t.Profiles[i].AddText(s)
			}
		}
	}
	return t
}

func kinds(cols []Column) string {
	var all []string
	for _, c := range cols {
		k := string(c.Kind)
		if k == "" {
			k = "."
		}
		all = append(all, k)
	}
	return strings.Join(all, " ")
}

func TestDecide(t *testing.T) {
	for _, tc := range []struct {
		name  string
		table Table
		want  string
		said  int // notices
	}{
		{"plain", look(Nodes, ',', "id,label,split,f", "a,0,train,1.5", "b,1,test,2"), "id label split .", 0},
		{"masks", look(Nodes, ',', "node_id,label,train_mask,val_mask,test_mask,f", "0,0,1,0,0,.5", "1,1,0,True,0,.25"), "id label train_mask val_mask test_mask .", 3},
		{"camel", look(Nodes, ',', "id,trainMask,Val Mask,f", "0,1,0,2", "1,0,1,3"), "id train_mask val_mask .", 2},
		{"an odd mask of other values is a feature", look(Nodes, ',', "id,mask_train", "0,0.5", "1,3"), "id .", 0},
		{"is_train alone", look(Nodes, ',', "id,is_train,is_valid", "0,1,0", "1,0,1"), "id train_mask val_mask", 2},
		{"is_valid without a mask of train", look(Nodes, ',', "id,is_valid,test", "0,1,0", "1,0,1"), "id . .", 0},
		{"numbered split", look(Nodes, ',', "id,split", "0,0", "1,2", "2,1"), "id split", 1},
		{"subset of words", look(Nodes, ',', "id,subset", "0,Train", "1,valid"), "id split", 1},
		{"a set that is none", look(Nodes, ',', "id,set", "0,4", "1,5"), "id .", 0},
		{"index beside an id", look(Nodes, ',', "Unnamed: 0,id,f", "5,a,1", "6,b,2"), "skip id .", 1},
		{"empty name", look(Nodes, ',', ",id,f", "5,a,1", "6,b,2"), "skip id .", 1},
		{"index level", look(Nodes, ',', "id,f,__index_level_0__", "a,1,7", "b,2,3"), "id . skip", 1},
		{"the index is the only id", look(Nodes, ',', ",f,label", "0,.5,0", "1,.5,1"), "id . label", 1},
		{"two unnamed columns", look(Nodes, ',', ",f,label,Unnamed\"", "0,.5,0,7", "1,.5,1,8"), "id . label skip", 2},
		{"invalid is no mask", look(Nodes, ',', "id,train_mask,invalid,is_invalid", "0,1,0,1", "1,0,1,0"), "id train_mask . .", 1},
		{"index that counts", look(Nodes, ',', "index,id,f", "0,a,1", "1,b,2"), "skip id .", 1},
		{"index that does not count", look(Nodes, ',', "index,id,f", "9,a,1", "4,b,2"), ". id .", 0},
		{"id by its ending", look(Nodes, ',', "txId,class,f", "77,1,1", "78,2,2"), "id label .", 2},
		{"ids of something else", look(Nodes, ',', "id,user_id,f", "0,4,1", "1,4,2"), "id skip .", 1},
		{"edges", look(Edges, ',', "source,target,weight", "a,b,2"), "source target weight", 0},
		{"edges by place", look(Edges, ',', "Unnamed: 0,user_a,user_b,rating", "0,5,6,0.5", "1,6,7,1"), "skip source target .", 3},
		{"edges with other names", look(Edges, ',', "sender,receiver,ts", "a,b,1"), "source target time", 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cols, said, err := tc.table.Decide()
			if err != nil {
				t.Fatal(err)
			}
			if got := kinds(cols); got != tc.want || len(said) != tc.said {
				t.Errorf("the columns are %q with %d notices, want %q with %d: %v", got, len(said), tc.want, tc.said, said)
			}
		})
	}
}

// Masks with numbers are sets of splits. A single one without a number is that of every set, and a missing one is said.
func TestSetsOfMasks(t *testing.T) {
	sets := func(cols []Column) string {
		s := ""
		for _, c := range cols {
			switch {
			case c.Every:
				s += "*"
			case slices.Contains(Masks[:], c.Kind):
				s += strconv.Itoa(c.Set)
			default:
				s += "."
			}
		}
		return s
	}
	for _, tc := range []struct{ head, want, said string }{
		{"id,train_mask,val_mask,test_mask", ".000", ""},
		{"id,train_mask_3,val_mask,test_mask", ".000", ""},
		{"id,train_mask_0,train_mask_1,val_mask_0,val_mask_1,test_mask", ".0101*", "several sets of splits, numbered from 0 (2)"},
		{"id,train_mask,train_mask_1,val_mask,val_mask_1,test_mask,test_mask_1", ".010101", "(2)"},
		{"id,train_mask_0,train_mask_1,train_mask_2,val_mask_0,val_mask_2", ".01202", "the set 1 has no val_mask (1)"},
	} {
		n := strings.Count(tc.head, ",")
		tab := look(Nodes, ',', tc.head, "0"+strings.Repeat(",0", n), "1"+strings.Repeat(",1", n))
		cols, said, err := tab.Decide()
		text := ""
		for _, n := range said {
			text += n.String() + "\n"
		}
		if got := sets(cols); err != nil || got != tc.want || !strings.Contains(text, tc.said) || tc.said == "" && strings.Contains(text, "sets") {
			t.Errorf("%s: the sets are %s, want %s; said %q (%v)", tc.head, got, tc.want, text, err)
		}
	}
}

// Options overrule every guess.
func TestGivenKinds(t *testing.T) {
	tab := look(Nodes, ',', "id,train_mask,split,Unnamed: 0", "a,1,train,0", "b,0,val,1")
	tab.Kinds = []Kind{"", Number, Skip, Number}
	cols, said, err := tab.Decide()
	if got := kinds(cols); err != nil || got != "id number skip number" || len(said) != 0 {
		t.Errorf("the columns are %q (%v), %v", got, said, err)
	}
	tab.Kinds = []Kind{Label, Label}
	if _, _, err := tab.Decide(); err == nil || !strings.Contains(err.Error(), "train_mask") {
		t.Errorf("two labels: %v", err)
	}
}

func TestSplitOfOtherValues(t *testing.T) {
	tab := look(Nodes, ',', "id,split", "a,train", "b,elsewhere")
	if _, _, err := tab.Decide(); err == nil || !strings.Contains(err.Error(), "--kinds split=number") {
		t.Errorf("the error is %v", err)
	}
}

func TestMaskOfOtherValues(t *testing.T) {
	tab := look(Nodes, ',', "id,train_mask", "a,1", "b,2")
	if _, _, err := tab.Decide(); err == nil || !strings.Contains(err.Error(), "--kinds train_mask=number") {
		t.Errorf("the error is %v", err)
	}
}

func TestNotation(t *testing.T) {
	for _, tc := range []struct {
		name    string
		sep     rune
		decimal string
		values  []string
		want    Notation
		numbers []float64
		fails   bool
	}{
		{"points", ';', "", []string{"1.5", "1234"}, Point, []float64{1.5, 1234}, false},
		{"decimal commas", ';', "", []string{"1000,05", "0,3", "7"}, Comma, []float64{1000.05, .3, 7}, false},
		{"commas and groups", ';', "", []string{"1.234,5", "1.234", "2,25"}, Comma, []float64{1234.5, 1234, 2.25}, false},
		{"ambiguous with semicolons", ';', "", []string{"1,234", "2"}, Comma, []float64{1.234, 2}, false},
		{"ambiguous with quotes", ',', "", []string{"1,234", "2"}, Grouped, []float64{1234, 2}, false},
		{"ambiguous with tabs", '\t', "", []string{"1,234", "2"}, Point, nil, true},
		{"ambiguous, as given", '\t', ",", []string{"1,234", "2"}, Comma, []float64{1.234, 2}, false},
		{"groups", ';', "", []string{"1,234,567.5", "1,000"}, Grouped, []float64{1234567.5, 1000}, false},
		{"groups of blanks", ';', "", []string{"1 234", "-12\u202f345"}, Grouped, []float64{1234, -12345}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tab := Table{Of: Nodes, Names: []string{"x"}, Profiles: []*Profile{{}}, Separator: tc.sep, Decimal: tc.decimal}
			for _, s := range tc.values {
				tab.Profiles[0].AddText(s)
			}
			cols, _, err := tab.Decide()
			if tc.fails {
				if err == nil || !strings.Contains(err.Error(), "--decimal") {
					t.Errorf("the error is %v", err)
				}
				return
			}
			if err != nil || cols[0].Notation != tc.want {
				t.Fatalf("the notation is %q, want %q (%v)", cols[0].Notation, tc.want, err)
			}
			for i, s := range tc.values {
				if x, ok := cols[0].Notation.Number(s); !ok || x != tc.numbers[i] {
					t.Errorf("%q is %v (%v), want %v", s, x, ok, tc.numbers[i])
				}
			}
		})
	}
}

func TestMissing(t *testing.T) {
	m := NewMissing([]string{"--"}, []string{"None"})
	for _, w := range []string{"", "NaN", "unknown", "Unlabeled", "?", "-1", "--"} {
		if !m.Label(w) {
			t.Errorf("%q is not missing as a label", w)
		}
	}
	for _, w := range []string{"None", "1", "yes"} {
		if m.Label(w) {
			t.Errorf("%q is missing as a label", w)
		}
	}
	if m.Value("unknown") || m.Value("-1") || !m.Value("--") || m.Value("None") {
		t.Error("missing values are wrong")
	}
}

func TestClasses(t *testing.T) {
	for _, tc := range []struct {
		words, want []string
		numbered    bool
	}{
		{[]string{"1", "0", "2"}, []string{"0", "1", "2"}, true},
		{[]string{"10", "9"}, []string{"9", "10"}, false},
		{[]string{"b", "a"}, []string{"a", "b"}, false},
	} {
		names, place, numbered, err := Classes(tc.words)
		if err != nil || !slices.Equal(names, tc.want) || numbered != tc.numbered {
			t.Errorf("%v become %v (%v), %v", tc.words, names, numbered, err)
		}
		for i, w := range tc.words {
			if names[place[i]] != w {
				t.Errorf("%q is class %d of %v", w, place[i], names)
			}
		}
	}
	if _, _, _, err := Classes([]string{"1", "0.5"}); !errors.Is(err, ErrFractions) {
		t.Errorf("fractions: %v", err)
	}
	var many *ManyClassesError
	if err := CheckClasses(3906, 20640); !errors.As(err, &many) || many.Classes != 3906 {
		t.Errorf("many classes: %v", err)
	}
	for _, ok := range [][2]int64{{50, 60}, {349, 700_000}, {172, 1_500_000}, {2, 2}} {
		if err := CheckClasses(ok[0], ok[1]); err != nil {
			t.Error(err)
		}
	}
}

func TestTripleColumns(t *testing.T) {
	for line, want := range map[string]string{
		"head relation tail": "source relation target", "subject predicate object": "source relation target", "h r t": "source relation target",
		"head tail relation": "source target relation", "Source Type Target": "source relation target",
		"a r b": "", "head relation": "", "head head tail": "", "head relation b": "",
	} {
		got, ok := TripleColumns(strings.Fields(line))
		var all []string
		for _, k := range got {
			all = append(all, string(k))
		}
		if ok != (want != "") || ok && strings.Join(all, " ") != want {
			t.Errorf("%q: %v %v, want %q", line, got, ok, want)
		}
	}
}

func TestNoticeIsOneLine(t *testing.T) {
	n := notice.Notice{Kind: notice.Dropped, Where: "edges.csv", What: "the column a is not read", Count: 3, Of: 9, Option: "--x reads it"}
	if got := n.String(); got != "dropped: edges.csv: the column a is not read (3 of 9); --x reads it" {
		t.Error(got)
	}
}
