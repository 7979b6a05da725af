package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // the formats
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// formats are the kinds of packages for Linux.
var formats = []string{"deb", "rpm"}

// packages makes the packages of a program and its files. They have the tree of the archive below /usr, and its
// documents in /usr/share/doc/iwarp.
func (r *release) packages(p *program, entries []entry) error {
	contents, err := r.contents(p, entries)
	if err != nil {
		return err
	}
	for _, format := range formats {
		packager, err := nfpm.Get(format)
		if err != nil {
			return err
		}
		info := r.description(p, contents)
		if err := nfpm.PrepareForPackager(info, format); err != nil {
			return err
		}
		var data bytes.Buffer
		if err := packager.Package(info, &data); err != nil {
			return err
		}
		if err := r.write(packager.ConventionalFileName(info), data.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) description(p *program, contents files.Contents) *nfpm.Info {
	removed := filepath.Join(b.clone, "dist", "packages", "remove.sh")
	return nfpm.WithDefaults(&nfpm.Info{
		Name: "iwarp", Arch: p.arch, Platform: "linux", Version: p.version, MTime: p.committed,
		Section: "net", Maintainer: "The iwarp authors <goiwarp@users.noreply.github.com>",
		Homepage: project, License: "Apache-2.0", Vendor: "The iwarp authors",
		Description: "RDMA over TCP without RDMA hardware\n" +
			"The command iwarp measures, pings, serves, copies and tests over iWARP (MPA, DDP, RDMAP).\n" +
			"It runs unmodified programs of libibverbs and librdmacm.",
		Overridables: nfpm.Overridables{
			Contents: contents,
			Scripts:  nfpm.Scripts{PreRemove: removed},
			RPM:      nfpm.RPM{BuildHost: "localhost", Summary: "RDMA over TCP without RDMA hardware"},
		},
	})
}

// contents writes the files of an archive to a directory, and says where they are in a package.
func (b *builder) contents(p *program, entries []entry) (all files.Contents, err error) {
	stage := filepath.Join(b.scratch, "stage-"+p.arch)
	for _, e := range sorted(entries) {
		source := filepath.Join(stage, filepath.FromSlash(e.name))
		if err := os.MkdirAll(filepath.Dir(source), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(source, e.bytes, 0o600); err != nil {
			return nil, err
		}
		all = append(all, &files.Content{Source: source, Destination: installed(e.name),
			FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: e.mode(), MTime: p.committed}})
	}
	return all, nil
}

// installed is where a package has a file of the archive.
func installed(name string) string {
	for _, tree := range []string{"bin/", "lib/", "share/"} {
		if strings.HasPrefix(name, tree) {
			return "/usr/" + name
		}
	}
	return fmt.Sprintf("/usr/share/doc/iwarp/%s", name)
}
