package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// release makes the archives of a revision, and SHA256SUMS, in a directory that there is. It returns the names of the
// archives.
func release(ctx context.Context, repository, rev, out string, platforms []string) (archives []string, err error) {
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
	b, err := newBuilder(ctx, repository, rev, scratch)
	if err != nil {
		return nil, err
	}
	here, err := b.build(ctx, platform{runtime.GOOS, runtime.GOARCH}) // which tells of itself
	if err != nil {
		return nil, err
	}
	common, err := b.common(ctx, here)
	if err != nil {
		return nil, err
	}
	var sums strings.Builder
	for _, p := range wanted {
		archive, sum, err := b.archive(ctx, p, common, out)
		if err != nil {
			return archives, fmt.Errorf("%s/%s: %w", p.os, p.arch, err)
		}
		archives = append(archives, archive)
		fmt.Fprintf(&sums, "%x  %s\n", sum, archive)
	}
	return archives, os.WriteFile(filepath.Join(out, "SHA256SUMS"), []byte(sums.String()), 0o644)
}

// archive makes the archive of a platform.
func (b *builder) archive(ctx context.Context, p platform, common []entry, out string) (name string,
	sum [sha256.Size]byte, err error) {
	program, err := b.build(ctx, p)
	if err != nil {
		return "", sum, err
	}
	own, err := b.own(ctx, program)
	if err != nil {
		return "", sum, err
	}
	entries := append(slices.Clone(common), own...)
	top := fmt.Sprintf("iwarp-%s-%s-%s", program.version, p.os, p.arch)
	name, pack := top+".tar.gz", tarball
	if p.os == "windows" {
		name, pack = top+".zip", zipped
	}
	octets, err := pack(top, program.committed, entries)
	if err != nil {
		return "", sum, err
	}
	return name, sha256.Sum256(octets), os.WriteFile(filepath.Join(out, name), octets, 0o644)
}
