//go:build !linux

package dataset

import (
	"fmt"
	"os"
)

// packFD returns an error: files in memory need Linux.
func (d *Dataset) packFD() (*os.File, error) {
	return nil, fmt.Errorf("dataset: packing %s: files in memory need Linux; on this system a run has one worker, in this process", d.Name())
}

func duplicate(f *os.File) (*os.File, error) { return f, nil } // there are no such files to duplicate
