package entry

import (
	"flag"
	"os"
	"strings"
	"sync/atomic"

	"github.com/graphnb/graphnb/multigpu"
)

// jobFlag is the flag that makes this program a rank of a job: its value is the file of the job.
const jobFlag = "gnb.job"

// jobs runs the job of this process.
var jobs struct {
	file    string
	run     func(file string) (status int)
	entered atomic.Bool
}

// JobArg is the argument that makes this program run the job in a file.
func JobArg(file string) string { return "-" + jobFlag + "=" + file }

// HandleJob sets the function that runs a job, from an init function. If the first argument of this
// process is [JobArg], then parsing the flags, or the first call of this module, runs the job and
// ends the process, so that no statement of main runs. On ranks above 0 of a launcher the process
// serves rank 0 instead.
func HandleJob(run func(file string) (status int)) {
	if multigpu.InWorker() || len(os.Args) < 2 {
		return
	}
	file, ok := strings.CutPrefix(os.Args[1], JobArg(""))
	if !ok {
		return
	}
	jobs.file, jobs.run = file, run
	flag.Func(jobFlag, "the file of the job of which this process is a rank (set by its batch script)", func(string) error {
		Enter()
		return nil
	})
}

// enterJob runs the job of this process, if there is one that does not run yet.
func enterJob() {
	if jobs.run != nil && !jobs.entered.Swap(true) {
		os.Exit(jobs.run(jobs.file))
	}
}
