package cuda

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
)

// kernel is a function of a module.
type kernel struct {
	name     string
	mod      *module
	params   []paramType
	launches atomic.Int64

	// The fields below belong to the device's goroutine once the device is open.
	fn     handle
	shared int // dynamic shared memory that the kernel is allowed so far
}

// module is PTX. It is compiled for the device when the device is opened, or when one of its
// kernels is first launched.
type module struct {
	name, ptx string
	h         handle
}

// paramType is the type of a parameter in PTX, .u64 or .f32.
type paramType string

// registry holds the kernels of all modules by name.
type registry struct {
	mu      sync.RWMutex
	modules []*module
	byName  map[string]*kernel
}

func (k *registry) init() { k.byName = map[string]*kernel{} }

// AddModule adds the kernels of PTX, by their names, to those of package internal/cuda/kernels. The module
// is compiled when one of its kernels is first launched. name identifies it in errors.
func (d *Device) AddModule(name, ptx string) error {
	entries, err := parseEntries(ptx)
	if err != nil {
		return fmt.Errorf("cuda: module %s: %w", name, err)
	}
	k := &d.kernels
	k.mu.Lock()
	defer k.mu.Unlock()
	m := &module{name: name, ptx: ptx}
	for _, e := range entries {
		if other := k.byName[e.name]; other != nil {
			return fmt.Errorf("cuda: module %s: kernel %s is in module %s already", name, e.name, other.mod.name)
		}
		if len(e.params) > maxArgs {
			return fmt.Errorf("cuda: module %s: kernel %s has %d parameters, more than %d", name, e.name, len(e.params), maxArgs)
		}
	}
	for _, e := range entries {
		k.byName[e.name] = &kernel{name: e.name, mod: m, params: e.params}
	}
	k.modules = append(k.modules, m)
	return nil
}

// entry is the declaration of a kernel in PTX.
type entry struct {
	name   string
	params []paramType
}

// parseEntries returns the kernels of PTX and the types of their parameters.
func parseEntries(ptx string) ([]entry, error) {
	const mark = ".entry "
	var all []entry
	for rest := ptx; ; {
		i := strings.Index(rest, mark)
		if i < 0 {
			break
		}
		rest = rest[i+len(mark):]
		name, after, ok := strings.Cut(rest, "(")
		list, _, ok2 := strings.Cut(after, ")")
		if !ok || !ok2 {
			return nil, errors.New("a kernel's list of parameters does not end")
		}
		e := entry{name: strings.TrimSpace(name)}
		for p := range strings.SplitSeq(list, ",") {
			if f := strings.Fields(p); len(f) >= 3 && f[0] == ".param" {
				e.params = append(e.params, paramType(f[1]))
			} else if len(f) > 0 {
				return nil, fmt.Errorf("kernel %s: parameter %q is not understood", e.name, strings.TrimSpace(p))
			}
		}
		all = append(all, e)
	}
	if len(all) == 0 {
		return nil, errors.New("no kernels in it")
	}
	return all, nil
}

// Launch is Compute.Launch.
func (d *Device) Launch(kernel string, grid, block Dim, shared int, args ...any) {
	d.Compute.Launch(kernel, grid, block, shared, args...)
}

// Launch runs a kernel by its name in the source. shared is the dynamic shared memory in bytes per
// block. The arguments are of type Ptr, *Buffer, int, int32, int64, uint32, uint64, float32 or
// float64; their number and their types must match the kernel's parameters, otherwise the device
// fails before the kernel runs. A grid with an X of 0 launches nothing. Launch allocates nothing.
func (s *Stream) Launch(name string, grid, block Dim, shared int, args ...any) {
	d := s.d
	if d.failed.Load() != nil {
		return
	}
	d.kernels.mu.RLock()
	k := d.kernels.byName[name]
	d.kernels.mu.RUnlock()
	if k == nil {
		s.refuse(name, NotFound, "there is no kernel with that name")
		return
	}
	if len(args) != len(k.params) {
		s.refuse(name, InvalidValue, fmt.Sprintf("%d arguments given, but it has %d parameters", len(args), len(k.params)))
		return
	}
	var bits [maxArgs]uint64
	for i, a := range args {
		v, ok := argument(a, k.params[i])
		if !ok {
			s.refuse(name, InvalidValue, fmt.Sprintf("argument %d does not fit its type %s", i, k.params[i]))
			return
		}
		bits[i] = v
	}
	if grid.X == 0 {
		return
	}
	s.asked.Add(1)
	if d.trace != nil {
		d.trace.line("launch %s %s", s.Name, name)
	}
	n := len(args)
	s.put(func(c *command) {
		c.kind, c.stream, c.kernel = doLaunch, s, k
		c.grid, c.block, c.shared = grid.filled(), block.filled(), shared
		c.nargs = n
		copy(c.args[:n], bits[:n])
	})
}

func (s *Stream) refuse(kernel string, cause error, detail string) {
	e := s.d.fault("launching", cause, detail)
	e.Kernel = kernel
	s.d.fail(e)
}

// Launches returns how often each kernel has been launched, by name; kernels never launched are
// absent.
func (d *Device) Launches() map[string]int64 {
	d.kernels.mu.RLock()
	defer d.kernels.mu.RUnlock()
	counts := map[string]int64{}
	for name, k := range d.kernels.byName {
		if n := k.launches.Load(); n > 0 {
			counts[name] = n
		}
	}
	return counts
}

// HasKernel reports whether a kernel with that name exists.
func (d *Device) HasKernel(name string) bool {
	d.kernels.mu.RLock()
	defer d.kernels.mu.RUnlock()
	return d.kernels.byName[name] != nil
}

// load loads all modules in parallel, before the device has other work. The driver compiles each
// module on the calling thread, which takes seconds in all if its cache does not have them. To
// place a kernel, it may wait for running work, such as a collective that waits for this rank.
func (ks *registry) load(d *Device) error {
	errs := make([]error, len(ks.modules))
	var g sync.WaitGroup
	for i, m := range ks.modules {
		g.Go(func() { errs[i] = ks.loadModule(d, m) })
	}
	g.Wait()
	for _, err := range errs {
		if err != nil {
			return err // the other errors have the same cause
		}
	}
	return nil
}

func (ks *registry) loadModule(d *Device, m *module) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := d.drv.current(d.ctx); err != nil {
		return d.fault("making its context current", err, "")
	}
	if err := m.load(d); err != nil {
		return err
	}
	for _, k := range ks.byName {
		if k.mod != m {
			continue
		}
		if err := k.load(d); err != nil {
			return d.fault("loading the kernel "+k.name, err, "")
		}
	}
	return nil
}

// load makes the driver compile the module, unless it has done so.
func (m *module) load(d *Device) error {
	if m.h != 0 {
		return nil
	}
	h, log, err := d.drv.load(m.ptx)
	if err != nil {
		if log = strings.Join(strings.Fields(log), " "); log == "" { // one line of the compiler's messages
			log = "an update of the driver may help"
		}
		return d.fault("compiling the kernels of "+m.name, err, log)
	}
	m.h = h
	return nil
}

// load looks up the kernel in its loaded module, unless it has been looked up.
func (k *kernel) load(d *Device) (err error) {
	if k.fn == 0 {
		k.fn, err = d.drv.function(k.mod.h, k.name)
	}
	return err
}

// ready loads a kernel of another package than internal/cuda/kernels, and allows a kernel its shared memory.
// It runs on the device's goroutine.
func (ks *registry) ready(d *Device, k *kernel, shared int) error {
	if err := k.mod.load(d); err != nil {
		return err
	}
	if err := k.load(d); err != nil {
		return err
	}
	const always = 48 << 10 // the limit without opting in
	if shared > always && shared > k.shared {
		if err := d.drv.maxShared(k.fn, shared); err != nil {
			return err
		}
		k.shared = shared
	}
	return nil
}

func (ks *registry) release(drv driver) error {
	var first error
	for _, m := range ks.modules {
		if m.h != 0 {
			if err := drv.unload(m.h); err != nil && first == nil {
				first = err
			}
			m.h = 0
		}
	}
	return first
}
