package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// newestGlibc is that of Debian 11, which the library is built with. It needs no newer one.
const newestGlibc = 31

// hasLibrary: the library is in the archive, knows no path of the machine, and needs no new glibc.
func hasLibrary(t *testing.T, r *release, top string, files map[string]packed) {
	if _, err := exec.LookPath("gcc"); err != nil || runtime.GOOS != "linux" {
		testrig.Lacks(t, "there is no gcc: "+strings.Join(r.missing, "; "))
	}
	for _, name := range libraries {
		file := files[top+"/lib/iwarp/"+name]
		if file.Text == "" {
			t.Fatalf("%s is missing: %s", name, strings.Join(r.missing, "; "))
		}
		if strings.Contains(file.Text, filepath.Join(os.TempDir(), "release")) {
			t.Errorf("%s names the directory that it was built in", name)
		}
		path := filepath.Join(t.TempDir(), name)
		testrig.Must(t, os.WriteFile(path, []byte(file.Text), file.Mode))
		if strings.Contains(strings.Join(r.missing, ""), "glibc") {
			testrig.Lacks(t, strings.Join(r.missing, "; "))
		}
		wantOldGlibc(t, path)
	}
}

// libraries are the library's two files.
var libraries = []string{"libiwarp-preload.so", "libiwarp-engine.so"}

func wantOldGlibc(t *testing.T, path string) {
	t.Helper()
	needed, err := neededGlibc(path)
	testrig.Must(t, err)
	t.Logf("%s needs glibc %v", filepath.Base(path), needed)
	if needed < 2 || needed > newestGlibc {
		t.Errorf("%s needs glibc %v", path, needed)
	}
}

// rpingOnArm64 is rping of Debian 11, with the libraries that it needs.
var rpingOnArm64 = append(glibcs["arm64"][:1:1],
	debian{"r/rdma-core/rdmacm-utils_33.2-1_arm64.deb", "a6d775bacebd435312cf8414cbb19031c01d6726daab7020a1fd3aef51e1732f"},
	debian{"r/rdma-core/libibverbs1_33.2-1_arm64.deb", "751524ba6ea869c469481149b3da1c1fd12badcb5cf4e0d72a6e6db13f85cd54"},
	debian{"r/rdma-core/librdmacm1_33.2-1_arm64.deb", "5fc59f41af63f0b606ac3932fa05729ceec256a54e12ef3d6bbc9be9bb9ba14f"},
	debian{"libn/libnl3/libnl-3-200_3.4.0-1+b1_arm64.deb", "fb680756a369d03f841ec53c18efc47902ac9edc40242f83a5530e6b0c81d087"},
	debian{"g/gcc-10/libgcc-s1_10.2.1-6_arm64.deb", "e2fcdb378d3c1ad1bcb64d4fb6b37aab44011152beca12a4944f435a2582df1f"},
	debian{"libn/libnl3/libnl-route-3-200_3.4.0-1+b1_arm64.deb", "64bcaf9a4aedb14aa18201c20d3c3201ea7e352eb5a0fc41eb63d374eeaacd38"},
)

// TestArm64: the library for arm64 that is released runs with Debian 11's rping and glibc, emulated by QEMU.
func TestArm64(t *testing.T) {
	if !testrig.Everything() {
		t.Skip("it builds the library without paths, for which everything is compiled anew: IWARP_ALL=1 has it")
	}
	const emulator = "qemu-aarch64-static"
	needsTool(t, emulator, compilers["arm64"])
	b, err := newBuilder(t.Context(), repository, "HEAD", t.TempDir())
	testrig.Must(t, err)
	here, err := b.build(t.Context(), platform{runtime.GOOS, runtime.GOARCH})
	testrig.Must(t, err)
	files, missing, err := b.library(t.Context(), platform{"linux", "arm64"}, here)
	testrig.Must(t, err)
	root := t.TempDir()
	if err := unpack(t.Context(), root, rpingOnArm64); err != nil || missing != "" {
		testrig.Lacks(t, fmt.Sprint(missing, err))
	}
	for _, file := range files {
		path := filepath.Join(root, filepath.Base(file.name))
		testrig.Must(t, os.WriteFile(path, file.bytes, 0o755))
		if file.executable {
			wantOldGlibc(t, path)
		}
	}
	lib := filepath.Join(root, "usr/lib/aarch64-linux-gnu") + ":" + filepath.Join(root, "lib/aarch64-linux-gnu")
	rping := func(args ...string) *exec.Cmd {
		return exec.CommandContext(testrig.Within(t), emulator, append([]string{"-L", root, "-E", "LD_LIBRARY_PATH=" + lib,
			"-E", "LD_PRELOAD=" + filepath.Join(root, libraries[0]),
			filepath.Join(root, "usr/bin/rping"), "-a", "127.0.0.1", "-p", "7997", "-C", "5", "-v"}, args...)...)
	}
	var said testrig.Buffer
	server := rping("-s")
	server.Stdout, server.Stderr = &said, &said
	testrig.Must(t, server.Start())
	var out []byte
	for range 10 {
		time.Sleep(time.Second)
		if out, err = rping("-c").CombinedOutput(); err == nil {
			break
		}
	}
	if !strings.Contains(string(out), "rdma-ping-4:") {
		t.Errorf("%v: %s, and the server: %s", err, out, said.String())
	}
	testrig.Must(t, server.Wait())
}

// TestNoCompiler: a library that cannot be built is left out, with the reason, and platforms without one need none.
func TestNoCompiler(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	b := &builder{scratch: t.TempDir()}
	for _, arch := range []string{"amd64", "arm64"} {
		files, missing, err := b.library(t.Context(), platform{"linux", arch}, nil)
		if err != nil || files != nil || !strings.Contains(missing, "library for programs") {
			t.Errorf("%s: %v, %q, %v", arch, files, missing, err)
		}
	}
	for _, p := range []platform{{"linux", "386"}, {"darwin", "arm64"}} {
		if files, missing, err := b.library(t.Context(), p, nil); files != nil || missing != "" || err != nil {
			t.Errorf("%v: %v, %q, %v", p, files, missing, err)
		}
	}
}
