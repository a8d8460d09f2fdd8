package codeid

import (
	"reflect"
	"runtime"
	"strings"
)

// Root is a starting point of code: a function, or a call. The package-level declaration around its
// line is part of the code, with all names that it uses.
type Root struct {
	Function string // as package runtime names it
	File     string
	Line     int

	pkg string // import path, "main" for the program's own package
}

// Func returns the root of a function: a declared function, a literal, or a method value.
func Func(f any) Root {
	v := reflect.ValueOf(f)
	if v.Kind() != reflect.Func || v.IsNil() {
		return Root{}
	}
	pc := v.Pointer()
	fn := runtime.FuncForPC(pc)
	if fn == nil {
		return Root{}
	}
	file, line := fn.FileLine(pc)
	return root(fn.Name(), file, line)
}

// Calls returns the roots of the calls that led to the caller of Calls, innermost first, without
// the runtime's.
func Calls(skip int) []Root {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(skip+2, pcs[:])])
	var out []Root
	for {
		f, more := frames.Next()
		if strings.HasPrefix(f.Function, "runtime.") {
			return out
		}
		if f.Function != "" {
			out = append(out, root(f.Function, f.File, f.Line))
		}
		if !more {
			return out
		}
	}
}

func root(function, file string, line int) Root {
	return Root{Function: function, File: file, Line: line, pkg: packageOf(function)}
}

// packageOf returns the import path in a function's name, such as
// "gopkg.in/yaml%2ev3.(*Node).Encode" or "main.f[...].func1".
func packageOf(function string) string {
	function, _, _ = strings.Cut(function, "[")
	slash := strings.LastIndex(function, "/") + 1
	name, _, _ := strings.Cut(function[slash:], ".")
	return strings.ReplaceAll(function[:slash]+name, "%2e", ".")
}

// method returns the type and the method from the function name of a method value, such as
// "main.(*trainer).Run-fm": that function has no line of its own.
func (r Root) method() (typ, name string, ok bool) {
	f, ok := strings.CutSuffix(r.Function, "-fm")
	if !ok {
		return "", "", false
	}
	f = f[strings.LastIndex(f, "/")+1:]
	_, f, _ = strings.Cut(f, ".")
	i := strings.LastIndex(f, ".")
	if i < 0 {
		return "", "", false
	}
	typ, _, _ = strings.Cut(strings.Trim(f[:i], "(*)"), "[")
	return typ, f[i+1:], true
}
