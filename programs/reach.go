package programs

import (
	"bytes"
	"cmp"
	"debug/elf"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Obstacle says why a program cannot load the library, in words that a user understands. It is empty if nothing is
// known that keeps the program from it. A script is judged by its interpreter.
func (l Library) Obstacle(program string) string {
	path, err := exec.LookPath(program)
	if err != nil {
		return ""
	}
	path = interpreterOf(path)
	if why := cmp.Or(privileges(path), l.foreign(path)); why != "" {
		return fmt.Sprintf("%s %s", filepath.Base(path), why)
	}
	return ""
}

// interpreterOf returns what the system runs for a file: the interpreter that a script names in its first line.
func interpreterOf(path string) string {
	const nested = 4 // of Linux
	for range nested {
		words := strings.Fields(firstLine(path))
		if len(words) == 0 {
			break
		}
		path = words[0]
	}
	return path
}

// firstLine returns what follows #! in the first line of a file, if it begins so.
func firstLine(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	const most = 256 // of Linux
	start, _ := io.ReadAll(io.LimitReader(f, most))
	line, _, _ := bytes.Cut(start, []byte("\n"))
	named, isScript := bytes.CutPrefix(line, []byte("#!"))
	if !isScript {
		return ""
	}
	return string(named)
}

// foreign says what is different in a program from what the library was built for.
func (l Library) foreign(path string) string {
	program, err := elf.Open(path)
	if err != nil {
		return ""
	}
	defer program.Close()
	library, err := elf.Open(l.Preload())
	if err != nil {
		return ""
	}
	defer library.Close()
	const heirs = "it cannot get the device, but programs that it starts can"
	switch {
	case program.Class != library.Class:
		return fmt.Sprintf("is a program for %s, and the library is for %s: %s", bits(program), bits(library), heirs)
	case program.Machine != library.Machine:
		return fmt.Sprintf("is a program for %v, and the library is for %v: %s", program.Machine, library.Machine, heirs)
	case isStatic(program):
		return "is linked statically: " + heirs
	case usesMusl(program) && usesGlibc(library):
		return "is linked to musl, and the library to glibc: it cannot get the device"
	}
	return ""
}

func bits(f *elf.File) string {
	if f.Class == elf.ELFCLASS32 {
		return "32 bits"
	}
	return "64 bits"
}

// isStatic reports whether no dynamic linker loads the program. That linker itself, which may be run as a program, has
// a name for those who link to it.
func isStatic(f *elf.File) bool {
	name, _ := f.DynString(elf.DT_SONAME)
	return interpreter(f) == "" && len(name) == 0
}

// interpreter returns the dynamic linker that a program names.
func interpreter(f *elf.File) string {
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			name, _ := io.ReadAll(io.LimitReader(p.Open(), 4096))
			return string(bytes.TrimRight(name, "\x00"))
		}
	}
	return ""
}

func usesMusl(program *elf.File) bool {
	return strings.HasPrefix(filepath.Base(interpreter(program)), "ld-musl-")
}

func usesGlibc(library *elf.File) bool {
	needed, _ := library.ImportedLibraries()
	return slices.Contains(needed, "libc.so.6")
}
