package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// An entry is a file of an archive.
type entry struct {
	name       string // with slashes, below the archive's directory
	bytes      []byte
	executable bool
}

// completions are where shells look for them, below share.
var completions = map[string]string{
	"bash": "bash-completion/completions/iwarp",
	"zsh":  "zsh/site-functions/_iwarp",
	"fish": "fish/vendor_completions.d/iwarp.fish",
}

// common are the files that are the same for all platforms. The program that runs here makes some of them.
func (b *builder) common(ctx context.Context, here *program) ([]entry, error) {
	all, err := b.files("", "LICENSE", "README.md", "CHANGELOG.md")
	if err != nil {
		return nil, err
	}
	board, err := b.files("share/iwarp/grafana/", "dist/grafana/iwarp.json")
	if err != nil {
		return nil, err
	}
	all = append(all, board...)
	for shell, name := range completions {
		script, err := b.run(ctx, here.platform, here.path, "completion", shell)
		if err != nil {
			return nil, err
		}
		all = append(all, entry{name: "share/" + name, bytes: []byte(script)})
	}
	pages := filepath.Join(b.scratch, "man1")
	if err := os.Mkdir(pages, 0o755); err != nil {
		return nil, err
	}
	if _, err := b.run(ctx, here.platform, here.path, "man", "--dir", pages); err != nil {
		return nil, err
	}
	made, err := matching(pages, "*.1", "share/man/man1/")
	return append(all, made...), err
}

// own are the files that a platform has beside these.
func (b *builder) own(ctx context.Context, p *program) ([]entry, error) {
	data, err := os.ReadFile(p.path)
	if err != nil {
		return nil, err
	}
	all := []entry{{name: p.place(), bytes: data, executable: true}}
	if p.os == "linux" {
		units, err := b.files("lib/systemd/system/", "dist/iwarp.service", "dist/iwarp-disk.service")
		if err != nil {
			return nil, err
		}
		all = append(all, units...)
	}
	licenses, err := b.licenses(ctx, p.platform)
	return append(all, licenses...), err
}

// licenses are those of the modules that are in the program and in the library, and of Go: they ask that their text
// goes along. A module without one is an error.
func (b *builder) licenses(ctx context.Context, p platform) (all []entry, err error) {
	modules, err := b.run(ctx, p, "go", "list", "-e", "-deps", "-tags", "interposer", "-f",
		"{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Dir}}{{end}}{{end}}", "./cmd/iwarp", "./programs/engine")
	if err != nil {
		return nil, err
	}
	root, err := b.run(ctx, p, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	seen := make(map[string]bool)
	for line := range strings.Lines("go\t" + root + modules) {
		path, dir, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if path == "" || seen[path] {
			continue
		}
		seen[path] = true
		before := len(all)
		for _, pattern := range []string{"LICENSE*", "COPYING*", "NOTICE*", "PATENTS*"} {
			texts, err := matching(dir, pattern, "licenses/"+path+"/")
			if err != nil {
				return nil, err
			}
			all = append(all, texts...)
		}
		if len(all) == before {
			return nil, fmt.Errorf("%s has no text of its license", path)
		}
	}
	return all, nil
}

// files are files of the revision, below another directory.
func (b *builder) files(under string, names ...string) (all []entry, err error) {
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(b.clone, filepath.FromSlash(name)))
		if err != nil {
			return nil, err
		}
		all = append(all, entry{name: under + filepath.Base(name), bytes: data})
	}
	return all, nil
}

// matching are the files of a directory whose names match a pattern, below another directory.
func matching(dir, pattern, under string) (all []entry, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		if info, err := os.Stat(path); err != nil || info.IsDir() {
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		all = append(all, entry{name: under + filepath.Base(path), bytes: data})
	}
	return all, nil
}
