//go:build race

package multigpu

func init() { raceDetector = true }
