package convert

import (
	"bufio"
	"bytes"
	"fmt"
	"strconv"

	"github.com/graphnb/graphnb/internal/atomicfile"
)

// testIndex reads the node of each row of tx: distinct ids from first on and below n. The last node
// must be among them, because no other file shows that it exists.
func (r *reader) testIndex(first, n int) (ids []int32, err error) {
	const part = "test.index"
	f, err := atomicfile.Open(r.path(part))
	if err != nil {
		return nil, fmt.Errorf("planetoid: %w", err)
	}
	defer f.Close()
	seen := make([]bool, n)
	last := first - 1
	lines := bufio.NewScanner(f)
	lines.Buffer(make([]byte, 0, 4<<10), 4<<10)
	line := 0
	for lines.Scan() {
		line++
		text := bytes.TrimSpace(lines.Bytes())
		if len(text) == 0 {
			continue
		}
		id, err := strconv.ParseInt(string(text[:min(len(text), 40)]), 10, 64)
		switch {
		case err != nil:
			return nil, r.wrong(part, "line %d is %.40q, not the number of a node", line, text)
		case id < int64(first) || id >= int64(n):
			return nil, r.wrong(part, "line %d is %d; the test nodes lie in %d to %d, after those of ind.%s.allx", line, id, first, n-1, r.name)
		case seen[id]:
			return nil, r.wrong(part, "line %d is %d, which was listed before", line, id)
		}
		seen[id] = true
		last = max(last, int(id))
		ids = append(ids, int32(id))
	}
	if err := lines.Err(); err != nil {
		return nil, r.wrong(part, "line %d: %w", line+1, err)
	}
	if last != n-1 {
		return nil, r.wrong(part, "the last node is %d, but ind.%s.graph has the nodes 0 to %d", last, r.name, n-1)
	}
	return ids, nil
}
