package columns

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// ErrFractions is the error of labels that are numbers with fractions.
var ErrFractions = errors.New("it is the label and has numbers with fractions, and a label is a class; numbers are targets, which tables have (--format tables --kinds COLUMN=target), or make classes of them, such as ranges")

// ErrMinusOne is the error of labels that are -1 and one other value.
var ErrMinusOne = errors.New("its labels are -1 and one other value, and -1 usually means unknown: --present -1 makes it a class")

// ManyClassesError is the error of labels with more classes than nodes can teach.
type ManyClassesError struct{ Classes, Labels int64 }

func (e *ManyClassesError) Error() string {
	return fmt.Sprintf("its %d labels make %d classes, so it has something other than classes, such as amounts or names; amounts are targets, which tables have (--format tables --kinds COLUMN=target), or make classes of them, such as ranges, or say --many-classes if they are classes", e.Labels, e.Classes)
}

// The share of classes that is refused: over fewClasses, with fewer than perClass labels each on average.
const (
	fewClasses = 50
	perClass   = 10
)

// CheckClasses returns a [ManyClassesError] if there are too many classes for the number of known labels.
func CheckClasses(classes, labels int64) error {
	if classes > fewClasses && classes > labels/perClass {
		return &ManyClassesError{classes, labels}
	}
	return nil
}

// LabelWord returns the word for a label: a whole number has no decimal point, so 1.0 is 1.
func LabelWord(s string) string {
	if x, ok := plain(s); ok && x == math.Trunc(x) && math.Abs(x) < 1<<53 {
		return strconv.FormatInt(int64(x), 10)
	}
	return s
}

// Classes orders different label words, as [LabelWord] returns them: by number if all are whole numbers, and otherwise
// by letters. place is the class of each word. numbered says that the words are the numbers of their classes.
func Classes(words []string) (names []string, place []int32, numbered bool, err error) {
	numbers := make([]float64, len(words))
	whole, fractions := true, false
	for i, w := range words {
		x, ok := plain(w)
		numbers[i] = x
		whole, fractions = whole && ok, fractions || ok && x != math.Trunc(x)
	}
	if whole && fractions {
		return nil, nil, false, ErrFractions
	}
	order := make([]int32, len(words))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		if whole {
			return cmp.Or(cmp.Compare(numbers[a], numbers[b]), strings.Compare(words[a], words[b]))
		}
		return strings.Compare(words[a], words[b])
	})
	place = make([]int32, len(words))
	for c, i := range order {
		place[i] = int32(c)
		names = append(names, words[i])
	}
	numbered = whole && len(names) > 0 && names[0] == "0" && names[len(names)-1] == strconv.Itoa(len(names)-1)
	return names, place, numbered, nil
}
