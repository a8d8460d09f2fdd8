// Package predict answers for single nodes from a trained run, in memory: for nodes of a dataset, and for new nodes with
// edges to them. Its cost is that of a node's neighbourhood, never of the graph.
//
// # Basics
//
//	p := gnb.Must(predict.Open(ctx, run, ds, predict.Options{}))
//	defer p.Close()
//	known := gnb.Must(p.Nodes(ctx, "c17", "c18"))
//	fresh := gnb.Must(p.New(ctx, predict.Additions{
//		Nodes: []predict.Node{{ID: "new", Columns: map[string]string{"plan": "pro", "spent": "12"}}},
//		Edges: []predict.Edge{{Source: "c17", Target: "new"}},
//	}))
//	class, probability := fresh.Class(0)
//
// A [Predictor] holds the weights, the mapped graph and working memory. It serves any number of goroutines at the same
// time.
//
// # Determinism
//
// With all neighbours (the default) an answer has the bits of [gnb.Infer], links.Infer, links.Score or numbers.Predict on the
// dataset, or on the dataset with the new rows appended. It depends neither on the other nodes that are asked with it nor on threads. With
// [Options].Fanouts a node that has more in-edges than the fanout takes some of them, drawn by the seed and the node alone:
// the answer is then one of a sampled neighbourhood, and still does not depend on what is asked with it. Where no node has
// more in-edges than the fanout, it has the bits of all neighbours.
//
// # New nodes
//
// The new nodes of one call are appended together, after the dataset's nodes of their type. Their edges are made as the
// dataset's own were: in both directions if the dataset is undirected, with their reverses if its tables were read so; equal
// edges are merged. A known node that gets an edge from a new one has a higher degree and one neighbour more, for this call
// alone. The dataset stays as it is.
//
// [Predictor.Add] keeps nodes and edges in memory, for all later calls.
//
// # Rows computed beforehand
//
// With [Options].Precompute the rows of a layer of all nodes are computed once, and again where additions change them. No answer for
// known nodes changes a bit; [Predictor.Top] ranks all nodes by rows of the last layer.
//
// # Caveats
//
// A dataset in parts must have all of them on this machine or at servers; from servers, Open copies the edges, and calls ask for features.
// Nodes then have no ids but their numbers. Computing is on the CPU.
package predict
