package relink

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// parse reads into r what "go build -x" printed about the cell. It accepts only lines and arguments that it knows. Of
// packages that were compiled too, it reads only where Go keeps them.
func (c *cell) parse(r *record, text []byte) error {
	out := string(text)
	if strings.Contains(out, "{{") && holes.MatchString(out) {
		return errGo
	}
	var work string
	lists := map[string]string{}
	var kept []string // pairs: the file of a package that was compiled too, where Go keeps it
	var compiler, linker []string
	for out != "" {
		var line string
		line, out, _ = strings.Cut(out, "\n")
		if found := cached.FindStringSubmatch(line); found != nil && found[1] != "$WORK/b001/_pkg_.a" {
			kept = append(kept, found[1]+"\n", found[2]+"\n")
		} else if strings.HasPrefix(line, "WORK=") {
			work = line[len("WORK="):]
		} else if strings.HasPrefix(line, "cat >") {
			file, _, ok := strings.Cut(line[len("cat >"):], " << 'EOF'")
			list, rest, end := strings.Cut(out, "EOF\n")
			if !ok || !end || work == "" {
				return unknown(line)
			}
			out = rest
			if dir, name := filepath.Split(file); filepath.Clean(dir) == filepath.Join(work, "b001") || dir == "$WORK/b001/" {
				lists[name] = list
			}
		} else if strings.Contains(line, "$WORK/b001/") && !around.MatchString(line) {
			env, args, err := split(line)
			switch {
			case err != nil:
				return err
			case filepath.Base(args[0]) == "compile" && compiler == nil && len(env) == 0:
				compiler = args
			case filepath.Base(args[0]) == "link" && linker == nil:
				linker = args
				r.Env = append(r.Env, env...)
			default:
				return unknown(line)
			}
		}
	}
	if len(lists) != 2 || compiler == nil || linker == nil || work == "" {
		return errGo
	}
	fill := strings.NewReplacer(c.dir, holeDir, work, "$WORK", c.name, holeName)
	keep := strings.NewReplacer(kept...)
	var err error
	if r.Compiler, err = arguments(compiler, compilerFlags, fill); err != nil {
		return err
	}
	if r.Linker, err = arguments(linker, linkerFlags, fill); err != nil {
		return err
	}
	return c.readLists(r, keep.Replace(fill.Replace(lists["importcfg"])), keep.Replace(fill.Replace(lists["importcfg.link"])))
}

// cached matches a line about another package's archive: where it is, and where Go keeps it.
var cached = regexp.MustCompile(`^cp (\$WORK/b[0-9]+/_pkg_\.a) (/\S+) # internal$`)

// around matches the lines about the cell's files that do not say how they are made.
var around = regexp.MustCompile(`^(mkdir -p|go tool buildid -w|rm -rf|cp) \$WORK/b001/|^mv \$WORK/b001/exe/a\.out `)

// modinfo matches the program's build information: up to its modules, those, and the rest.
var modinfo = regexp.MustCompile(`^modinfo "((?:[^"\\]|\\[^n"\\])*path\\t` + regexp.QuoteMeta(holeName) + `\\nmod\\t` + regexp.QuoteMeta(holeName) + `\\t[^"]*?\\n)((?:dep\\t[^"]*?)?)(build\\t[^"]*)"$`)

// readLists reads the archives and modules of the program's packages from the lists for the compiler and the linker. It
// accepts them only if lists would write the same.
func (c *cell) readLists(r *record, compile, link string) error {
	found, module := 0, ""
	for line := range strings.Lines(link) {
		line = strings.TrimSuffix(line, "\n")
		if line == "packagefile "+holeName+"=$WORK/b001/_pkg_.a" {
			continue
		}
		if text, ok := strings.CutPrefix(line, "packagefile "); ok {
			path, archive, _ := strings.Cut(text, "=")
			p := r.Packages[path]
			if p == nil || strings.Contains(archive, "$WORK") {
				return unknown(line)
			}
			info, err := os.Stat(archive)
			if err != nil {
				return err
			}
			p.Archive, p.Size = archive, info.Size()
			found++
			continue
		}
		parts := modinfo.FindStringSubmatch(line)
		if parts == nil || r.Info.Head != "" || strings.Contains(line, `\\`) || strings.Contains(line, `\tvcs.`) {
			return unknown(line)
		}
		r.Info = info{Head: parts[1], Tail: parts[3], Deps: map[string]string{}}
		for _, dep := range strings.SplitAfter(parts[2], `\n`) { // each is a module, or more about it
			if rest, ok := strings.CutPrefix(dep, `dep\t`); ok {
				module, _, _ = strings.Cut(rest, `\t`)
			}
			r.Info.Deps[module] += dep
		}
	}
	paths, ok := r.closure(c.imports)
	wantCompile, wantLink := c.lists(r, paths)
	link = strings.Replace(link, "=$WORK/b001/_pkg_.a\n", "="+objectFile+"\n", 1)
	if !ok || found == 0 || !sameLines(wantCompile, compile) || !sameLines(wantLink, link) {
		return unknown(link)
	}
	return nil
}

func sameLines(a, b string) bool {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	slices.Sort(x)
	slices.Sort(y)
	return slices.Equal(x, y)
}

// unknown is the error for a part of what "go build -x" printed.
func unknown(part string) error { return fmt.Errorf("%w: %.200q", errGo, part) }

// flag is an argument that the compiler or the linker may have. A value that is not "" takes the place of its value.
type flag struct {
	pattern *regexp.Regexp
	value   bool   // the value is the next argument
	now     string // what stands for the value, if it differs from cell to cell
}

var compilerFlags = []flag{
	{regexp.MustCompile(`^-o$`), true, objectFile},
	{regexp.MustCompile(`^-trimpath$`), true, ""},
	{regexp.MustCompile(`^-(p|goversion)$`), true, ""},
	{regexp.MustCompile(`^-(lang|c)=[\w.]+$`), false, ""},
	{regexp.MustCompile(`^-(complete|nolocalimports|pack|shared)$`), false, ""},
	{regexp.MustCompile(`^-buildid$`), true, holeID + "/" + holeID},
	{regexp.MustCompile(`^-importcfg$`), true, compileConfig},
	{regexp.MustCompile(`^\./main\.go$`), false, ""},
}

var linkerFlags = []flag{
	{regexp.MustCompile(`^-o$`), true, programFile},
	{regexp.MustCompile(`^-importcfg$`), true, linkConfig},
	{regexp.MustCompile(`^-buildmode=(exe|pie)$`), false, ""},
	{regexp.MustCompile(`^-X=runtime\.godebugDefault=[\w=,]*$`), false, ""},
	{regexp.MustCompile(`^-[sw]$`), false, ""},
	{regexp.MustCompile(`^-extld=`), false, ""},
	{regexp.MustCompile(`^-buildid=`), false, "-buildid=" + holeID + "/" + holeID + "/" + holeID + "/" + holeID},
	{regexp.MustCompile(`^\$WORK/b001/_pkg_\.a$`), false, objectFile},
}

// arguments returns args with holes, and an error if one is unknown.
func arguments(args []string, flags []flag, fill *strings.Replacer) ([]string, error) {
	with := []string{args[0]}
	for i := 1; i < len(args); i++ {
		at := slices.IndexFunc(flags, func(f flag) bool { return f.pattern.MatchString(args[i]) })
		if at < 0 {
			return nil, unknown(args[i])
		}
		f := flags[at]
		switch {
		case !f.value && f.now == "":
			with = append(with, args[i])
		case !f.value:
			with = append(with, f.now)
		default:
			if i++; i == len(args) {
				return nil, errGo
			}
			value := f.now
			if value == "" {
				value = fill.Replace(args[i])
			}
			with = append(with, args[i-1], strings.ReplaceAll(value, "$WORK/b001=>", holeWork+"=>"))
		}
	}
	return with, nil
}

// split splits a command that "go build -x" printed into variables and arguments.
func split(line string) (env, args []string, err error) {
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimLeft(line, " ") {
		var word string
		if line[0] == '"' {
			quoted, err := strconv.QuotedPrefix(line)
			if err != nil {
				return nil, nil, err
			}
			if word, err = strconv.Unquote(quoted); err != nil {
				return nil, nil, err
			}
			line = line[len(quoted):]
			if line != "" && line[0] != ' ' {
				return nil, nil, errGo
			}
		} else {
			word, line, _ = strings.Cut(line, " ")
		}
		name, value, set := strings.Cut(word, "=")
		if set && len(args) == 0 && !strings.ContainsAny(name, "/-") {
			if len(value) < 2 || value[0] != '\'' || value[len(value)-1] != '\'' {
				return nil, nil, errGo
			}
			env = append(env, name+"="+value[1:len(value)-1])
			continue
		}
		args = append(args, word)
	}
	if len(args) == 0 {
		return nil, nil, errGo
	}
	return env, args, nil
}
