package columns

// Numbers returns how many of the texts are numbers in a notation, and how many of these are not whole.
func (p *Profile) Numbers(n Notation) (count, fractions int64) {
	for k, of := range notations {
		if of == n {
			return p.writing.by[k], p.writing.fractions[k]
		}
	}
	return 0, 0
}
