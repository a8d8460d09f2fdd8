package gnb

import (
	"fmt"
	"os"
	"runtime/pprof"
)

// envProfile names where workers write CPU profiles: worker r of a run to that
// name followed by ".r". go tool pprof reads them.
const envProfile = "GNB_CPUPROFILE"

// profile begins a CPU profile of this worker where the environment asks for one.
func profile(rank int) (stop func(), err error) {
	name := os.Getenv(envProfile)
	if name == "" {
		return func() {}, nil
	}
	f, err := os.Create(fmt.Sprintf("%s.%d", name, rank))
	if err != nil {
		return nil, fmt.Errorf("gnb: the CPU profile that %s asks for: %w", envProfile, err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("gnb: the CPU profile that %s asks for: %w", envProfile, err)
	}
	return func() {
		pprof.StopCPUProfile()
		f.Close()
	}, nil
}
