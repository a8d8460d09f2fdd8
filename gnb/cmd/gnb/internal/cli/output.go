package cli

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/internal/phrase"
)

// Output writes a command's output: text, or JSON lines with --json. Its methods may be called
// from several goroutines.
type Output struct {
	Stdout, Stderr io.Writer
	JSON           bool // whether --json was given
	Verify         bool // whether --verify was given: see options.Verify

	command Command

	mu  sync.Mutex
	err error // the first failure to write or encode; the command fails with it
}

// newOutput is the output of one run of c. It looks for --json itself, so that a wrong flag after
// it is reported as JSON too.
func newOutput(c Command, args []string, stdout, stderr io.Writer) *Output {
	o := &Output{command: c, Stdout: stdout, Stderr: stderr}
	for _, a := range args {
		if a == "--" {
			break
		}
		if name, value, has := strings.Cut(strings.TrimPrefix(a, "-"), "="); strings.HasPrefix(a, "-") && strings.TrimPrefix(name, "-") == "json" {
			on, err := strconv.ParseBool(value)
			o.JSON = !has || err == nil && on
		}
	}
	return o
}

// Flags makes the command's flag set, with --json in it. arguments and detail are shown by --help:
// what follows the flags ("DATASET"), and a paragraph on what the command does.
func (o *Output) Flags(arguments, detail string) *flag.FlagSet {
	fs := flag.NewFlagSet(o.command.Name, flag.ContinueOnError)
	fs.SetOutput(io.Discard) // parse reports errors, once
	fs.BoolVar(&o.JSON, "json", o.JSON, "write events as JSON lines, with the result last")
	fs.Usage = func() {
		words := []string{"usage: " + o.command.words()}
		if arguments != "" {
			words = append(words, arguments)
		}
		fmt.Fprintf(o.Stdout, "%s [flags]\n\n%s\n\nflags:\n", strings.Join(words, " "), strings.TrimSpace(detail))
		fs.VisitAll(func(f *flag.Flag) {
			kind, usage := flag.UnquoteUsage(f)
			if k, ok := f.Value.(interface{ Kind() string }); ok && kind == "value" {
				kind = k.Kind()
			}
			line := "  --" + f.Name
			if kind != "" {
				line += " " + kind
			}
			if f.DefValue != "" && f.DefValue != "0" && f.DefValue != "false" && f.DefValue != "0s" {
				usage += " (default " + f.DefValue + ")"
			}
			fmt.Fprintf(o.Stdout, "%s\n        %s\n", line, usage)
		})
	}
	return fs
}

// Parse parses flags wherever they stand among the arguments and returns the arguments, of which
// there must be atLeast..atMost (atMost < 0: any number). After "--" everything is an argument.
func (o *Output) Parse(fs *flag.FlagSet, args []string, atLeast, atMost int) ([]string, error) {
	help := fs.Usage
	fs.Usage = func() {} // the flag package would print it after each wrong flag too
	var rest []string
	for len(args) > 0 {
		before := len(args)
		if err := fs.Parse(args); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				help()
				return nil, err
			}
			return nil, &UsageError{meant(fs, err)}
		}
		ended := before > fs.NArg() && args[before-fs.NArg()-1] == "--"
		args = fs.Args()
		if ended {
			rest, args = append(rest, args...), nil
		} else if len(args) > 0 {
			rest, args = append(rest, args[0]), args[1:]
		}
	}
	if err := inRange(fs); err != nil {
		return nil, err
	}
	switch {
	case len(rest) < atLeast:
		return nil, Usagef("it takes at least %s, and got %d", phrase.Count(atLeast, "argument"), len(rest))
	case atMost >= 0 && len(rest) > atMost:
		return nil, Usagef("it takes at most %s, and got %d (%s)", phrase.Count(atMost, "argument"), len(rest), strings.Join(rest, " "))
	}
	return rest, nil
}

// invalid matches the error of the flag package for a value that a flag does not take.
var invalid = regexp.MustCompile(`^invalid (?:boolean )?value "(.*)" for (?:flag )?-([a-z0-9-]+): (.*)$`)

// meant rewrites an error of the flag package, and suggests the flag that the user probably meant.
func meant(fs *flag.FlagSet, err error) error {
	// Package flag has no type for this error.
	name, unknown := strings.CutPrefix(err.Error(), "flag provided but not defined: -")
	if !unknown {
		if m := invalid.FindStringSubmatch(err.Error()); m != nil {
			return fmt.Errorf("--%s is %s; %s", m[2], m[1], m[3])
		}
		return err
	}
	var names []string
	fs.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
	near := ""
	for _, n := range names { // also the beginning of a longer name
		if near == "" && len(name) > 2 && strings.HasPrefix(n, name) {
			near = n
		}
	}
	if n := phrase.Nearest(name, names); n != "" {
		near = n
	}
	if near != "" {
		return fmt.Errorf("there is no flag --%s; is it --%s?", name, near)
	}
	return fmt.Errorf("there is no flag --%s", name)
}

// Event writes one JSON line {"event":name, …fields} with --json and nothing without it. fields is
// a struct or map that encodes as a JSON object, or nil.
func (o *Output) Event(name string, fields any) {
	if !o.JSON {
		return
	}
	line, err := eventLine(name, fields)
	if err != nil {
		o.keep(fmt.Errorf("encoding the event %q: %w", name, err))
		return
	}
	o.write(o.Stdout, line)
}

// Result writes the event "result". It is the last one, except that an interrupted command with a
// partial result then writes an "error".
func (o *Output) Result(fields any) { o.Event("result", fields) }

// Printf writes to standard output, or nothing with --json. Like logf it removes escape sequences,
// which names and files may contain.
func (o *Output) Printf(format string, args ...any) {
	if !o.JSON {
		o.write(o.Stdout, []byte(phrase.Clean(fmt.Sprintf(format, args...))))
	}
}

// Together reports whether standard output and standard error are one terminal, pipe or file, so
// that output on one is visible on the other.
func (o *Output) Together() bool {
	a, ok := o.Stdout.(*os.File)
	b, ok2 := o.Stderr.(*os.File)
	if !ok || !ok2 {
		return false
	}
	one, err := a.Stat()
	two, err2 := b.Stat()
	return err == nil && err2 == nil && os.SameFile(one, two)
}

// Logf writes one line of progress or advice to standard error.
func (o *Output) Logf(format string, args ...any) {
	o.write(o.Stderr, []byte(strings.TrimRight(phrase.Clean(fmt.Sprintf(format, args...)), "\n")+"\n"))
}

// Fail reports why the command failed: one line on standard error, the last one, and with --json an "error"
// Event too. The trace of a panic comes before.
func (o *Output) Fail(err error) {
	if trace := gnb.Trace(err); trace != "" {
		o.Logf("%s", trace)
	}
	o.Event("error", map[string]string{"error": OneLine(err)})
	o.Logf("%s: %s", o.command.words(), OneLine(err))
}

func (o *Output) write(w io.Writer, b []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, err := w.Write(b); err != nil && o.err == nil {
		o.err = fmt.Errorf("writing the output: %w", err)
	}
}

func (o *Output) keep(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err = err
	}
}

// eventLine is {"event":name, …fields} and a line break; "event" comes first.
func eventLine(name string, fields any) ([]byte, error) {
	b := fmt.Appendf(nil, `{"event":%q`, name)
	if fields != nil {
		f, err := json.Marshal(fields)
		if err != nil {
			return nil, err
		}
		switch {
		case len(f) < 2 || f[0] != '{':
			return nil, fmt.Errorf("%T does not encode as a JSON object", fields)
		case len(f) > 2:
			b = append(append(b, ','), f[1:len(f)-1]...)
		}
	}
	return append(asciiControls(b), '}', '\n'), nil
}

// asciiControls writes the control characters that JSON allows in a text as \u escapes: a terminal
// may act on them.
func asciiControls(b []byte) []byte {
	s := string(b)
	if phrase.Clean(s) == s {
		return b
	}
	var out []byte
	for _, r := range s {
		if c := string(r); phrase.Clean(c) == c || r == '\t' {
			out = append(out, c...)
		} else {
			out = fmt.Appendf(out, "\\u%04x", r)
		}
	}
	return out
}
