package tables

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/columns"
	"github.com/graphnb/graphnb/internal/atomicfile"
	"github.com/graphnb/graphnb/internal/phrase"
)

const (
	// RecipeFile is the name of a recipe in a dataset's directory.
	RecipeFile = "recipe.json"
	// RecipeVersion is the version of recipes that this package writes and reads.
	RecipeVersion = 2

	maxRecipe = 64 << 20
	// maxWidth bounds the features of a node, so that a damaged recipe costs no memory.
	maxWidth = 1 << 24
)

// Recipe is how tables became the features, labels and splits of a dataset: the kind of each column and the values
// fitted to it. A dataset's directory holds it, with a checksum. It is read-only.
type Recipe struct {
	Version int `json:"version"`
	// Nodes and Edges are the tables, in the order of node types and of relations.
	Nodes []Table `json:"nodes"`
	Edges []Table `json:"edges"`
	// Graphs is the table of graphs of a dataset of many, or nil.
	Graphs *Table `json:"graphs,omitempty"`
	// Encode is [Options].Encode.
	Encode string `json:"encode,omitempty"`
	// Missing are words that mean a missing value, besides those of [Options].
	Missing []string `json:"missing,omitempty"`
	// Present are words that do not mean a missing value.
	Present []string `json:"present,omitempty"`
	// Fit is "train", "all" or a time: the rows that the values are fitted to.
	Fit        string `json:"fit"`
	Undirected bool   `json:"undirected,omitempty"`
	Reverses   bool   `json:"reverses,omitempty"`
	Seed       uint64 `json:"seed,omitempty"`
	// Events says that the rows of tables of edges are events, and Ends that the nodes are their ends, without tables of their own.
	// TimeUnit is the unit of the events' times since 1970, "" if they are in none.
	Events   bool   `json:"events,omitempty"`
	Ends     bool   `json:"ends,omitempty"`
	TimeUnit string `json:"time_unit,omitempty"`
	// FitUntil is the last time of the events to which features of events are fitted; nil if there are none.
	FitUntil *int64 `json:"fit_until,omitempty"`
	// Copies is the checksum of [CopiesFile]; "" if the dataset has no merged edges with weights or features.
	Copies string `json:"copies,omitempty"`
	// Sum is the checksum of the rest.
	Sum string `json:"sum"`

	merged *copies      // to be written
	rows   *edgeAnswers // of events and of edges with numbers to predict, until the dataset has them
}

// Table is the recipe of one table.
type Table struct {
	// Type is the type of the nodes, "" if nodes have no types. Relation is that of edges between typed nodes.
	Type     string             `json:"type,omitempty"`
	Relation *graphops.Relation `json:"relation,omitempty"`
	Columns  []Column           `json:"columns"`
	// Width is the number of features, and Sparse says that they are stored in compressed rows.
	Width  int  `json:"width,omitempty"`
	Sparse bool `json:"sparse,omitempty"`
	// Classes are the labels, in the order of the classes; nil if the table has none. Numbered says that labels are
	// the classes' numbers.
	Classes  []string `json:"classes,omitempty"`
	Numbered bool     `json:"edgeAnswers,omitempty"`
	// Local says that ids of nodes are unique within their graphs only.
	Local bool `json:"local,omitempty"`

	graphs bool // it is the table of graphs
}

// Features returns the names of the features of table t's nodes or edges, in order.
func (t *Table) Features() []string {
	var all []string
	for i := range t.Columns {
		all = append(all, t.Columns[i].names()...)
	}
	return all
}

// edgeFeatures returns the names of all tables' features of edges.
func (r *Recipe) edgeFeatures() []string {
	var all []string
	for i := range r.Edges {
		all = append(all, r.Edges[i].Features()...)
	}
	return all
}

// split reports whether a column says which split a node is in.
func (t *Table) split() bool {
	return slices.ContainsFunc(t.Columns, func(c Column) bool { return c.Kind == Split || slices.Contains(masks[:], c.Kind) })
}

// column returns the column of a kind, or nil.
func (t *Table) column(kind Kind) *Column {
	for i := range t.Columns {
		if t.Columns[i].Kind == kind {
			return &t.Columns[i]
		}
	}
	return nil
}

// name is what a table is called in front of a column's name.
func (t *Table) name(edges bool) string {
	switch {
	case t.Relation != nil:
		return t.Relation.Name
	case t.Type != "":
		return t.Type
	case t.graphs:
		return "graphs"
	case edges:
		return "edges"
	}
	return "nodes"
}

// String returns the columns as a table: name, kind, reason, and the features that it becomes.
func (r *Recipe) String() string {
	var s strings.Builder
	write := func(t *Table, edges bool) {
		head := t.name(edges)
		if t.Relation != nil {
			head = t.Relation.String()
		}
		if t.Width > 0 {
			head += ": " + phrase.Count(t.Width, "feature")
			if t.Sparse {
				head += " (sparse)"
			}
		}
		rows := [][3]string{{head, "kind", ""}}
		for i := range t.Columns {
			c := &t.Columns[i]
			rows = append(rows, [3]string{"  " + c.Name, string(c.Kind), c.becomes(t)})
		}
		var width [2]int
		for _, r := range rows {
			for k := range width {
				width[k] = max(width[k], utf8.RuneCountInString(r[k]))
			}
		}
		for _, r := range rows {
			line := ""
			for k := range width {
				line += r[k] + strings.Repeat(" ", width[k]-utf8.RuneCountInString(r[k])+2)
			}
			s.WriteString(strings.TrimRight(phrase.CleanLine(line+r[2]), " ") + "\n")
		}
	}
	if r.Graphs != nil {
		write(r.Graphs, false)
	}
	for i := range r.Nodes {
		write(&r.Nodes[i], false)
	}
	for i := range r.Edges {
		write(&r.Edges[i], true)
	}
	return s.String()
}

// becomes says what a column was found to be and what becomes of it.
func (c *Column) becomes(t *Table) string {
	var parts []string
	if c.Why != "" {
		parts = append(parts, c.Why)
	}
	if unit := c.unitWords(); unit != "" {
		parts = append(parts, unit)
	}
	into := ""
	switch {
	case c.Kind == Label && t.Classes != nil:
		into = fmt.Sprintf("%d classes", len(t.Classes))
		if len(t.Classes) <= 5 && !t.Numbered {
			into += ": " + strings.Join(t.Classes, ", ")
		}
	case c.Width == 0:
	case c.Kind == Number && c.Shift != 0:
		into = fmt.Sprintf("(x - %.4g) / %.4g", c.Shift, c.Scale)
	case c.Kind == Category && c.Buckets > 0:
		into = fmt.Sprintf("hashed into %d columns", c.Buckets)
	case c.Kind == Text:
		into = fmt.Sprintf("words hashed into %d columns", c.Buckets)
	case c.Width > 1:
		into = phrase.Count(c.Width, "column")
	}
	if c.Flag {
		into += ", one where missing"
		into = strings.TrimPrefix(into, ", ")
	}
	if into != "" {
		parts = append(parts, into)
	}
	return strings.Join(parts, "; ")
}

// sum returns the checksum of a recipe.
func (r *Recipe) sum() (string, error) {
	plain := *r
	plain.Sum = ""
	raw, err := json.Marshal(&plain)
	if err != nil {
		return "", err
	}
	h := sha256.Sum256(raw)
	return hex.EncodeToString(h[:]), nil
}

// write writes the recipe into a directory.
func (r *Recipe) write(dir string) error {
	sum, err := r.sum()
	if err != nil {
		return err
	}
	r.Sum = sum
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(filepath.Join(dir, RecipeFile), append(raw, '\n'), 0o644)
}

// ReadRecipe reads the recipe of the dataset in a directory. The error for a dataset that was not made of tables wraps
// [fs.ErrNotExist]; a recipe of another version, or one that was changed, is an error.
func ReadRecipe(dir string) (*Recipe, error) {
	path := filepath.Join(dir, RecipeFile)
	raw, err := atomicfile.ReadFile(path, maxRecipe)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault("%s has no recipe, so it was not made by tables.Read: %w", dir, err)
	}
	if err != nil {
		return nil, fault("%w", err)
	}
	r, err := parseRecipe(raw)
	if err != nil {
		return nil, fault("reading %s: %w", path, err)
	}
	return r, nil
}

// recipeOf reads the recipe of a dataset.
func recipeOf(ds *dataset.Dataset) (*Recipe, error) {
	if ds.Dir() != "" {
		return ReadRecipe(ds.Dir())
	}
	f, err := ds.OpenFile(RecipeFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault("%s has no recipe, so it was not made by tables.Read: %w", ds.Name(), err)
	}
	if err != nil {
		return nil, fault("%w", err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxRecipe+1))
	if err == nil && len(raw) > maxRecipe {
		err = fmt.Errorf("it has more than the %d bytes that a recipe can have", maxRecipe)
	}
	var r *Recipe
	if err == nil {
		r, err = parseRecipe(raw)
	}
	if err != nil {
		return nil, fault("reading the recipe of %s: %w", ds.Name(), err)
	}
	return r, nil
}

func parseRecipe(raw []byte) (*Recipe, error) {
	var version struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(raw, &version); err != nil {
		return nil, fmt.Errorf("it is not the JSON object expected: %w", err)
	}
	if version.Version != RecipeVersion {
		return nil, fmt.Errorf("its version is %d; this version of GraphNB reads %d: read the tables again", version.Version, RecipeVersion)
	}
	r := &Recipe{}
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.DisallowUnknownFields()
	if err := d.Decode(r); err != nil {
		return nil, fmt.Errorf("it is not the JSON object expected: %w", err)
	}
	sum, err := r.sum()
	if err != nil {
		return nil, err
	}
	if sum != r.Sum {
		return nil, errors.New("its checksum does not match: it was changed or damaged; a recipe is made by tables.Read and not edited")
	}
	return r, r.check()
}

// check returns an error unless the recipe's values fit together.
func (r *Recipe) check() error {
	if len(r.Nodes) == 0 || len(r.Edges) == 0 {
		return errors.New("it has no table of nodes or none of edges")
	}
	if g := r.Graphs; g != nil {
		g.graphs = true
		if err := (&Recipe{Nodes: []Table{*g}, Edges: r.Edges}).check(); err != nil {
			return err
		}
		if len(r.Nodes) > 1 || len(r.Edges) > 1 || r.Nodes[0].column(Graph) == nil {
			return errors.New("it has a table of graphs, and not one table of nodes with the column of their graphs")
		}
	}
	for i := range r.Edges {
		if r.Events && r.Edges[i].column(Time) == nil {
			return fmt.Errorf("the table of events %s has no column of times", r.Edges[i].name(true))
		}
	}
	if !knownUnit(r.TimeUnit) || r.Ends && !r.Events {
		return fmt.Errorf("it has the unit %s of times, and nodes of events without events", shown(r.TimeUnit))
	}
	first := 0 // of edges, which share one width
	for k, t := range slices.Concat(r.Nodes, r.Edges) {
		edges := k >= len(r.Nodes)
		kinds := nodeKinds
		if edges {
			kinds = edgeKinds
		}
		if k <= len(r.Nodes) {
			first = 0
		}
		width := 0
		for i := range t.Columns {
			c := &t.Columns[i]
			switch {
			case !slices.Contains(kinds, c.Kind):
				return fmt.Errorf("the column %s has the kind %s", shown(c.Name), shown(string(c.Kind)))
			case slices.ContainsFunc(t.Columns[:i], func(o Column) bool { return o.Name == c.Name }):
				return fmt.Errorf("the column %s is there twice", shown(c.Name))
			case c.Buckets < 0 || c.Buckets > maxWidth || c.Kind == Text && (c.Buckets == 0 || len(c.IDF) != c.Buckets):
				return fmt.Errorf("the column %s has %d hashed columns and %d weights", shown(c.Name), c.Buckets, len(c.IDF))
			case c.Notation != string(columns.Point) && c.Notation != string(columns.Comma) && c.Notation != string(columns.Grouped):
				return fmt.Errorf("the column %s has the notation %s", shown(c.Name), shown(c.Notation))
			case !knownUnit(c.Unit):
				return fmt.Errorf("the column %s has the unit %s", shown(c.Name), shown(c.Unit))
			case c.Set < 0 || c.Set > len(t.Columns):
				return fmt.Errorf("the column %s is a mask of the set %d of splits", shown(c.Name), c.Set)
			case (c.Every || c.Set > 0) && !slices.Contains(masks[:], c.Kind):
				return fmt.Errorf("the column %s is of a set of splits, and no mask", shown(c.Name))
			case !slices.IsSorted(c.Values):
				return fmt.Errorf("the values of column %s do not ascend", shown(c.Name))
			case c.Width != c.width() || c.Width > 0 && c.First != first:
				return fmt.Errorf("the column %s has the features %d to %d", shown(c.Name), c.First, c.First+c.Width)
			case (c.Kind == Number || c.Kind == Date) && !(c.Scale > 0):
				return fmt.Errorf("the column %s is scaled by %v", shown(c.Name), c.Scale)
			}
			for _, x := range append([]float64{c.Mean, c.Shift, c.Scale}, c.IDF...) {
				if math.IsNaN(x) || math.IsInf(x, 0) {
					return fmt.Errorf("the column %s has a value that is not finite", shown(c.Name))
				}
			}
			first += c.Width
			width += c.Width
		}
		if width > maxWidth || t.Width != width {
			return fmt.Errorf("the columns of %s become %d features and not %d", t.name(edges), width, t.Width)
		}
		if !edges && t.column(ID) == nil {
			return fmt.Errorf("the table %s has no column of ids", t.name(edges))
		}
		if edges && (t.column(Source) == nil || t.column(Target) == nil) {
			return fmt.Errorf("the table %s has no columns of sources and targets", t.name(edges))
		}
	}
	return nil
}

// missing returns the words that mean a missing value.
func (r *Recipe) missing() *columns.Missing {
	return columns.NewMissing(slices.Clone(r.Missing), r.Present)
}

func knownUnit(name string) bool {
	_, ok := unitOf(name)
	return ok
}
