package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// A release is what is made of a revision, in a directory that there is.
type release struct {
	*builder
	here    *program // which builds the library, and prints its pages
	common  []entry
	out     string
	made    []made
	missing []string // what was left out, and why
}

// made is a file that was released.
type made struct {
	name string
	sum  [sha256.Size]byte
}

// makeRelease makes the archives and packages of a revision, an installer and a formula for them, SHA256SUMS, and the
// notes of the release.
func makeRelease(ctx context.Context, repository, rev, out string, platforms []string) (r *release, err error) {
	wanted := make([]platform, len(platforms))
	for i, name := range platforms {
		if wanted[i], err = parsePlatform(name); err != nil {
			return nil, err
		}
	}
	scratch, err := os.MkdirTemp("", "release")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(scratch)
	r = &release{out: out}
	if r.builder, err = newBuilder(ctx, repository, rev, scratch); err != nil {
		return nil, err
	}
	if r.here, err = r.build(ctx, platform{runtime.GOOS, runtime.GOARCH}); err != nil {
		return nil, err
	}
	if r.common, err = r.builder.common(ctx, r.here); err != nil {
		return nil, err
	}
	for _, p := range wanted {
		if err := r.add(ctx, p); err != nil {
			return nil, fmt.Errorf("%s/%s: %w", p.os, p.arch, err)
		}
	}
	return r, r.finish(ctx)
}

// add makes the archive of a platform, and its packages.
func (r *release) add(ctx context.Context, p platform) error {
	program, err := r.build(ctx, p)
	if err != nil {
		return err
	}
	own, err := r.own(ctx, program)
	if err != nil {
		return err
	}
	library, missing, err := r.library(ctx, p, r.here)
	if err != nil {
		return err
	}
	if missing != "" {
		r.missing = append(r.missing, fmt.Sprintf("%s/%s: %s", p.os, p.arch, missing))
	}
	entries := slices.Concat(r.common, own, library)
	if err := r.archive(program, entries); err != nil || p.os != "linux" {
		return err
	}
	return r.packages(program, entries)
}

// archiveName is that of a platform's archive, and the directory in it is what comes before the suffix.
func (r *release) archiveName(p platform) (top, name string) {
	top = fmt.Sprintf("iwarp-%s-%s-%s", r.version, p.os, p.arch)
	if p.os == "windows" {
		return top, top + ".zip"
	}
	return top, top + ".tar.gz"
}

func (r *release) archive(p *program, entries []entry) error {
	pack := tarball
	if p.os == "windows" {
		pack = zipped
	}
	top, name := r.archiveName(p.platform)
	data, err := pack(top, p.committed, entries)
	if err != nil {
		return err
	}
	return r.write(name, data, 0o644)
}

// write writes a file that is released.
func (r *release) write(name string, data []byte, mode os.FileMode) error {
	r.made = append(r.made, made{name, sha256.Sum256(data)})
	path := filepath.Join(r.out, name)
	return cmp.Or(os.WriteFile(path, data, mode), os.Chmod(path, mode))
}

// finish writes what names the archives, and has the program checked.
func (r *release) finish(ctx context.Context) error {
	if why := r.vulnerable(ctx, r.here); why != "" {
		r.missing = append(r.missing, why)
	}
	if err := r.fill(); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(r.out, "NOTES.md"), []byte(r.notes.page(r.version)), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(r.sums()), 0o644)
}

// sums has a line for each file, as sha256sum -c reads it.
func (r *release) sums() string {
	var b strings.Builder
	for _, m := range r.made {
		fmt.Fprintf(&b, "%x  %s\n", m.sum, m.name)
	}
	return b.String()
}
