// Package runs reads the record of training runs: it lists, filters and compares runs, and exports one
// to TensorBoard.
//
// # Basics
//
// Every gnb.Train and gnb.Launch returns a [Run] and keeps it in a directory below [Dir]. Any later cell, program or
// terminal reads it from there:
//
//	last  := gnb.Must(runs.Last(ctx))                 // the run that was started last
//	run   := gnb.Must(runs.Open("runs/my-run"))       // by its directory
//	table := gnb.Must(runs.List(ctx, runs.Options{Filter: "model=sage lr<0.01", Sort: "-val_accuracy"}))
//
//	fmt.Println(table)                                // settings that differ, and results
//	fmt.Println(run.Value("test_accuracy"), gnb.Must(run.Losses()))
//	runs.Compare(table...)                            // curves over each other
//	run, err := gnb.Attach(ctx, last)                 // watch it while it trains
//	gnb.Check(runs.Export(ctx, last, runs.ExportOptions{TensorBoard: "tb"}))
//
// # Files
//
// A run's directory holds config.json ([Config]), result.json ([Result]), metrics.jsonl (an [Event] per line), figure.png,
// model.safetensors and best.safetensors ([Run.Weights], [Run.BestWeights]), and checkpoints/. One process trains a run and
// locks its directory; any number of processes may read it meanwhile. JSON files and lines have checksums. A damaged file is
// an error; damaged lines of metrics.jsonl are skipped and counted.
//
// # While a run trains
//
// A run reports typed events, which are the lines of metrics.jsonl and the argument of gnb.LaunchOptions.Events. gnb.Train and
// gnb.Launch turn them into the run's [Result] and the panel in the cell or terminal. gnb.Attach replays the file into the same
// panel.
//
// # Caveats
//
// A variable named runs hides this package in its scope: call lists of runs found, table or all.
package runs
