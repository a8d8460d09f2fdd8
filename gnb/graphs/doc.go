// Package graphs predicts what is true of whole graphs: the class of a protein, the solubility of a molecule. Its datasets hold
// many graphs ([gnb.Dataset].Graphs), from a few to millions.
//
// # Basics
//
//	ds := gnb.Must(gnb.Load("molecules"))
//	run, err := graphs.Train(ctx, ds, graphs.Options{Model: gnb.GIN, Pool: "sum"})
//	answers, err := graphs.Infer(ctx, run, ds, graphs.InferOptions{})
//	fmt.Println(run, answers.Class(0))
//
// A network computes rows of nodes by a model of package gnb, pools those of each graph to one row, and makes the answer of it
// by a perceptron of two layers. What is predicted are the labels of graphs (one class, or several labels) or their targets
// (numbers), which are learned as package numbers learns those of nodes.
//
// # Batches
//
// A batch is the disjoint union of its graphs, as they are: nothing is sampled, and one block of edges serves all layers. The
// graphs of a step are cut into shares of about equally many nodes, one for each worker or virtual rank.
//
// # Determinism
//
// The order of graphs depends on the seed and the epoch alone, and their shares on workers × virtual ranks. Runs with the same
// product have the same weights to the bit. The outputs for a graph do not depend on its batch or on workers, except that
// those of a batch norm in training do.
package graphs
