package nbtest

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/internal/testneed"
)

// cellText is a string that a notebook may store as a list of lines.
type cellText string

func (s *cellText) UnmarshalJSON(b []byte) error {
	var lines []string
	if json.Unmarshal(b, &lines) == nil {
		*s = cellText(strings.Join(lines, ""))
		return nil
	}
	return json.Unmarshal(b, (*string)(s))
}

// savedNotebook holds the parts of a notebook that these tests read.
type savedNotebook struct {
	Metadata struct {
		Kernelspec struct{ Name string }
		Graphnb    struct{ Code string }
	}
	Cells []struct {
		Type    string `json:"cell_type"`
		Source  cellText
		Outputs []struct {
			Type string `json:"output_type"`
			Data map[string]any
		}
	}
}

// code returns the SHA-256 of a notebook's code cells, as save.py writes it into the metadata.
func (nb *savedNotebook) code() string {
	h := sha256.New()
	for _, c := range nb.Cells {
		if c.Type == "code" {
			h.Write(append([]byte(c.Source), 0))
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// privatePlace matches a path or a host that exists only on the machine where a notebook was
// executed.
var privatePlace = regexp.MustCompile(`/(work|tmp|home|root|Users|var)/[\w.-]+|registry\.npmjs|pypi\.` + `org|proxy\.golang`)

// faults lists what is wrong with a saved notebook; raw is the content of its file.
func faults(raw []byte) (all []string) {
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	nb := &savedNotebook{}
	if err := json.Unmarshal(raw, nb); err != nil {
		say("it cannot be read: %v", err)
		return all
	}
	if len(raw) > 400<<10 {
		say("it has %d kB, over the 400 kB that a saved notebook may have", len(raw)>>10)
	}
	if m := privatePlace.Find(raw); m != nil {
		say("it names a place of the machine it ran on, %s", m)
	}
	if nb.Metadata.Kernelspec.Name != "graphnb" {
		say("its kernel is %q, want graphnb", nb.Metadata.Kernelspec.Name)
	}
	switch nb.Metadata.Graphnb.Code {
	case nb.code():
	case "":
		say("it was never saved executed")
	default:
		say("its code was changed since it was executed")
	}
	pictures := 0
	for i, c := range nb.Cells {
		if c.Type != "code" {
			continue
		}
		if len(c.Outputs) == 0 && (strings.Contains(string(c.Source), "%%") || strings.HasPrefix(string(c.Source), "%test")) {
			say("cell %d has no output", i)
		}
		for _, o := range c.Outputs {
			if o.Type == "error" {
				say("cell %d is saved with an error", i)
			}
			text, ok := o.Data["image/png"].(string)
			if !ok {
				continue
			}
			b, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(strings.TrimSpace(text), "\n", ""))
			if err == nil {
				_, err = png.Decode(bytes.NewReader(b))
			}
			if err != nil {
				say("cell %d: its picture: %v", i, err)
			}
			pictures++
		}
	}
	if pictures == 0 {
		say("it has no picture")
	}
	return all
}

// A saved notebook shows readers on the web all outputs of its current code, with pictures, without
// errors, and without names from the machine on which it ran.
func TestNotebooksAreSaved(t *testing.T) {
	paths, err := filepath.Glob("../../*/*.ipynb")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		seen[filepath.Base(filepath.Dir(path))]++
		for _, f := range faults(raw) {
			t.Errorf("%s: %s; make notebooks ARGS=%s", path, f, strings.TrimPrefix(path, "../../"))
		}
	}
	if seen["notebooks"] < 9 || seen["tutorials"] < 5 {
		t.Errorf("notebooks were found in %v", seen)
	}
}

// onePixel returns a picture in the form in which a notebook stores it.
func onePixel(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile("../../docs/panel.png")
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(raw)
}

// notebook writes a notebook of one cell with outputs and returns its file.
func notebook(t *testing.T, source string, outputs ...any) string {
	t.Helper()
	if outputs == nil {
		outputs = []any{}
	}
	nb := map[string]any{
		"nbformat": 4, "nbformat_minor": 5,
		"metadata": map[string]any{"kernelspec": map[string]any{"name": "graphnb", "display_name": "Go (GraphNB)", "language": "go"}},
		"cells": []any{
			map[string]any{"cell_type": "markdown", "id": "a", "metadata": map[string]any{}, "source": "# Words"},
			map[string]any{"cell_type": "code", "id": "b", "metadata": map[string]any{"execution": map[string]any{"x": "2026"}}, "execution_count": 41, "source": source, "outputs": outputs},
		},
	}
	b, err := json.Marshal(nb)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "n.ipynb")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func stream(text string) any {
	return map[string]any{"output_type": "stream", "name": "stdout", "text": text}
}

// save runs save.py, which needs only Python.
func save(t *testing.T, source, executed string, args ...string) error {
	t.Helper()
	out, err := exec.Command("python3", append([]string{"save.py", "--source", source, "--executed", executed}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// save.py writes a notebook without faults, and the same one for every execution that showed the
// same. It refuses a notebook that must not be saved.
func TestSave(t *testing.T) {
	testneed.NotShort(t, "it starts Python several times")
	const code = "%%\nfmt.Println(1)"
	picture := map[string]any{"output_type": "display_data", "metadata": map[string]any{}, "transient": map[string]any{"display_id": "x7"}, "data": map[string]any{"image/png": onePixel(t), "text/plain": "a picture"}}
	here := t.TempDir()
	source := notebook(t, code)
	executed := notebook(t, code, stream("one "), stream("\x1b[31mtwo\x1b[0m in "+here+"/runs/1\n"), stream("three\n"), picture)
	if err := save(t, source, executed, "--place", here); err != nil {
		t.Fatal(err)
	}
	first, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	if f := faults(first); len(f) > 0 {
		t.Errorf("the saved notebook has the faults %q", f)
	}
	var nb struct {
		Cells []struct {
			ID       string
			Count    int            `json:"execution_count"`
			Metadata map[string]any `json:"metadata"`
			Outputs  []struct {
				Text      cellText
				Transient any
			}
		}
	}
	if err := json.Unmarshal(first, &nb); err != nil {
		t.Fatal(err)
	}
	if c := nb.Cells[1]; c.ID != "b" || c.Count != 1 || len(c.Metadata) != 0 || len(c.Outputs) != 2 || string(c.Outputs[0].Text) != "one two in runs/1\nthree\n" || c.Outputs[1].Transient != nil {
		t.Errorf("the cell is %+v", c)
	}
	// The second execution runs in another directory, and its output arrives in other pieces.
	other := t.TempDir()
	if err := save(t, source, notebook(t, code, stream("one two in "+other+"/runs/1\nthree\n"), picture), "--place", other); err != nil {
		t.Fatal(err)
	}
	if again, err := os.ReadFile(source); err != nil || !bytes.Equal(again, first) {
		t.Errorf("the notebook saved again differs (%v):\n%s", err, again)
	}

	for _, tc := range []struct{ name, executed, want string }{
		{"other code", notebook(t, "%%\nfmt.Println(2)", stream("2")), "other code"},
		{"an error", notebook(t, code, map[string]any{"output_type": "error", "ename": "ERROR", "evalue": "exit status 1", "traceback": []string{}}), "exit status 1"},
		{"a private place", notebook(t, code, stream("in /home/somebody/runs")), "/home/somebody"},
		{"too much", notebook(t, code, stream(strings.Repeat("x", 401<<10))), "over the 400"},
	} {
		if err := save(t, source, tc.executed); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", tc.name, err)
		}
		if now, err := os.ReadFile(source); err != nil || !bytes.Equal(now, first) {
			t.Errorf("%s: the notebook was written nevertheless (%v)", tc.name, err)
		}
	}
}

// A notebook that is too large with what its charts show to the pointer is saved with the pictures and the text alone.
func TestSavedWithoutPointer(t *testing.T) {
	const code = "%%\nfmt.Println(1)"
	html := func(s string) any {
		return map[string]any{"output_type": "display_data", "metadata": map[string]any{}, "data": map[string]any{"text/html": s}}
	}
	attr := func(values int) string {
		return `data-gnb='{"title":"` + strings.Repeat("1,", values/2) + `"}' data-gnb-key="gnb_1"`
	}
	script := "<script>\nif (1 < 2) draw('data-gnb=');\n</script>"
	for values, kept := range map[int]bool{1000: true, 300 << 10: false} {
		source := notebook(t, code)
		executed := notebook(t, code, html("<div><b>table</b><span "+attr(values)+"></span>"+script+"</div>"), html("<span "+attr(values)+"></span>"+script), html(`<img alt="x" `+attr(0)+` src="data:">`+script))
		if err := save(t, source, executed); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		text := string(raw)
		if strings.Contains(text, "data-gnb") != kept || strings.Contains(text, "<script>") != kept || !strings.Contains(text, "<div><b>table</b>") || !strings.Contains(text, `<img alt=\"x\" `) {
			t.Errorf("with %d bytes of values it is saved as %.3000s", values, text)
		}
		if n := strings.Count(text, `"display_data"`); n != map[bool]int{true: 3, false: 2}[kept] {
			t.Errorf("with %d bytes of values %d outputs are saved", values, n)
		}
	}
}

// faults finds each kind of fault.
func TestSavedFaults(t *testing.T) {
	const code = "%%\nfmt.Println(1)"
	good := notebook(t, code)
	picture := map[string]any{"output_type": "display_data", "metadata": map[string]any{}, "data": map[string]any{"image/png": onePixel(t)}}
	if err := save(t, good, notebook(t, code, stream("1\n"), picture)); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	change := func(old, text string) []byte {
		if !bytes.Contains(raw, []byte(old)) {
			t.Fatalf("no %q in\n%s", old, raw)
		}
		return bytes.Replace(raw, []byte(old), []byte(text), 1)
	}
	for _, tc := range []struct {
		name, want string
		raw        []byte
	}{
		{"changed code", "changed since", change("Println(1)", "Println(2)")},
		{"another kernel", `kernel is "gonb"`, change(`"name": "graphnb"`, `"name": "gonb"`)},
		{"a place", "/root/x", change("1\\n\"", "in /root/x\"")},
		{"a damaged picture", "its picture", change("iVBOR", "iVBOX")},
		{"never executed", "never saved", func() []byte { b, _ := os.ReadFile(notebook(t, code)); return b }()},
		{"no outputs", "no output", func() []byte { b, _ := os.ReadFile(notebook(t, code)); return b }()},
		{"no picture", "no picture", func() []byte { b, _ := os.ReadFile(notebook(t, code, stream("1"))); return b }()},
		{"an error", "with an error", func() []byte {
			b, _ := os.ReadFile(notebook(t, code, map[string]any{"output_type": "error"}))
			return b
		}()},
		{"no JSON", "cannot be read", []byte("<html>")},
	} {
		if f := strings.Join(faults(tc.raw), "; "); !strings.Contains(f, tc.want) {
			t.Errorf("%s: the faults are %q", tc.name, f)
		}
	}
}
