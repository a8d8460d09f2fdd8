package runfile

// Drawn is something that a program logged to look at: a histogram, a chart, a picture or a table. Package runs has the
// same type for users.
type Drawn struct {
	Name string `json:"name"`
	Kind string `json:"kind"` // see the constants below
	Text string `json:"text"` // what it shows, in words

	PNG    []byte `json:"png,omitempty"` // how it looks, at twice the resolution of a standard screen; none for a table
	Width  int    `json:"width,omitempty"`
	Height int    `json:"height,omitempty"`
	Areas  string `json:"areas,omitempty"` // its charts, for the pointer

	Edges   []float64 `json:"edges,omitempty"` // of a histogram: one more than Counts, ascending
	Counts  []float64 `json:"counts,omitempty"`
	Sum     float64   `json:"sum,omitempty"` // of its values, and of their squares
	Squares float64   `json:"squares,omitempty"`

	Head []string   `json:"head,omitempty"` // of a table: the names of columns
	Rows [][]string `json:"rows,omitempty"`
}

// The kinds of what is drawn.
const (
	Histogram = "histogram"
	Chart     = "chart"
	Image     = "picture"
	Table     = "table"
)

// Draw returns a function that draws a logged value, or nil if the value is none of package figure's, which sets Draw. The
// function may be called later, or not at all.
var Draw func(v any) func() (Drawn, error)
