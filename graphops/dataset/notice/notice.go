// Package notice is the list of what a reader of data did that its files do not say: what it guessed, dropped, merged,
// renumbered, or could not represent. Conversions, checks, tables and appended rows report this one list.
package notice

import (
	"fmt"
	"strings"
)

// Kind says what was done.
type Kind string

// The kinds of notices.
const (
	Guessed         Kind = "guessed"           // read by a rule; Notice.Option overrules it
	Dropped         Kind = "dropped"           // not in the result
	Merged          Kind = "merged"            // several became one
	Renumbered      Kind = "renumbered"        // numbers in the result are not those of the file
	Unrepresentable Kind = "not representable" // stored differently, because the type or format cannot hold it
	Told            Kind = "note"              // neither: a fact about the result, such as the names of its features
)

// Notice is one thing that was done.
type Notice struct {
	Kind Kind `json:"kind"`
	// Where is the place: a file, and a column if there is one ("nodes.csv: column age").
	Where string `json:"where,omitempty"`
	// What says what was done, as a part of a sentence: "train_mask is the mask of the split train".
	What string `json:"what"`
	// Count is how many rows, edges, values or nodes it concerns; 0 if that is not a number. Of is how many there are.
	Count int64 `json:"count,omitempty"`
	Of    int64 `json:"of,omitempty"`
	// Option overrules it: a flag of gnb data convert, such as "--kinds age=number"; "" if nothing does.
	Option string `json:"option,omitempty"`
}

// String returns the notice as one line. A What that begins with the kind, such as "merged 2 of 4 edges", is a sentence
// with the counts already.
func (n Notice) String() string {
	var s strings.Builder
	whole := strings.HasPrefix(n.What, string(n.Kind)+" ")
	if n.Kind != Told && !whole {
		s.WriteString(string(n.Kind) + ": ")
	}
	if n.Where != "" {
		s.WriteString(n.Where + ": ")
	}
	s.WriteString(n.What)
	switch {
	case whole:
	case n.Count > 0 && n.Of > 0:
		fmt.Fprintf(&s, " (%d of %d)", n.Count, n.Of)
	case n.Count > 0:
		fmt.Fprintf(&s, " (%d)", n.Count)
	}
	if n.Option != "" {
		s.WriteString("; " + n.Option)
	}
	return s.String()
}

// Func receives notices; nil ignores them.
type Func func(Notice)

// Add passes a notice on.
func (f Func) Add(n Notice) {
	if f != nil {
		f(n)
	}
}

// Tell passes a fact on, without a kind.
func (f Func) Tell(format string, args ...any) {
	if f != nil {
		f(Notice{Kind: Told, What: fmt.Sprintf(format, args...)})
	}
}

// List collects notices.
type List []Notice

// Add appends a notice.
func (l *List) Add(n Notice) { *l = append(*l, n) }

// Done returns the notices that say what was done: all but those that only tell a fact.
func (l List) Done() List {
	var out List
	for _, n := range l {
		if n.Kind != Told {
			out = append(out, n)
		}
	}
	return out
}
