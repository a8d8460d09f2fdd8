// Package numbers predicts numbers of nodes and of edges: prices, ratings, temperatures, times. A node or an edge has one target
// or several ([dataset.Dataset.Targets], [dataset.Dataset.EdgeAnswers]).
//
// # Basics
//
//	run := gnb.Must(numbers.Train(ctx, ds, numbers.Options{}))
//	fmt.Println(run.Value("test_mae"), "instead of", run.Value("mean_mae"))
//	p := gnb.Must(numbers.Predict(ctx, run, ds, gnb.InferOptions{}))
//	fmt.Println(p.Names, p.Rows.Row(0))
//
// Targets are standardised for the loss by the mean and the deviation of the training split. The run records both, and
// every output and metric has the unit of the targets.
//
// # Edges
//
// If the dataset has numbers of edges ([gnb.Dataset].EdgeAnswers), such as the rating that a user gives a film, Train predicts those:
//
//	ds := gnb.Must(gnb.Load(ctx, "ratings"))
//	run := gnb.Must(numbers.Train(ctx, ds, numbers.Options{}))
//	p := gnb.Must(numbers.PredictEdges(ctx, run, ds, &numbers.Edges{Src: users, Dst: films}, numbers.PredictOptions{}))
//
// The prediction is made of the embeddings of both ends. No prediction of training or evaluation sees the edge itself, a copy or
// its reverse among the messages, unless AllMessages is set.
//
// # Unknown targets
//
// A target that is NaN is unknown. Losses and metrics skip it, and a run says how many rows of a split have none.
//
// # Determinism
//
// Metrics are exact sums, so they have the same bits for every number of workers. Runs with the same workers × virtual
// ranks have the same weights to the bit.
package numbers
