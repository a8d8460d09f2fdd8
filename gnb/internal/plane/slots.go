package plane

// chunkRows is the number of slots whose memory is made at once.
const chunkRows = 1 << 10

// slots is memory for rows.
type slots struct {
	rowBytes int
	chunks   [][]byte // the rows of chunkRows slots each
	free     []int32  // slots without a row
	whole    []byte   // the memory that split was given
}

// split makes slots of memory, which have no free ones.
func (s *slots) split(memory []byte) {
	s.whole = memory
	chunk := chunkRows * s.rowBytes
	for ; len(memory) > 0; memory = memory[min(chunk, len(memory)):] {
		s.chunks = append(s.chunks, memory[:min(chunk, len(memory))])
	}
}

// take returns a slot without a row.
func (s *slots) take() int32 {
	if len(s.free) == 0 {
		s.add(make([]byte, chunkRows*s.rowBytes))
	}
	at := s.free[len(s.free)-1]
	s.free = s.free[:len(s.free)-1]
	return at
}

// add adds the memory of chunkRows slots, which are free.
func (s *slots) add(memory []byte) {
	first := int32(len(s.chunks) * chunkRows)
	s.chunks = append(s.chunks, memory)
	for at := first + chunkRows - 1; at >= first; at-- {
		s.free = append(s.free, at)
	}
}

// reach makes memory for the slots up to at.
func (s *slots) reach(at int32) {
	for int(at)/chunkRows >= len(s.chunks) {
		s.chunks = append(s.chunks, make([]byte, chunkRows*s.rowBytes))
	}
}

// row is the memory of a slot, in chunks as they were when the slot had been taken.
func (s *slots) row(chunks [][]byte, at int32) []byte {
	from := int(at%chunkRows) * s.rowBytes
	return chunks[at/chunkRows][from : from+s.rowBytes]
}
