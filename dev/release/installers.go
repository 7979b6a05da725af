package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

// installers are templates in dist, which have the checksums of the archives.
var installers = []struct {
	file string
	mode os.FileMode
}{{"install.sh", 0o755}, {"iwarp.rb", 0o644}}

// fill makes the installers.
func (r *release) fill() error {
	for _, i := range installers {
		text, err := os.ReadFile(filepath.Join(r.clone, "dist", i.file))
		if err != nil {
			return err
		}
		filled, err := fill(string(text), r)
		if err != nil {
			return fmt.Errorf("%s: %w", i.file, err)
		}
		if err := r.write(i.file, filled, i.mode); err != nil {
			return err
		}
	}
	return nil
}

func fill(text string, r *release) ([]byte, error) {
	t, err := template.New("").Parse(text)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = t.Execute(&b, r)
	return b.Bytes(), err
}

// Version is without the v.
func (r *release) Version() string { return strings.TrimPrefix(r.version, "v") }

// URL is where the release is published.
func (r *release) URL() string { return project + "/releases/download/" + r.version }

// Sums has the archives alone.
func (r *release) Sums() string {
	var b strings.Builder
	for line := range strings.Lines(r.sums()) {
		if strings.HasSuffix(line, ".tar.gz\n") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// Archive is the one of a platform, or nil.
func (r *release) Archive(system, arch string) *archived {
	_, name := r.archiveName(platform{system, arch})
	for _, m := range r.made {
		if m.name == name {
			return &archived{r.URL() + "/" + name, fmt.Sprintf("%x", m.sum)}
		}
	}
	return nil
}

// An archived is where an archive is, and its checksum.
type archived struct{ URL, Sum string }
