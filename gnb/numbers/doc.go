// Package numbers predicts numbers of nodes: prices, ratings, temperatures, times. A node has one target or several
// ([dataset.Dataset.Targets]).
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
// # Unknown targets
//
// A target that is NaN is unknown. Losses and metrics skip it, and a run says how many nodes of a split have none.
//
// # Determinism
//
// Metrics are exact sums, so they have the same bits for every number of workers. Runs with the same workers × virtual
// ranks have the same weights to the bit.
package numbers
