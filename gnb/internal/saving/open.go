package saving

import (
	"errors"

	"github.com/graphnb/graphnb/gnb/runs"
)

// OpenToResume is [runs.Open] for a run that will be resumed. A damaged result is no error, because
// the resumed run writes a new one.
func OpenToResume(dir string) (*runs.Run, error) {
	r, err := runs.Open(dir)
	if _, damaged := errors.AsType[*runs.DamagedResult](err); damaged {
		return r, nil
	}
	return r, err
}
