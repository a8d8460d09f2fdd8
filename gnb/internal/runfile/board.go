package runfile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// BoardSuffix is the suffix of the event files for TensorBoard that runs write.
const BoardSuffix = ".gnb"

// RemoveBoards removes the event files that a run has written into a directory.
func RemoveBoards(dir string) error {
	old, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("looking for what was written for TensorBoard: %w", err)
	}
	for _, e := range old {
		if ours := strings.HasPrefix(e.Name(), "events.out.tfevents.") && strings.HasSuffix(e.Name(), BoardSuffix); !ours {
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
			return fmt.Errorf("replacing what was written for TensorBoard: %w", err)
		}
	}
	return nil
}
