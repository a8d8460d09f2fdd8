package kernel

import (
	"context"
	"crypto/sha256"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// goNB is the import path of the program that runs cells.
const goNB = "github.com/janpfeifer/gonb"

// patch replaces text in a file of GoNB, whose version is pinned.
type patch struct{ file, old, replacement string }

// addedFiles are the sources of the packages relink, zmtp and cellnote, which are compiled into GoNB.
//
//go:embed relink/cell.go relink/inputs.go relink/parse.go relink/record.go relink/relink.go relink/stat_linux.go relink/stat_other.go
//go:embed zmtp/peer_linux.go zmtp/peer_other.go zmtp/wire.go zmtp/zmtp.go
//go:embed cellnote/cellnote.go cellnote/complete.go
var addedFiles embed.FS

// rooms matches the names of the packages below gnb that cells import.
const rooms = `answer|budget|deploy|events|explain|figure|flight|graphs|history|inspect|kg|links|monitor|numbers|onnx|parts|plan|predict|remote|report|runs|scaling|serve|sweep|tables`

// hiddenRoom matches the compiler's error if a cell declares the name of a package below gnb.
const hiddenRoom = `: (?:initialization cycle: )?(` + rooms + `)(?: already declared through import of package| refers to itself|\.\w+ undefined \(type |\.\w+ is not a type)`

// patches make GoNB's errors say what to do, remove errors that it shows twice, and shorten the wait for a cell.
var patches = []patch{
	// Statements above the line with %%: GoNB shows only the parser's error, which does not mention
	// that line.
	{
		"internal/goexec/parser.go",
		"\tif err != nil {\n\t\tif msg != nil {\n\t\t\terr = s.DisplayErrorWithContext",
		"\tif err != nil {\n\t\tif strings.Contains(err.Error(), \"expected declaration, found \") {\n" +
			"\t\t\terr = errors.New(err.Error() + \"; statements stand below a line with %% in a cell, and only declarations above it: is the line with %% missing?\")\n\t\t}\n" +
			"\t\tif msg != nil {\n\t\t\terr = s.DisplayErrorWithContext",
	},
	// A browser has already shown the parser's error with the lines around it.
	{
		"internal/goexec/parser.go",
		"\t\terr = errors.Wrapf(err, \"parsing go files in TempDir %q\", s.TempDir)\n",
		"\t\tif msg != nil && !s.rawError {\n\t\t\terr = errors.New(\"the cell is no Go program; the message above says where\")\n\t\t} else {\n" +
			"\t\t\terr = errors.Wrapf(err, \"parsing go files in TempDir %q\", s.TempDir)\n\t\t}\n",
	},
	// A variable with the name of one of our packages hides it, which the compiler's error does not
	// say.
	{
		"internal/goexec/execcode.go",
		"\t\terr := s.DisplayErrorWithContext(msg, fileToCellIdAndLines, string(output), err)\n\t\treturn errors.Wrapf(err, \"failed to run %q\", cmd)\n",
		"\t\tif name := regexp.MustCompile(`" + hiddenRoom + "`).FindSubmatch(output); name != nil {\n" +
			"\t\t\toutput = fmt.Appendf(output, `%s is the name of a package of GraphNB, and the cells declare something else by it: choose another name, such as study or curve (\"%%rm %s\" removes a declaration of an earlier cell)`+\"\\n\", name[1], name[1])\n\t\t}\n" +
			"\t\tif hint := cellnote.Explain(string(output), cellPackages); hint != \"\" {\n\t\t\toutput = append(output, \"\\n\"+hint+\"\\n\"...)\n\t\t}\n" +
			"\t\terr := s.DisplayErrorWithContext(msg, fileToCellIdAndLines, string(output), err)\n" +
			"\t\tif msg != nil && !s.rawError {\n\t\t\treturn errors.New(\"the cell does not compile; the message above says where\")\n\t\t}\n\t\treturn errors.Wrapf(err, \"failed to run %q\", cmd)\n",
	},
	// "go get" before each cell takes a tenth of the time until the cell's first output. It runs again only
	// if the imports, go.mod or go.work have changed since it last succeeded, or if the build asks for it: a
	// module of the user's own may import a package that no module provides yet.
	{"internal/goexec/execcode.go", "\t\"strconv\"\n\t\"strings\"\n)\n", "\t\"strconv\"\n\t\"strings\"\n\t\"sync/atomic\"\n)\n"},
	{
		"internal/goexec/execcode.go",
		"\tif !s.AutoGet {\n\t\treturn\n\t}\n",
		"\tif !s.AutoGet || gotFor.Load() == s.needs(newDecls) {\n\t\treturn\n\t}\n",
	},
	{
		"internal/goexec/execcode.go",
		"\t\terr = s.DisplayErrorWithContext(msg, fileToCellIdAndLine, strOutput, err)\n\t\treturn\n\t}\n\treturn\n}\n",
		"\t\terr = s.DisplayErrorWithContext(msg, fileToCellIdAndLine, strOutput, err)\n\t\treturn\n\t}\n\tgotFor.Store(s.needs(newDecls))\n\treturn\n}\n" + needs + importRooms,
	},
	{
		"internal/goexec/execcode.go",
		"\tvar output []byte\n\tklog.V(2).Infof(\"Executing %s\", cmd)\n\toutput, err := cmd.CombinedOutput()\n",
		"\tvar output []byte\n\tif os.Getenv(\"GOGC\") == \"\" { // as in package kernel's runGo\n\t\tcmd.Env = append(cmd.Environ(), \"GOGC=400\")\n\t}\n" +
			"\tklog.V(2).Infof(\"Executing %s\", cmd)\n\toutput, err := relink.Build(cmd, s.BinaryPath())\n" +
			"\tif err != nil && s.AutoGet && bytes.Contains(output, []byte(\"go get\")) {\n" +
			"\t\tget, again := exec.Command(\"go\", \"get\"), exec.Command(\"go\", args...)\n" +
			"\t\tget.Dir, again.Dir, again.Env = cmd.Dir, cmd.Dir, cmd.Env\n" +
			"\t\tif get.Run() == nil {\n\t\t\toutput, err = again.CombinedOutput()\n\t\t}\n\t}\n",
	},
	// Package relink builds the cell, with "go build" if more than the cell has changed.
	{"internal/goexec/execcode.go", "\t\"github.com/janpfeifer/gonb/internal/jpyexec\"\n\t\"github.com/janpfeifer/gonb/internal/kernel\"\n", "\t\"github.com/janpfeifer/gonb/internal/jpyexec\"\n\t\"github.com/janpfeifer/gonb/internal/kernel\"\n\t\"github.com/janpfeifer/gonb/internal/cellnote\"\n\t\"github.com/janpfeifer/gonb/internal/relink\"\n"},
	// Package cellnote explains errors that come of a notebook's cells.
	{
		"internal/goexec/execcode.go",
		"\t\tstrOutput = s.filterGoGetError(strOutput)\n",
		"\t\tif hint := cellnote.Explain(strOutput, cellPackages); hint != \"\" {\n\t\t\tstrOutput += \"\\n\" + hint\n\t\t} else {\n\t\t\tstrOutput = s.filterGoGetError(strOutput)\n\t\t}\n",
	},
	{
		"internal/goexec/execcode.go",
		"\t// Compilation successful: save merged declarations into current State.\n",
		"\tif src, err := os.ReadFile(s.CodePath()); err == nil && msg != nil {\n\t\tcellnote.Ran(src, cellId)\n" +
			"\t\tif late := cellnote.Late(src); late != \"\" {\n\t\t\t_ = kernel.PublishWriteStream(msg, kernel.StreamStderr, late+\"\\n\")\n\t\t}\n\t}\n" +
			"\t// Compilation successful: save merged declarations into current State.\n",
	},
	// goimports reads the whole module cache for a package that it does not know, in every cell. It need not for
	// gnb and those below it.
	{"internal/goexec/execcode.go", "\t\"golang.org/x/exp/slices\"\n", "\t\"go/parser\"\n\t\"go/token\"\n\t\"golang.org/x/exp/slices\"\n"},
	{
		"internal/goexec/execcode.go",
		"\tcmd := exec.Command(goimportsPath, \"-w\", s.CodePath())\n",
		"\timportRooms(s.CodePath())\n\tcmd := exec.Command(goimportsPath, \"-w\", s.CodePath())\n",
	},
	// GoNB looks for gopls when a kernel starts only. It may be built later, as in the first "make lab".
	{
		"internal/goexec/inspect.go",
		"\tif s.gopls == nil {\n\t\t// gopls not installed.\n\t\treturn make(kernel.MIMEMap), nil\n\t}\n",
		"\tif !s.startGopls() {\n\t\treturn kernel.MIMEMap{string(protocol.MIMETextPlain): \"gopls, which explains and completes names, is not installed; this kernel uses it as soon as it is\"}, nil\n\t}\n",
	},
	{"internal/goexec/inspect.go", "\tif s.gopls == nil {\n\t\t// gopls not installed.\n\t\treturn\n\t}\n", "\tif !s.startGopls() {\n\t\treturn\n\t}\n"},
	{"internal/goexec/inspect.go", "// InspectIdentifierInCell implements", startGopls + "// InspectIdentifierInCell implements"},
	{"internal/goexec/inspect.go", "import (\n", "import (\n\t\"os/exec\"\n\n\t\"github.com/janpfeifer/gonb/internal/goexec/goplsclient\"\n"},
	// At the first Tab, GoNB opens every file of the library in gopls, which then analyses them all as if somebody edited
	// them. gopls reads files itself; it only has to learn which have changed since then. It takes a change of go.work
	// that is on the disk for one of its modules, and one in an open file not.
	{"internal/goexec/inspect.go", "\t\"main.go\", \"go.mod\", \"go.sum\", \"go.work\", \"other.go\",\n", "\t\"main.go\", \"other.go\",\n"},
	{
		"internal/goexec/inspect.go",
		"\terr = s.EnumerateUpdatedFiles(func(filePath string) error {\n\t\tklog.V(1).Infof(\"Notified of change to %q\", filePath)\n\t\treturn s.gopls.NotifyDidOpenOrChange(ctx, filePath)\n\t})\n",
		"\tvar changed []string\n\terr = s.EnumerateUpdatedFiles(func(filePath string) error {\n\t\tchanged = append(changed, filePath)\n\t\treturn nil\n\t})\n" +
			"\tif err == nil {\n\t\terr = s.gopls.NotifyChanged(ctx, s.TempDir, changed)\n\t}\n",
	},
	{
		"internal/goexec/goplsclient/conn.go",
		"// CallDefinition service in `gopls`. This returns just the range",
		notifyChanged + "// CallDefinition service in `gopls`. This returns just the range",
	},
	{"internal/goexec/goplsclient/conn.go", "\t\"net\"\n\t\"path\"\n", "\t\"net\"\n\t\"os\"\n\t\"path\"\n"},
	// Nor need it open the file of a definition to show its documentation.
	{"internal/goexec/goplsclient/goplsclient.go", "\t_ = filePath\n\treturn false\n", "\t_ = filePath\n\treturn true\n"},
}

// startGopls is the Go code of a method that a patch adds to GoNB. The messages that call it are handled one at a time.
const startGopls = `// startGopls reports whether gopls is running. It starts one that was installed after the kernel started.
func (s *State) startGopls() bool {
	if s.gopls != nil {
		return true
	}
	if _, err := exec.LookPath("gopls"); err != nil {
		return false
	}
	c := goplsclient.New(s.TempDir)
	if err := c.Start(); err != nil {
		klog.Errorf("starting gopls: %v", err)
		return false
	}
	s.gopls = c
	return true
}

`

// notifyChanged is the Go code of a method that a patch adds to GoNB. At its first call, all files of the library count as
// updated: among them, only those written since the kernel started are sent.
const notifyChanged = `// started is when the kernel started, which starts gopls; file systems may round the times of their files down. It is
// zero after the first call of NotifyChanged.
var started = time.Now().Add(-2 * time.Second)

// NotifyChanged tells gopls which files have changed or were removed, those of the module in dir included.
func (c *Client) NotifyChanged(ctx context.Context, dir string, files []string) error {
	var events []*lsp.FileEvent
	c.mu.Lock()
	since := started
	started = time.Time{}
	for _, name := range []string{"go.mod", "go.sum", "go.work"} {
		file := path.Join(dir, name)
		if data, updated, err := c.FileData(file); err == nil && updated && (data == nil || data.Content != "") {
			files = append(files, file)
		}
	}
	c.mu.Unlock()
	for _, file := range files {
		kind := lsp.FileChangeTypeChanged
		if info, err := os.Stat(file); err != nil {
			kind = lsp.FileChangeTypeDeleted
		} else if info.ModTime().Before(since) {
			continue
		}
		events = append(events, &lsp.FileEvent{Type: kind, URI: uri.File(file)})
	}
	if len(events) == 0 || !c.WaitConnection(ctx) {
		return nil
	}
	ctx, cancel := minTimeout(ctx, CommunicationTimeout)
	defer cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn == nil {
		return nil
	}
	return c.jsonConn.Notify(ctx, lsp.MethodWorkspaceDidChangeWatchedFiles, &lsp.DidChangeWatchedFilesParams{Changes: events})
}

`

// needs is the Go code that a patch adds to GoNB.
const needs = `
// cellPackages are the packages below gnb that cells import.
var cellPackages = strings.Split("` + rooms + `", "|")

// gotFor is what the last "go get" that succeeded was for.
var gotFor atomic.Value

// needs returns what the result of "go get" depends on: the imports, and the modules that are known.
func (s *State) needs(decls *Declarations) string {
	key := fmt.Sprint(s.CellIsTest)
	for _, name := range SortedKeys(decls.Imports) {
		key += " " + decls.Imports[name].Path
	}
	for _, file := range []string{"go.mod", "go.work"} {
		text, _ := os.ReadFile(path.Join(s.TempDir, file))
		key += "\n" + string(text)
	}
	return key
}
`

// importRooms is the Go code of a function that a patch adds to GoNB. goimports removes an import that is not used.
const importRooms = `
// importRooms imports, in a cell's program, gnb and the packages below it that it uses and does not import.
func importRooms(file string) {
	src, err := os.ReadFile(file)
	if err != nil {
		return
	}
	f, err := parser.ParseFile(token.NewFileSet(), file, src, 0)
	if err != nil {
		return // goimports says what is wrong
	}
	known, imports := map[string]bool{}, ""
	for _, i := range f.Imports {
		if i.Name != nil {
			known[i.Name.Name] = true
		} else {
			known[path.Base(strings.Trim(i.Path.Value, "\"` + "`" + `"))] = true
		}
	}
	rooms := regexp.MustCompile("^(gnb|` + rooms + `)$")
	for _, name := range f.Unresolved {
		if !known[name.Name] && rooms.MatchString(name.Name) {
			known[name.Name] = true
			imports += "; import \"" + path.Join("github.com/graphnb/graphnb/gnb", strings.TrimPrefix(name.Name, "gnb")) + "\""
		}
	}
	if end := int(f.Name.End()) - 1; imports != "" {
		_ = os.WriteFile(file, []byte(string(src[:end])+imports+string(src[end:])), 0o600)
	}
}
`

// patchKey returns the part of the tools' stamp that depends on the patches; "" if they change none
// of these packages.
func patchKey(packages []string) string {
	if !slices.Contains(packages, goNB) {
		return ""
	}
	h := sha256.New()
	_, _ = fmt.Fprint(h, allPatches()) // A hash accepts everything.
	for _, name := range addedNames() {
		text, _ := addedFiles.ReadFile(name) // It is embedded.
		_, _ = h.Write(text)
	}
	return fmt.Sprintf("%x\n", h.Sum(nil))
}

// allPatches returns all patches, in the order in which they apply.
func allPatches() []patch { return slices.Concat(patches, messagePatches) }

// addedNames returns the names of addedFiles.
func addedNames() []string {
	names, _ := fs.Glob(addedFiles, "*/*.go")
	return names
}

// patchGoNB makes a patched copy of GoNB next to the tools' module in src, and makes that module
// use it. If a patch does not fit the version of GoNB, GoNB is built unpatched.
func patchGoNB(ctx context.Context, src string, packages, env []string) error {
	if !slices.Contains(packages, goNB) {
		return nil
	}
	if err := runGo(ctx, src, env, "mod", "download", goNB); err != nil {
		return err
	}
	dir, err := goOutput(ctx, src, env, "list", "-m", "-f", "{{.Dir}}", goNB)
	if err != nil {
		return err
	}
	const name = "gonb"
	copied := filepath.Join(src, name)
	if err := copySources(copied, dir); err != nil {
		return err
	}
	for _, p := range allPatches() {
		file := filepath.Join(copied, filepath.FromSlash(p.file))
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if strings.Count(string(text), p.old) != 1 {
			return fmt.Errorf("GoNB's %s is not the file that GraphNB's patches were made for: %.80q occurs %d times in it", p.file, p.old, strings.Count(string(text), p.old))
		}
		if err := os.WriteFile(file, []byte(strings.Replace(string(text), p.old, p.replacement, 1)), 0o644); err != nil {
			return err
		}
	}
	for _, name := range addedNames() {
		text, err := addedFiles.ReadFile(name)
		if err != nil {
			return err
		}
		file := filepath.Join(copied, "internal", filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, text, 0o644); err != nil {
			return err
		}
	}
	return runGo(ctx, src, env, "mod", "edit", "-replace="+goNB+"=./"+name)
}

// copySources copies the files needed to build a module into writable directories; those of the
// module cache are read-only.
func copySources(to, from string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		switch {
		case d.IsDir() && slices.Contains([]string{"examples", "docs", "docker"}, rel):
			return filepath.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		case !d.Type().IsRegular() || strings.HasSuffix(rel, ".ipynb"):
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), b, 0o644)
	})
}
