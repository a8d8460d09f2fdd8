package columns

import "strings"

// TripleColumns returns what the columns of a file of triples are, if a line names them: a head, a relation and a tail
// in any order, and maybe a score.
func TripleColumns(line []string) ([]Kind, bool) {
	kinds := make([]Kind, len(line))
	seen := map[Kind]bool{}
	for i, field := range line {
		for r := range Rules {
			rule := &Rules[r]
			if rule.Of != Triples || seen[rule.Kind] {
				continue
			}
			if _, _, ok := rule.match(Key(strings.TrimSpace(field))); ok {
				kinds[i], seen[rule.Kind] = rule.Kind, true
				break
			}
		}
		if kinds[i] == "" {
			return nil, false
		}
	}
	return kinds, seen[Source] && seen[Relation] && seen[Target]
}
