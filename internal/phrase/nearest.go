package phrase

import "strings"

// Closest returns the names, at most n, whose last part, behind their last dot, has the smallest edit distances to word,
// whatever the case.
func Closest(word string, names []string, n int) (near []string) {
	word = strings.ToLower(word)
	for d := 0; len(near) < min(n, len(names)); d++ {
		for _, name := range names {
			if edits(word, strings.ToLower(name[strings.LastIndexByte(name, '.')+1:])) == d {
				near = append(near, name)
			}
		}
	}
	return near[:min(n, len(near))]
}

// Nearest returns the name that word was probably meant to be: the one with the smallest edit
// distance, at most 2 and less than half of word's length; "" if there is none.
func Nearest(word string, names []string) string {
	best, least := "", min(3, (len(word)+1)/2)
	for _, n := range names {
		if d := edits(word, n); d < least {
			best, least = n, d
		}
	}
	return best
}

// edits returns the Levenshtein distance (1966) of two words, with a swap of neighbours as one edit
// (Damerau 1964).
func edits(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			d := min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, rows[i-2][j-2]+1)
			}
			rows[i][j] = d
		}
	}
	return rows[len(a)][len(b)]
}
