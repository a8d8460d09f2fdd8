package gnb

import (
	"github.com/graphnb/graphnb/multigpu/collective"
)

// firstFinding returns the finding of the lowest rank that has one, and that rank; "" and rank 0 if none has. Collective.
func firstFinding(c collective.Comm, s collective.Site, found string) (rank int, what string, err error) {
	if c.Size() == 1 {
		return 0, found, nil
	}
	all, err := c.AllGather(s, []byte(found))
	for r, text := range all {
		if len(text) > 0 {
			return r, string(text), err
		}
	}
	return 0, "", err
}

// onAnyRank reports whether bad is set on a rank. Collective.
func onAnyRank(c collective.Comm, s collective.Site, bad bool) (bool, error) {
	sum := []int64{0}
	if bad {
		sum[0] = 1
	}
	err := c.SumInt64(s, sum)
	return sum[0] > 0, err
}

// agree forgets the finding if another rank has one in a lower layer, which is its cause. Collective.
func (s *rowSearch) agree(c collective.Comm, site collective.Site) error {
	all := make([]int64, c.Size()) // 0 for a rank without a finding, else its layer plus 1
	if s.found != "" {
		all[c.Rank()] = int64(s.at) + 1
	}
	if err := c.SumInt64(site, all); err != nil {
		return err
	}
	for _, at := range all {
		if at > 0 && int64(s.at) > at-1 {
			s.found = ""
		}
	}
	return nil
}
