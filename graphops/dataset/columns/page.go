package columns

import (
	"fmt"
	"strings"
)

// Page returns the tables of the page "What the readers guess, and what they say" as Markdown, from Rules and the lists of
// words.
func Page() string {
	var s strings.Builder
	code := func(words []string) string {
		var all []string
		for _, w := range words {
			if w == "" {
				w = " "
			}
			all = append(all, "`"+strings.ReplaceAll(w, "|", `\|`)+"`")
		}
		return strings.Join(all, ", ")
	}
	for _, of := range []Of{Nodes, Edges, Triples} {
		fmt.Fprintf(&s, "### Columns of %s\n\n| the column is | if its name is | and its values are |\n|---|---|---|\n", of)
		for _, r := range Rules {
			if r.Of != of {
				continue
			}
			need := string(r.Need)
			switch {
			case need == "":
				need = "anything"
			case r.Need == Counting && of == Nodes:
				need += ", and another column is the id"
			}
			fmt.Fprintf(&s, "| %s | %s | %s |\n", r.Why, code(r.Names), need)
		}
		s.WriteString("\n")
	}
	fmt.Fprintf(&s, "### Words for a missing value\n\n| | |\n|---|---|\n| in any column | %s |\n| of a label besides, without regard to case | %s |\n| of a split, without regard to case | %s |\n", code(missingWords), code(unknownWords), code(noPartWords))
	return s.String()
}
