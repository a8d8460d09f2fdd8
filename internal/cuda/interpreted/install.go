//go:build cuda && linux && cgo && gnb_interpreted

package interpreted

import (
	"github.com/graphnb/graphnb/internal/cuda/internal/fakegpu"
	"github.com/graphnb/graphnb/internal/envknob"
)

// Only workers open devices, and the ranks of a launcher, which gpucheck names in a variable.
func init() {
	if envknob.Worker.Get() != "" || envknob.Launcher.Get() != "" {
		fakegpu.Install(fakegpu.Config{Memory: 2 << 30, Schedule: fakegpu.Eager, NoRaces: true})
	}
}
