package ranks

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
)

// relationFanouts is the flag --relation-fanout.
type relationFanouts struct{ by *map[string][]int }

// RelationFlag makes the flag of fanouts by relation.
func RelationFlag(fs *flag.FlagSet, by *map[string][]int) {
	fs.Var(relationFanouts{by}, "relation-fanout", "fanouts of one relation, repeatable: `cites=15,10`")
}

// String returns the flag's text.
func (f relationFanouts) String() string {
	if f.by == nil {
		return ""
	}
	var all []string
	for name, list := range *f.by {
		all = append(all, name+"="+(&Fanouts{List: list}).String())
	}
	slices.Sort(all)
	return strings.Join(all, ";")
}

// Set adds the fanouts of one relation or, with semicolons between them, of several; "" adds none.
func (f relationFanouts) Set(text string) error {
	if text == "" {
		return nil
	}
	for part := range strings.SplitSeq(text, ";") {
		at := strings.LastIndexByte(part, '=')
		if at <= 0 {
			return errors.New("fanouts of a relation are its name, an equals sign, and a fanout per hop, such as cites=15,10")
		}
		name, list := strings.TrimSpace(part[:at]), Fanouts{}
		if err := list.Set(strings.TrimSpace(part[at+1:])); err != nil {
			return err
		}
		if list.Full {
			list.List = []int{-1}
		}
		if _, twice := (*f.by)[name]; twice {
			return fmt.Errorf("the fanouts of %q are given twice", name)
		}
		if *f.by == nil {
			*f.by = map[string][]int{}
		}
		(*f.by)[name] = list.List
	}
	return nil
}
