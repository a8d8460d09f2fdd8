package gnb

import "github.com/graphnb/graphnb/multigpu/collective"

// layerMatrices keeps the matrices of layer-wise evaluations for the next one. A new matrix costs one page fault per 4 KiB: for
// a small graph more time than the evaluation itself, for a graph of 169,343 nodes half as much. The zero value is empty.
type layerMatrices struct{ kept []keptMatrix }

type keptMatrix struct {
	collective.Matrix
	layer int
}

// Release keeps the memory.
func (keptMatrix) Release() {}

// keptMatrixBytes bounds the total size of the kept matrices, in memory that all ranks share.
const keptMatrixBytes = 512 << 20

// get returns memory for the output rows of all nodes for a layer. All ranks request the same
// sizes, so all ranks keep the same matrices. Collective.
func (m *layerMatrices) get(c collective.Comm, site collective.Site, layer, rows, cols int) (collective.Matrix, error) {
	bytes := 4 * rows * cols
	for _, k := range m.kept {
		if k.layer == layer && k.Cols() == cols {
			return k, nil
		}
		bytes += 4 * rows * k.Cols()
	}
	x, err := c.NewMatrix(site, rows, cols)
	if err != nil || bytes > keptMatrixBytes {
		return x, err
	}
	k := keptMatrix{x, layer}
	m.kept = append(m.kept, k)
	return k, nil
}
