package gnb

type sweepView struct{}

func newSweepView(*sweep) *sweepView { return &sweepView{} }
func (v *sweepView) update()         {}
func (v *sweepView) close(error)     {}
