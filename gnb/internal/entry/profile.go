package entry

import (
	"fmt"
	"os"
	"runtime/pprof"

	"github.com/graphnb/graphnb/internal/envknob"
)

// Profile starts a CPU profile of this worker if GNB_CPUPROFILE is set, in a file whose name ends
// with the rank.
func Profile(rank int) (stop func(), err error) {
	name := envknob.CPUProfile.Get()
	if name == "" {
		return func() {}, nil
	}
	f, err := os.Create(fmt.Sprintf("%s.%d", name, rank))
	if err != nil {
		return nil, fmt.Errorf("gnb: the CPU profile that %s asks for: %w", envknob.CPUProfile, err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("gnb: the CPU profile that %s asks for: %w", envknob.CPUProfile, err)
	}
	return func() {
		pprof.StopCPUProfile()
		f.Close()
	}, nil
}
