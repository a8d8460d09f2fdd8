package nn

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Params are all parameters of a model, as found by [Collect]. Their weights are in one flat
// buffer, and so are their gradients: optimisers step over these buffers, ranks sum them in one
// call, and checkpoints store them. Fixed parameters, such as the running statistics of a
// [BatchNorm], are in a separate buffer and come last in lists.
//
// No method may be called during a pass over the model.
type Params struct {
	list    []*Entry
	byParam map[*Param]*Entry
	aliases []alias
	resets  []Resetter
	trained int // number of entries that are trained; the others are fixed
	flat    []float32
	grad    []float32
	fixed   []float32
}

// Entry is one parameter of a model, with its shape in files.
type Entry struct {
	*Param
	shape   []int
	goPath  string
	ordinal int
}

// Shape is the parameter's shape in files, as in PyTorch: [n] for a field tagged vector, such as a
// bias, else [Rows, Cols].
func (e *Entry) Shape() []int { return slices.Clone(e.shape) }

func newParams(c *collector) (*Params, error) {
	p := &Params{
		list: append(slices.Clone(c.list), c.fixed...), trained: len(c.list),
		byParam: c.entries, aliases: c.aliases, resets: c.resets,
	}
	p.flat, p.fixed = flatten(c.list), flatten(c.fixed)
	for _, e := range c.fixed {
		e.G = nil
	}
	p.SetGrad(make([]float32, len(p.flat)))
	return p, nil
}

// flatten moves the parameters' values into one buffer.
func flatten(list []*Entry) []float32 {
	n := 0
	for _, e := range list {
		n += e.Rows * e.Cols
	}
	flat := make([]float32, n)
	at := 0
	for _, e := range list {
		end := at + e.Rows*e.Cols
		w := flat[at:end:end]
		copy(w, e.W)
		e.W = w
		at = end
	}
	return flat
}

// Len is the number of trained weights.
func (p *Params) Len() int { return len(p.flat) }

// List returns the parameters in the order of the flat buffer, fixed ones last.
func (p *Params) List() []*Entry { return slices.Clone(p.list) }

// Names returns the parameters' names in the order of List.
func (p *Params) Names() []string {
	names := make([]string, len(p.list))
	for i, e := range p.list {
		names[i] = e.Name
	}
	return names
}

// Trained returns the names of the parameters in the flat buffer, in its order, and their numbers of elements.
func (p *Params) Trained() (names []string, sizes []int) {
	for _, e := range p.list[:p.trained] {
		names, sizes = append(names, e.Name), append(sizes, e.Rows*e.Cols)
	}
	return names, sizes
}

// Get returns the parameter of that name, or nil.
func (p *Params) Get(name string) *Param {
	for _, e := range p.list {
		if e.Name == name {
			return e.Param
		}
	}
	return nil
}

// Flat returns the weights [Len] of all trained parameters: the memory itself.
func (p *Params) Flat() []float32 { return p.flat }

// Fixed returns the values of all parameters that are not trained: the memory itself. A forward
// pass may change them (see [BatchNorm]), so they may differ between ranks.
func (p *Params) Fixed() []float32 { return p.fixed }

// Grad returns the gradients [Len] of all trained parameters: the memory itself, which is the
// buffer of the last [Params.SetGrad], or else memory of the Params.
func (p *Params) Grad() []float32 { return p.grad }

// SetGrad makes buf [Len] the memory to which backward passes add gradients: each Param's G becomes
// a view of it. It does not clear buf. A nil buf turns gradients off.
func (p *Params) SetGrad(buf []float32) {
	if buf != nil && len(buf) != len(p.flat) {
		fail("SetGrad", "the model has %d weights but the buffer has %d elements", len(p.flat), len(buf))
	}
	p.grad = buf
	at := 0
	for _, e := range p.list[:p.trained] {
		end := at + e.Rows*e.Cols
		e.G = nil
		if buf != nil {
			e.G = buf[at:end:end]
		}
		at = end
	}
}

// ZeroGrad clears the gradients.
func (p *Params) ZeroGrad() { clear(p.grad) }

// Value is the content of a parameter, separate from the model.
type Value struct {
	Shape []int
	Data  []float32 // row-major
}

// Values returns every parameter by name. Data is the model's own memory: copy it to keep it.
func (p *Params) Values() map[string]Value {
	m := make(map[string]Value, len(p.list))
	for _, e := range p.list {
		m[e.Name] = Value{e.Shape(), e.W}
	}
	return m
}

// Load sets every parameter. Names and shapes must be exactly the model's; a parameter that the
// model reaches by several paths may be given under several names, if the values are equal. If they
// differ, the error lists missing, unexpected and misshapen parameters, and nothing is changed.
func (p *Params) Load(values map[string]Value) error {
	var missing, unexpected, misfit []string
	want := map[string]*Entry{}
	for _, e := range p.list {
		want[e.Name] = e
		switch v, ok := values[e.Name]; {
		case !ok:
			missing = append(missing, e.Name)
		case !slices.Equal(v.Shape, e.shape):
			misfit = append(misfit, fmt.Sprintf("%s is %s and the model's is %s", e.Name, shapeString(v.Shape), shapeString(e.shape)))
		case len(v.Data) != len(e.W):
			misfit = append(misfit, fmt.Sprintf("%s has %d elements, but its shape is %s", e.Name, len(v.Data), shapeString(v.Shape)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if want[name] != nil {
			continue
		}
		first := p.unalias(name)
		if want[first] == nil {
			unexpected = append(unexpected, name)
		} else if !slices.Equal(values[name].Data, values[first].Data) {
			misfit = append(misfit, fmt.Sprintf("%s and %s are the same parameter of the model but have different values", first, name))
		}
	}
	var wrong []string
	for _, w := range []struct {
		what string
		list []string
	}{{"missing: ", missing}, {"unexpected: ", unexpected}, {"", misfit}} {
		if len(w.list) > 0 {
			wrong = append(wrong, w.what+firstFew(w.list))
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("nn: the weights do not fit the model: %s; create the model with the options with which they were saved", strings.Join(wrong, "; "))
	}
	for _, e := range p.list {
		copy(e.W, values[e.Name].Data)
	}
	return nil
}

// unalias returns the first name of a parameter with several names.
func (p *Params) unalias(name string) string {
	for range len(p.aliases) + 1 { // one alias may lead to another
		before := name
		for _, a := range p.aliases {
			if name == a.from {
				name = a.to
			} else if rest, ok := strings.CutPrefix(name, a.from+"."); ok {
				name = strings.TrimPrefix(a.to+"."+rest, ".")
			}
		}
		if name == before {
			break
		}
	}
	return name
}

func firstFew(s []string) string {
	const most = 6
	if len(s) <= most {
		return strings.Join(s, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(s[:most], ", "), len(s)-most)
}

func shapeString(shape []int) string {
	s := make([]string, len(shape))
	for i, d := range shape {
		s[i] = strconv.Itoa(d)
	}
	return "[" + strings.Join(s, ", ") + "]"
}

// String returns a table of the parameters with their shapes and sizes, and the total.
func (p *Params) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	row := func(name, shape string, n int) { _, _ = fmt.Fprintf(w, "%s\t%s\t%d\n", name, shape, n) }
	_, _ = fmt.Fprintln(w, "parameter\tshape\tweights")
	for _, e := range p.list {
		row(e.Name, shapeString(e.shape), len(e.W))
	}
	row("total", "", len(p.flat)+len(p.fixed))
	_ = w.Flush()
	return strings.TrimRight(b.String(), "\n")
}
