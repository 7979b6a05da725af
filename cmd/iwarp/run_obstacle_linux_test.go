//go:build amd64 || arm64

package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// exits is the code of a program that ends with status 7, by processor.
var exits = map[string][]byte{
	"amd64": {0xbf, 7, 0, 0, 0, 0xb8, 60, 0, 0, 0, 0x0f, 0x05},               // mov edi, 7; mov eax, 60; syscall
	"arm64": {0xe0, 0, 0x80, 0xd2, 0xa8, 0x0b, 0x80, 0xd2, 0x01, 0, 0, 0xd4}, // mov x0, 7; mov x8, 93; svc 0
}

// program64 is a program of 64 bits that no dynamic linker loads.
func program64(t *testing.T) []byte {
	t.Helper()
	const base, headers = 0x400000, 64 + 56
	code := exits[runtime.GOARCH]
	h := elf.Header64{
		Type: uint16(elf.ET_EXEC), Machine: uint16(machine()), Version: 1, Entry: base + headers, Phoff: 64,
		Ehsize: 64, Phentsize: 56, Phnum: 1, Shentsize: 64,
	}
	copy(h.Ident[:], ident(elf.ELFCLASS64))
	size := uint64(headers + len(code))
	p := elf.Prog64{
		Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Vaddr: base, Filesz: size, Memsz: size, Align: 0x1000,
	}
	return append(encoded(t, h, p), code...)
}

// program32 is the head of a program of 32 bits.
func program32(t *testing.T) []byte {
	t.Helper()
	h := elf.Header32{Type: uint16(elf.ET_EXEC), Machine: uint16(elf.EM_386), Version: 1, Ehsize: 52, Shentsize: 40}
	copy(h.Ident[:], ident(elf.ELFCLASS32))
	return encoded(t, h)
}

func machine() elf.Machine {
	if runtime.GOARCH == "arm64" {
		return elf.EM_AARCH64
	}
	return elf.EM_X86_64
}

func ident(class elf.Class) string {
	return elf.ELFMAG + string([]byte{byte(class), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)})
}

func encoded(t *testing.T, parts ...any) []byte {
	t.Helper()
	var b bytes.Buffer
	for _, p := range parts {
		testrig.Must(t, binary.Write(&b, binary.LittleEndian, p))
	}
	return b.Bytes()
}

// TestRunObstacle: iwarp run says in one line why a program cannot get the device, and runs it all the same. Of others
// it says nothing.
func TestRunObstacle(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	static := program64(t)
	for name, content := range map[string][]byte{
		"libiwarp-preload.so": static, "libiwarp-engine.so": static, "sources": []byte("0123\n"),
		"static": static, "setuid": static, "small": program32(t),
		"script": []byte("#!" + at("static") + "\n"), "plain": []byte("#!/bin/sh\nexit 7\n"),
	} {
		testrig.Must(t, os.WriteFile(at(name), content, 0o777))
	}
	if os.Getuid() == 0 {
		const other = 65534
		testrig.Must(t, os.Chown(at("setuid"), other, other))
		testrig.Must(t, os.Chmod(at("setuid"), 0o755|os.ModeSetuid))
	}
	const heirs = "it cannot get the device, but programs that it starts can"
	for _, c := range []struct{ program, says string }{
		{"static", "static is linked statically: " + heirs},
		{"script", "static is linked statically: " + heirs},
		{"small", "small is a program for 32 bits, and the library is for 64 bits: " + heirs},
		{"setuid", "setuid is set-user-id"},
		{"plain", ""},
	} {
		t.Run(c.program, func(t *testing.T) {
			if c.program == "setuid" && os.Getuid() != 0 {
				t.Skip("only root can give files away")
			}
			lines, status := runIn(t, dir, at(c.program))
			n := 0
			for _, line := range lines {
				if strings.HasPrefix(line, "iwarp: run: "+c.says) && strings.Contains(line, "cannot get the device") {
					n++
				}
			}
			if want := min(len(c.says), 1); n != want {
				t.Errorf("%d lines that begin with %q in %q, want %d", n, c.says, lines, want)
			}
			if c.program != "small" && status != 7 { // which this machine may have no code for
				t.Errorf("status %d: %q", status, lines)
			}
		})
	}
}

// runIn is iwarp run with the library of a directory. It returns the lines on standard error.
func runIn(t *testing.T, dir, program string) (lines []string, status int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "iwarp", "run", program)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "IWARP_LIBRARY="+dir) // far from the sources, so that nothing is built
	var stderr strings.Builder
	cmd.Stderr = &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return strings.Split(stderr.String(), "\n"), cmd.ProcessState.ExitCode()
}
