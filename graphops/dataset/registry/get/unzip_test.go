package get

import (
	"archive/zip"
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

type zipped struct {
	name, content string
	mode          fs.FileMode
}

func archive(t *testing.T, files ...zipped) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate}
		h.SetMode(f.mode | 0o644)
		e, err := w.CreateHeader(h)
		if err == nil {
			_, err = e.Write([]byte(f.content))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestGetArchive(t *testing.T) {
	content := archive(t, zipped{"path/", "", fs.ModeDir | 0o755}, zipped{"path/edge_list.txt", edges, 0}, zipped{"__MACOSX/x", "", 0})
	e, asked := published(t, content, serveBytes(content))
	e.Files[0].Name, e.Files[0].Unzipped = "path.zip", []string{"path/edge_list.txt"}
	dir, err := Get(t.Context(), e, quick)
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := e.RawDir()
	if _, err := os.Stat(filepath.Join(raw, "path")); err == nil {
		t.Error("the unpacked files were not removed")
	}
	// Get converts from the archive again, and from a folder that was unpacked elsewhere.
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := Get(t.Context(), e, quick); err != nil {
		t.Errorf("the second Get gave %v", err)
	}
	data := t.TempDir()
	t.Setenv("GNB_DATA", data)
	t.Setenv("GNB_HOME", t.TempDir())
	if err := os.Mkdir(filepath.Join(data, "path"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "path", "edge_list.txt"), []byte(edges), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Get(t.Context(), e, quick); err != nil || asked.Load() != 1 {
		t.Errorf("Get from an unpacked folder gave %v; the server got %d requests", err, asked.Load())
	}
	if _, err := os.Stat(filepath.Join(data, "path", "edge_list.txt")); err != nil {
		t.Error("the user's own files were removed")
	}
}

func TestHostileArchives(t *testing.T) {
	many := make([]zipped, maxUnzipEntries+1)
	for i := range many {
		many[i].name = "x"
	}
	for _, c := range []struct {
		name    string
		content []byte
		want    string
	}{
		{"not a zip", []byte("PK but no zip"), "not a valid zip"},
		{"cut off", archive(t, zipped{"path/edge_list.txt", edges, 0})[:60], "not a valid zip"},
		{"a path upward", archive(t, zipped{"../escaped", "x", 0}), `entry "../escaped" leads out`},
		{"a path upward, inside", archive(t, zipped{"path/../../escaped", "x", 0}), "leads out"},
		{"an absolute path", archive(t, zipped{"/escaped", "x", 0}), "leads out"},
		{"a path of Windows", archive(t, zipped{`..\escaped`, "x", 0}), "leads out"},
		{"a link", archive(t, zipped{"path", "/etc/passwd", fs.ModeSymlink}), "neither a file nor a folder"},
		{"a bomb", archive(t, zipped{"path/edge_list.txt", strings.Repeat("\x00", 32<<20), 0}), "would become more than"},
		{"too many entries", archive(t, many...), "10001 entries"},
		{"a file twice", archive(t, zipped{"path/edge_list.txt", edges, 0}, zipped{"path/edge_list.txt", edges, 0}), "exists"},
		{"without the dataset", archive(t, zipped{"other/x", edges, 0}), "does not hold path/"},
		{"without its file", archive(t, zipped{"path/x", edges, 0}), "does not hold path/edge_list.txt"},
		{"wrong checksum", func() []byte {
			b := archive(t, zipped{"path/edge_list.txt", edges, 0})
			b[bytes.LastIndex(b, []byte("PK\x01\x02"))+16] ^= 1 // the CRC in the archive's directory
			return b
		}(), "checksum error"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, _ := published(t, c.content, serveBytes(c.content))
			e.Files[0].Name, e.Files[0].Unzipped = "path.zip", []string{"path/edge_list.txt"}
			_, err := Get(t.Context(), e, quick)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "path.zip") {
				t.Errorf("got %v; want %q", err, c.want)
			}
			_ = filepath.WalkDir(os.Getenv("GNB_HOME"), func(path string, d fs.DirEntry, _ error) error {
				if name := d.Name(); strings.Contains(name, "escaped") || strings.Contains(name, "tmp") || d.Type()&fs.ModeSymlink != 0 || name == "metadata.json" {
					t.Errorf("left: %s", path)
				}
				return nil
			})
		})
	}
}
