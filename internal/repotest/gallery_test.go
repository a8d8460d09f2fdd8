package repotest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// card is what the gallery shows of a notebook.
type card struct {
	title, about string
	picture      []byte // the largest of its outputs
}

func cardOf(t *testing.T, file string) (c card) {
	t.Helper()
	text, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		t.Fatal(err)
	}
	var nb struct {
		Cells []struct {
			Source  []string
			Outputs []struct {
				Data map[string]json.RawMessage
			}
		}
	}
	if err := json.Unmarshal(text, &nb); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	title, rest, _ := strings.Cut(strings.Join(nb.Cells[0].Source, ""), "\n")
	c.title = strings.TrimPrefix(title, "# ")
	about, _, _ := strings.Cut(strings.Join(strings.Fields(rest), " ")+" ", ". ")
	c.about = about + "."
	for _, cell := range nb.Cells {
		for _, o := range cell.Outputs {
			var s string
			if json.Unmarshal(o.Data["image/png"], &s) != nil {
				continue // this output has no picture
			}
			p, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(s), ""))
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if len(p) > len(c.picture) {
				c.picture = p
			}
		}
	}
	return c
}

// galleryOrder is the order of the notebooks for a reader; the tutorials are numbered.
var galleryOrder = []string{
	"quickstart", "own-data", "tables", "answers", "numbers", "own-layer", "samplers", "links", "relations", "explore", "embeddings", "week", "sweep", "scaling",
	"partition", "gpu", "monitor",
}

// inOrder sorts files by the order of the gallery, those that it does not name last.
func inOrder(files []string) []string {
	place := func(file string) int {
		if i := slices.Index(galleryOrder, strings.TrimSuffix(filepath.Base(file), ".ipynb")); i >= 0 {
			return i
		}
		return len(galleryOrder)
	}
	slices.SortStableFunc(files, func(a, b string) int { return place(a) - place(b) })
	return files
}

// The gallery shows each notebook and tutorial: its title, its first sentence, and its largest picture.
func TestGallery(t *testing.T) {
	for _, folder := range []string{"notebooks", "tutorials"} {
		var cards []string
		for _, file := range inOrder(glob(t, folder+"/*.ipynb")) {
			c, name := cardOf(t, file), strings.TrimSuffix(filepath.Base(file), ".ipynb")
			if len(c.picture) == 0 {
				t.Errorf("%s has no picture", file)
			}
			comparePicture(t, "gallery/"+name+".png", c.picture)
			link := fmt.Sprintf("../%s/%s.ipynb", folder, name)
			cards = append(cards, fmt.Sprintf("<a href=\"%s\"><img alt=\"\" width=\"420\" src=\"gallery/%s.png\"></a><br>**[%s](%s)**<br>%s", link, name, c.title, link, c.about))
		}
		// Two cards a line, each with its text below the picture: text beside a picture would take the picture's width.
		var b strings.Builder
		b.WriteString("| | |\n|---|---|\n")
		for two := range slices.Chunk(append(cards, "")[:(len(cards)+1)/2*2], 2) {
			fmt.Fprintf(&b, "| %s | %s |\n", two[0], two[1])
		}
		compare(t, "gallery.md", folder, b.String())
	}
}
