package dataset

// Multi holds the targets of nodes that can belong to several classes: a [Rows, Cols] matrix,
// row-major, of 1 (the node belongs to the class), 0 (it does not) and -1 (unknown).
type Multi struct {
	Rows, Cols int
	Data       []int8 // [Rows·Cols]
}

// Row returns the targets of node i, in the matrix's own memory.
func (m *Multi) Row(i int) []int8 { return m.Data[i*m.Cols : (i+1)*m.Cols : (i+1)*m.Cols] }
