package collective

// SharesMemory reports whether the ranks of c read one another's writes to a [Matrix] in place, as
// ranks on one machine do. Otherwise each rank has a copy, and to move some rows AllToAll is
// cheaper than a matrix. It is the same on all ranks.
func SharesMemory(c Comm) bool {
	s, ok := c.(interface{ sharesMemory() bool })
	return ok && s.sharesMemory()
}

func (c *single) sharesMemory() bool { return true }
