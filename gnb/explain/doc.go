// Package explain says why a trained network answers as it does for a node, a pair of nodes or a whole graph: which columns, which
// neighbours and which edges the answer rests on.
//
// # Basics
//
//	ds := gnb.Must(gnb.Load(ctx, "karate"))
//	run := gnb.Must(runs.Last(ctx))
//	fmt.Println(gnb.Must(explain.Node(ctx, run, ds, "5", explain.Options{})))
//
// The scores of features and edges say how much of the explained output is theirs. In a cell, Node draws them. For many
// nodes of one run, open a predict.Predictor and call [With]. [Pair] explains the score of a run that predicts links, and [Graph] the
// answer of a run of whole graphs. [Table] writes scores for other programs, and [Sample] explains a split in a report.
//
// # Columns of tables
//
// For a dataset of tables (package tables), [Explanation].Raw has the columns of the tables with their raw values: their scores are sums
// over the features that a column became. Where features do not tell the value, as of hashed texts, it says so.
//
// # Methods
//
// [Gradients], the default, are integrated gradients: scores of features add up to the output less that of features which are all 0, and
// scores of edges to the output less that without messages. [GradientInput] is the gradient times the input: one pass, and exact for
// linear networks. [LeaveOut] is the difference that each edge, and each column of the node, makes alone. [Mask] learns masks of edges
// and features that keep the answer with few of them (GNNExplainer).
//
// # What to believe
//
// An explanation is of the network, not of the world. Each comes with its fidelity: what the probability or number becomes without the
// edges with the highest scores, with nothing but them, and the same for as many edges drawn at random. If the random ones do as much, the
// explanation says nothing.
//
// # Cost
//
// Only the neighbourhood of the node is touched, as many hops as the network has layers, with all in-edges. predict.Options bounds it
// (MaxEdges).
package explain
