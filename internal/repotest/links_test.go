package repotest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// pages returns the pages that users read on GitHub.
func pages(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, name := range files(t) {
		if ext := filepath.Ext(name); (ext == ".md" || ext == ".ipynb") && !strings.Contains(name, "testdata/") {
			all = append(all, name)
		}
	}
	return all
}

var (
	fences  = regexp.MustCompile("(?ms)^ {0,3}```.*?^ {0,3}```\\s*$")
	code    = regexp.MustCompile("`[^`\n]*`")
	link    = regexp.MustCompile(`\]\(([^()\s]+(?:\([^()\s]*\))?)\)`)
	refs    = regexp.MustCompile(`(?m)^\[[^\]]+\]: (\S+)$`)
	sources = regexp.MustCompile(`(?:src|srcset|href)="([^"]+)"`)
	heading = regexp.MustCompile(`(?m)^#{1,6} +(.+?) *#*$`)
	markup  = regexp.MustCompile("`|\\*\\*|\\[([^\\]]*)\\]\\([^)]*\\)")
)

// links returns the targets of a page's links and pictures.
func links(text string) []string {
	text = code.ReplaceAllString(fences.ReplaceAllString(text, ""), "")
	var all []string
	for _, pattern := range []*regexp.Regexp{link, refs, sources} {
		for _, m := range pattern.FindAllStringSubmatch(text, -1) {
			all = append(all, m[1])
		}
	}
	return all
}

// anchors returns the fragments that GitHub gives to a page's headings.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(fences.ReplaceAllString(text, ""), -1) {
		var b strings.Builder
		for _, r := range strings.ToLower(markup.ReplaceAllString(m[1], "$1")) {
			switch {
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				b.WriteRune(r)
			case r == ' ':
				b.WriteByte('-')
			}
		}
		all[b.String()] = true
	}
	return all
}

// broken returns the reason why a page's link does not work, or "".
func broken(page, target string) string {
	if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
		return ""
	}
	path, fragment, _ := strings.Cut(target, "#")
	file := page
	if path != "" {
		file = filepath.Join(filepath.Dir(page), filepath.FromSlash(path))
	}
	info, err := os.Stat(file)
	if err != nil {
		return "there is no such file"
	}
	if fragment == "" || info.IsDir() || filepath.Ext(file) != ".md" {
		return ""
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	if !anchors(string(text))[fragment] {
		return "the page has no heading of that name"
	}
	return ""
}

// prose returns the text of a notebook's Markdown cells.
func prose(t *testing.T, name, text string) string {
	t.Helper()
	var nb struct {
		Cells []struct {
			Type   string `json:"cell_type"`
			Source []string
		}
	}
	if err := json.Unmarshal([]byte(text), &nb); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	var b strings.Builder
	for _, c := range nb.Cells {
		if c.Type == "markdown" {
			b.WriteString(strings.Join(c.Source, "") + "\n\n")
		}
	}
	return b.String()
}

// Every relative link and anchor of the pages has a target that exists.
func TestLinks(t *testing.T) {
	n := 0
	for _, name := range pages(t) {
		text := read(t, name)
		if filepath.Ext(name) == ".ipynb" {
			text = prose(t, name, text)
		}
		for _, target := range links(text) {
			n++
			if why := broken(filepath.Join(root, name), target); why != "" {
				t.Errorf("%s: link to %s: %s", name, target, why)
			}
		}
	}
	if n < 120 {
		t.Errorf("%d links were found", n)
	}
}

func TestLinksAreFound(t *testing.T) {
	dir := t.TempDir()
	page := filepath.Join(dir, "a.md")
	text := "# A page: `gnb runs`, and more\n\n## What isn't there\n[a](b.md) [c](#what-isnt-there) [d](#nowhere) `[e](f.md)`\n<img src=\"p.png\"> [g](a.md#a-page-gnb-runs-and-more)\n```\n[h](i.md)\n# no heading\n```\n[x]: y.md\n"
	if err := os.WriteFile(page, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var wrong []string
	for _, l := range links(text) {
		if broken(page, l) != "" {
			wrong = append(wrong, l)
		}
	}
	if got := strings.Join(wrong, " "); got != "b.md #nowhere y.md p.png" {
		t.Errorf("broken: %s", got)
	}
}
