package collective

// SharesMemory reports whether the ranks of c read one another's writes to a [Matrix] in place, as
// ranks on one machine do. Otherwise each rank has a copy, and to move some rows AllToAll is
// cheaper than a matrix. It is the same on all ranks.
func SharesMemory(c Comm) bool {
	s, ok := c.(interface{ sharesMemory() bool })
	return ok && s.sharesMemory()
}

// AllToAllInto is [Comm.AllToAll] for many calls one after another: the result may be in the memory of
// got, the result of an earlier call of this rank, or nil. It may differ between ranks.
func AllToAllInto(c Comm, s Site, send, got [][]byte) ([][]byte, error) {
	if i, ok := c.(interface {
		allToAllInto(s Site, send, got [][]byte) ([][]byte, error)
	}); ok && len(got) == c.Size() {
		return i.allToAllInto(s, send, got)
	}
	return c.AllToAll(s, send)
}

func (c *single) sharesMemory() bool { return true }
