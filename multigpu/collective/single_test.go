package collective_test

import (
	"testing"

	"github.com/graphnb/graphnb/multigpu/collective"
	"github.com/graphnb/graphnb/multigpu/collective/commtest"
)

func TestSingle(t *testing.T) {
	commtest.Run(t, []int{1}, func(*testing.T, int) []collective.Comm {
		return []collective.Comm{collective.NewSingle()}
	})
}
