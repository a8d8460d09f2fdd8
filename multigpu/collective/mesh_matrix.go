package collective

import (
	"encoding/binary"
	"fmt"
	"io"
)

func (c *mesh) NewMatrix(s Site, rows, cols int) (Matrix, error) {
	if err := checkSizes("a matrix", s, rows, cols); err != nil {
		return nil, err
	}
	m := &meshMatrix{comm: c}
	if _, err := c.run(s, call{op: opNewMatrix, n: rows, aux: cols, finish: func() (err error) {
		m.Matrix, err = c.local.NewMatrix(within, rows, cols)
		return err
	}}); err != nil {
		return nil, err
	}
	return m, nil
}

var _ Matrix = (*meshMatrix)(nil)

// meshMatrix is the copy of a matrix that the ranks of a machine share.
type meshMatrix struct {
	Matrix
	comm *mesh
}

// Publish sends each machine the ranges of this machine's ranks, two u64 for each rank, and then
// the rows.
func (m *meshMatrix) Publish(s Site, lo, hi int) error {
	if err := checkRows(s, lo, hi, m.Rows()); err != nil {
		return err
	}
	if m.Data() == nil {
		return releasedError("publishing a matrix", s)
	}
	mine := binary.LittleEndian.AppendUint64(nil, uint64(lo))
	mine = binary.LittleEndian.AppendUint64(mine, uint64(hi))
	_, err := m.comm.run(s, call{
		op: opPublish, n: m.Rows(), aux: m.Cols(), mine: mine,
		body: func(given [][]byte, _ int) [][]byte {
			ranges := joined(given)
			body := [][]byte{ranges}
			for ; len(ranges) > 0; ranges = ranges[16:] {
				body = append(body, m.rows(binary.LittleEndian.Uint64(ranges), binary.LittleEndian.Uint64(ranges[8:])))
			}
			return body
		},
		take: m.take,
	})
	return err
}

func (m *meshMatrix) rows(lo, hi uint64) []byte {
	cols := uint64(m.Cols())
	return float32Bytes(m.Data()[lo*cols : hi*cols])
}

// take reads the rows that the ranks of machine from wrote into this machine's copy.
func (m *meshMatrix) take(from int, size uint64, body io.Reader) error {
	ranges := make([]byte, 16*m.comm.count(from))
	if _, err := io.ReadFull(body, ranges); err != nil {
		return err
	}
	for ; len(ranges) > 0; ranges = ranges[16:] {
		lo, hi := binary.LittleEndian.Uint64(ranges), binary.LittleEndian.Uint64(ranges[8:])
		if lo > hi || hi > uint64(m.Rows()) {
			return fmt.Errorf("it sent rows %d to %d of a matrix of %d rows", lo, hi, m.Rows())
		}
		if _, err := io.ReadFull(body, m.rows(lo, hi)); err != nil {
			return err
		}
	}
	return nil
}
