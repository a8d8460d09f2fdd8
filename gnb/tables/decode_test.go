package tables

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
)

// A decoder gives back what the table said: numbers with their digits, dates, categories, and missing values; it says so where features
// do not tell the value.
func TestDecoderGivesBackTheTable(t *testing.T) {
	var nodes, edges strings.Builder
	nodes.WriteString("id,plan,spent,since,seen,city,note,rare,label\n")
	edges.WriteString("source,target\n")
	rows := [][]string{}
	for v := range 200 {
		row := []string{
			fmt.Sprintf("c%d", v), []string{"basic", "plus", "pro"}[v*7%3], strconv.FormatFloat(float64(v*v%977)/8+0.01*float64(v%2), 'f', -1, 64),
			fmt.Sprintf("20%02d-%02d-%02d", 10+v%13, 1+v%12, 1+v%28), fmt.Sprintf("2023-01-%02d %02d:%02d:00", 1+v%28, v%24, v*7%60),
			fmt.Sprintf("city %d", v), "some words of text", "x", []string{"yes", "no"}[v%2],
		}
		if v%10 == 3 {
			row[2], row[3], row[1] = "", "", ""
		}
		rows = append(rows, row)
		nodes.WriteString(strings.Join(row, ",") + "\n")
		fmt.Fprintf(&edges, "c%d,c%d\n", v, (v+1)%200)
	}
	dir, f := pair(t, nodes.String(), edges.String())
	o := Options{Name: "decoded", Kinds: map[string]Kind{"plan": Category, "spent": Number, "since": Date, "seen": Date, "city": Category, "note": Text, "rare": Category, "label": Label}}
	ds := read(t, dir+"/ds", f, o)
	r, err := ReadRecipe(ds.Dir())
	if err != nil {
		t.Fatal(err)
	}
	d := NewDecoder(ds, r)
	columns := d.Columns("")
	if len(columns) != 7 {
		t.Fatalf("%d columns became features", len(columns))
	}
	at := map[string]int{"plan": 1, "spent": 2, "since": 3, "seen": 4, "rare": 7}
	for v, row := range rows {
		for _, c := range columns {
			value, exact := d.Value("", v, c)
			k, ok := at[c.Name]
			switch {
			case !ok && exact:
				t.Errorf("the %s of row %d is %q, and hashed columns do not tell it", c.Name, v, value)
			case ok && (!exact || value != row[k]):
				t.Errorf("the %s of row %d is %q (%v), and the table has %q", c.Name, v, value, exact, row[k])
			}
		}
	}
	spent := columns[1]
	x := make([]float32, r.Nodes[0].Width)
	x[spent.First] = float32(math.Pi)
	if value, exact := spent.Decode(x, false); !exact || len(value) > 21 {
		t.Errorf("a number between the digits is %q", value)
	}
	if value, exact := spent.Decode(x[:1], false); exact {
		t.Errorf("a short row has the value %q", value)
	}
	plan := columns[0]
	if value, exact := plan.Decode(make([]float32, len(x)), false); exact || value != "another category" {
		t.Errorf("an unknown category is %q, %v", value, exact)
	}
	r.Nodes[0].Columns[1].Name = "tariff"
	if NewDecoder(ds, r).Columns("") != nil {
		t.Error("features of other names are decoded")
	}
}
