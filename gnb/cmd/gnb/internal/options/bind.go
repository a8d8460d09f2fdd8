package options

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/ranks"
	"github.com/graphnb/graphnb/graphops/optim"
)

// Bind makes a flag of each field of a struct of options, and of structs within it, that has the tag flag: its name. The tag
// help describes it, with what the flag takes in angle brackets; least:"1" refuses 0, which in options means the default, and
// nonzero does so with a reason of its own; positive:"true" refuses numbers below 0 too. Names in but get no flag.
func Bind(fs *flag.FlagSet, options any, but ...string) {
	each(reflect.ValueOf(options).Elem(), func(tag reflect.StructTag, field reflect.Value) {
		name := tag.Get("flag")
		if slices.Contains(but, name) {
			return
		}
		help := strings.NewReplacer("<", "`", ">", "`").Replace(tag.Get("help"))
		define(fs, name, help, field.Addr().Interface())
		switch f := fs.Lookup(name); {
		case tag.Get("least") == "1":
			f.Value = notZero{f.Value, "it must be at least 1", false}
		case tag.Get("positive") != "":
			f.Value = notZero{f.Value, "it is a number above 0", true}
		case tag.Get("nonzero") != "":
			f.Value = notZero{f.Value, tag.Get("nonzero"), false}
		}
	})
}

// Defaults puts the defaults of a task, by the names of flags, into the help in place of those of most tasks.
func Defaults(fs *flag.FlagSet, of map[string]string) {
	for name, text := range of {
		if f := fs.Lookup(name); f != nil {
			before, _, _ := strings.Cut(f.Usage, " (default ")
			f.Usage = before + " (default " + text + ")"
		}
	}
}

// determined are flags that determine each other: one that is given counts for all of them.
var determined = [][]string{{"layers", "fanout"}, {"batch", "batch-per-worker"}, {"split", "times", "val-edges", "test-edges"}}

// Take makes options those of another value of the same type, such as the options of a run that is resumed, but for the
// fields whose flags were given.
func Take(fs *flag.FlagSet, options, from any) {
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for _, group := range determined {
		if slices.ContainsFunc(group, func(name string) bool { return given[name] }) {
			for _, name := range group {
				given[name] = true
			}
		}
	}
	to := reflect.ValueOf(options).Elem()
	var restore []func()
	each(to, func(tag reflect.StructTag, field reflect.Value) {
		if given[tag.Get("flag")] {
			mine := reflect.New(field.Type()).Elem()
			mine.Set(field)
			restore = append(restore, func() { field.Set(mine) })
		}
	})
	to.Set(reflect.ValueOf(from).Elem())
	for _, field := range restore {
		field()
	}
}

// each calls use with the fields of a struct, and of structs within it, that have a tag flag.
func each(of reflect.Value, use func(tag reflect.StructTag, field reflect.Value)) {
	for i := range of.NumField() {
		switch f := of.Type().Field(i); {
		case !f.IsExported():
		case f.Tag.Get("flag") != "":
			use(f.Tag, of.Field(i))
		case f.Type.Kind() == reflect.Struct:
			each(of.Field(i), use)
		}
	}
}

// define makes a flag of a field.
func define(fs *flag.FlagSet, name, help string, field any) {
	switch p := field.(type) {
	case *bool:
		fs.BoolVar(p, name, *p, help)
	case *int:
		fs.IntVar(p, name, *p, help)
	case *int64:
		fs.Int64Var(p, name, *p, help)
	case *uint64:
		fs.Uint64Var(p, name, *p, help)
	case *float64:
		fs.Float64Var(p, name, *p, help)
	case *string:
		switch name {
		case "from", "resume":
			fs.Var(runName{p}, name, help)
		default:
			fs.StringVar(p, name, *p, help)
		}
	case *[]int:
		fs.Var(&fanouts{to: p}, name, help)
	case *[]int64:
		fs.Var((*times)(p), name, help)
	case *[]string:
		if name == "tags" {
			fs.Var((*tags)(p), name, help)
			return
		}
		fs.Var((*words)(p), name, help)
	case *[]float64:
		fs.Var((*reals)(p), name, help)
	case *[]float32:
		fs.Var(&classWeights{to: p}, name, help)
	case *map[string][]int:
		ranks.RelationFlag(fs, p)
	case *optim.Schedule:
		fs.Var((*schedule)(p), name, help)
	case *optim.Averaging:
		fs.Var((*average)(p), name, help)
	case *[]optim.Group:
		fs.Var((*groups)(p), name, help)
	case *gnb.AnyModel:
		fs.Var(modelFlag{p}, name, help)
	default:
		panic(fmt.Sprintf("no flag can be made of %T, for --%s", field, name))
	}
}

// Names returns the names of the flags of a struct of options.
func Names(options any) (names []string) {
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	Bind(fs, options)
	fs.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
	return names
}

// notZero is a flag of a number that cannot be 0.
type notZero struct {
	flag.Value
	why   string
	above bool // it cannot be below 0 either
}

// Set implements [flag.Value].
func (v notZero) Set(text string) error {
	if err := v.Value.Set(text); err != nil {
		return err
	}
	x := reflect.ValueOf(v.Get())
	if x.IsZero() || v.above && x.CanFloat() && x.Float() < 0 {
		return fmt.Errorf("%s", v.why)
	}
	return nil
}

// Kind is the type of number, for the help.
func (v notZero) Kind() string { return strings.TrimSuffix(reflect.TypeOf(v.Get()).String(), "64") }

// Get implements [flag.Getter].
func (v notZero) Get() any { return v.Value.(flag.Getter).Get() }

// String implements [flag.Value]. The flag package calls it on a zero value too.
func (v notZero) String() string {
	if v.Value == nil {
		return ""
	}
	return v.Value.String()
}

// fanouts is the flag --fanout of a field.
type fanouts struct {
	ranks.Fanouts
	to *[]int
}

// Set implements [flag.Value].
func (f *fanouts) Set(text string) error {
	err := f.Fanouts.Set(text)
	*f.to = f.Hops(2)
	return err
}

// SpreadFanouts gives every hop of the layers all neighbours if the flag --fanout is full.
func SpreadFanouts(fs *flag.FlagSet, layers int) {
	if f := fs.Lookup("fanout"); f != nil {
		if v, ok := f.Value.(*fanouts); ok && v.Full {
			if layers == 0 {
				layers = 2
			}
			*v.to = v.Hops(min(max(layers, 1), 1<<10)) // more layers are an error of the library
		}
	}
}

// runName is the flag of a run's directory, or its name among the runs.
type runName struct{ to *string }

// Set implements [flag.Value].
func (r runName) Set(name string) error {
	if *r.to = name; name != gnb.Never {
		*r.to = RunDir(name)
	}
	return nil
}

// String implements [flag.Value].
func (r runName) String() string {
	if r.to == nil {
		return ""
	}
	return *r.to
}

// modelFlag is the flag --model.
type modelFlag struct{ to *gnb.AnyModel }

// Set implements [flag.Value].
func (m modelFlag) Set(name string) (err error) {
	*m.to, err = gnb.ModelByName(name)
	return err
}

// String implements [flag.Value].
func (m modelFlag) String() string {
	if m.to == nil || *m.to == nil {
		return ""
	}
	return (*m.to).Name()
}

// tags is the flag --tags.
type tags []string

// String implements [flag.Value].
func (t *tags) String() string { return strings.Join(*t, ",") }

// words is the flag of a list of names, which can have spaces.
type words []string

// Set implements [flag.Value].
func (w *words) Set(text string) error {
	*w = nil
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			return errors.New("it is a list of names with commas between them")
		}
		*w = append(*w, part)
	}
	return nil
}

// String implements [flag.Value].
func (w *words) String() string { return strings.Join(*w, ",") }

// reals is the flag of a list of numbers.
type reals []float64

// Set implements [flag.Value].
func (r *reals) Set(text string) error {
	*r = nil
	for part := range strings.SplitSeq(text, ",") {
		x, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil {
			return errors.New("it is a list of numbers with commas between them, such as 0.1,0.5,0.9")
		}
		*r = append(*r, x)
	}
	return nil
}

// String implements [flag.Value].
func (r *reals) String() string {
	parts := make([]string, len(*r))
	for i, x := range *r {
		parts[i] = strconv.FormatFloat(x, 'g', -1, 64)
	}
	return strings.Join(parts, ",")
}
