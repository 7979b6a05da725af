// Package hostinfo describes the machine that something is measured on, by what it has and not by its name.
package hostinfo

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"strings"
)

// A Machine is one.
type Machine struct {
	CPU    string `json:"cpu"` // its name, or its architecture where the system does not tell the name
	CPUs   int    `json:"cpus"`
	Kernel string `json:"kernel"`
	Go     string `json:"go"`
}

// This describes the machine that this runs on.
func This() Machine {
	return Machine{CPU: cmp.Or(field("/proc/cpuinfo", "model name"), runtime.GOARCH), CPUs: runtime.NumCPU(),
		Kernel: kernel(), Go: runtime.Version()}
}

// Text is the machine in a line of a document.
func (m Machine) Text() string {
	return fmt.Sprintf("%d CPUs, %s; %s; %s", m.CPUs, m.CPU, m.Kernel, m.Go)
}

// kernel is the system's name and version, without what its builder has added.
func kernel() string {
	text, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return runtime.GOOS
	}
	version, _, _ := strings.Cut(strings.TrimSpace(string(text)), "-")
	return runtime.GOOS + " " + version
}

// field returns what follows a name and a colon in a file of such lines. It is empty if there is none.
func field(file, name string) string {
	text, _ := os.ReadFile(file)
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
