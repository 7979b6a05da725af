package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A debian is a package of Debian's archive.
type debian struct{ path, sha256 string }

// glibcs are the C library, its headers and Linux's of Debian 11, which has glibc 2.31. They name no directory of the
// machine's, so whatever glibc that has, the library for programs runs wherever there is this one or a newer one.
var glibcs = map[string][]debian{
	"amd64": {
		{"g/glibc/libc6_2.31-13+deb11u11_amd64.deb", "05f7264da867b37f4c5ce49266b558ea1e81e05a9464f623152fca70f3550282"},
		{"g/glibc/libc6-dev_2.31-13+deb11u11_amd64.deb", "e7f7b45d9c5cfcf37609f0b6efd3c645272c812144703af89dfd32218fcb0fd3"},
		{"l/linux/linux-libc-dev_5.10.223-1_amd64.deb", "e3be603bd12377bb90fcfb0f2048ca3a81c886e49d6f09945b82159d1c54f7b2"},
	},
	"arm64": {
		{"g/glibc/libc6_2.31-13+deb11u11_arm64.deb", "baaa9aa184e2f21738c5819055e6740cc5b22f198e3f416e33f82b40ff6933d8"},
		{"g/glibc/libc6-dev_2.31-13+deb11u11_arm64.deb", "28d478134722dcd4b0bd2045a199301d18713bf95947b9fce66634e7aeacab2e"},
		{"l/linux/linux-libc-dev_5.10.223-1_arm64.deb", "8b6374a64412d33eac61d74f77b8f932da4b8a707ea8a614791e2a35b8917618"},
	},
}

// oldCompiler is the command of a compiler that finds all of glibcs before what the machine has. The headers of
// libibverbs and librdmacm are the machine's.
func (b *builder) oldCompiler(ctx context.Context, arch, compiler string) (string, error) {
	root := filepath.Join(b.scratch, "sysroot-"+arch)
	if err := unpack(ctx, root, glibcs[arch]); err != nil {
		return "", err
	}
	verbs := filepath.Join(root, "verbs")
	if err := os.Mkdir(verbs, 0o755); err != nil {
		return "", err
	}
	for _, headers := range []string{"infiniband", "rdma"} {
		if err := os.Symlink("/usr/include/"+headers, filepath.Join(verbs, headers)); err != nil {
			return "", err
		}
	}
	triple := strings.TrimSuffix(compilers[arch], "-gcc")
	at := strings.NewReplacer("ROOT", root, "TRIPLE", triple)
	return compiler + at.Replace(" --sysroot=ROOT -BROOT/usr/lib/TRIPLE -LROOT/usr/lib/TRIPLE -LROOT/lib/TRIPLE"+
		" -isystem ROOT/verbs -isystem ROOT/usr/include/TRIPLE -isystem ROOT/usr/include -ffile-prefix-map=ROOT=/"), nil
}

// unpack makes a root file system of packages.
func unpack(ctx context.Context, root string, packages []debian) error {
	archive, err := archiveOf(ctx)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	for _, p := range packages {
		file := filepath.Join(root, filepath.Base(p.path))
		if _, err := command(ctx, root, nil, "/usr/lib/apt/apt-helper", "download-file", archive+"/pool/main/"+p.path, file,
			"SHA256:"+p.sha256); err != nil {
			return err
		}
		if _, err := command(ctx, root, nil, "dpkg-deb", "--extract", file, root); err != nil {
			return err
		}
	}
	return filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.Type() != fs.ModeSymlink {
			return err
		}
		return within(root, path)
	})
}

// within has an absolute link lead to the same place below a root.
func within(root, link string) error {
	to, err := os.Readlink(link)
	if err != nil || !filepath.IsAbs(to) {
		return err
	}
	if err := os.Remove(link); err != nil {
		return err
	}
	return os.Symlink(filepath.Join(root, to), link)
}

// archiveOf is where this machine has its packages from.
func archiveOf(ctx context.Context) (string, error) {
	said, err := command(ctx, ".", nil, "apt-get", "indextargets", "--format", "$(REPO_URI)", "Label: Debian")
	if err != nil {
		return "", err
	}
	if archives := strings.Fields(said); len(archives) > 0 {
		return strings.TrimSuffix(archives[0], "/"), nil
	}
	return "", fmt.Errorf("apt-get knows no archive of Debian: run apt-get update")
}
