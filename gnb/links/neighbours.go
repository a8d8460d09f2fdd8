package links

import "github.com/graphnb/graphnb/gnb"

// neighbours are the options of a gnb.Loader in the argument of a program, where a loader with a sampler cannot be,
// because it does not survive JSON.
type neighbours struct {
	Fanouts               []int
	Labor                 *gnb.Labor `json:",omitempty"`
	Batch, BatchPerWorker int
}

// neighboursOf returns the options of a loader that inside.Settings made of o.
func neighboursOf(l gnb.Loader, o gnb.TrainOptions) neighbours {
	n := neighbours{Fanouts: l.Fanouts, Batch: o.Batch, BatchPerWorker: o.BatchPerWorker}
	if labor, ok := l.Sampler.(gnb.Labor); ok {
		n.Labor = &labor
	}
	return n
}

func (n neighbours) loader() gnb.Loader {
	l := gnb.Loader{Fanouts: n.Fanouts, Batch: n.Batch, BatchPerWorker: n.BatchPerWorker}
	if n.Labor != nil {
		l.Fanouts, l.Sampler = nil, *n.Labor
	}
	return l
}
