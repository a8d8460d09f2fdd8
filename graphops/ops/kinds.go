package ops

// Kinds are the types of a block's edges, for [Backend.SpMMTyped]: edge e, counted from 0, has type
// Types[e], which is below N, and is multiplied by Shares [E] (no elements: 1 for each).
type Kinds struct {
	Types  []uint16
	N      int
	Shares Buffer
}
