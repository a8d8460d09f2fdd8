package collective_test

import (
	"testing"

	"github.com/graphnb/graphnb/multigpu/collective"
	"github.com/graphnb/graphnb/multigpu/collective/commtest"
)

func TestSingle(t *testing.T) {
	commtest.Run(t, func(t *testing.T, world int) []collective.Comm {
		if world != 1 {
			t.Skip("a single rank")
		}
		return []collective.Comm{collective.NewSingle()}
	})
}
