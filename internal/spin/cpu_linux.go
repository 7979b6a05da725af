package spin

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// ReadCPU reads what the runtime and the process's cgroup say. A cgroup that cannot be read bounds nothing.
func ReadCPU() CPU {
	cpu := CPU{Threads: min(runtime.GOMAXPROCS(0), runtime.NumCPU())}
	cpu.read(cgroups())
	return cpu
}

// read reads what bounds a process in directories of cgroups: the smallest quota, and how often any was throttled.
func (cpu *CPU) read(dirs []string) {
	for _, dir := range dirs {
		if q := quotaOf(dir); q > 0 && (cpu.Quota == 0 || q < cpu.Quota) {
			cpu.Quota = q
		}
		cpu.Throttled += throttledOf(dir)
	}
}

// cgroups returns the directories of the cgroup that bounds the process's CPU time and of those above it.
func cgroups() (dirs []string) {
	of, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	return findCgroups(of, mounts)
}

// findCgroups finds them in the contents of /proc/self/cgroup and /proc/self/mountinfo: of the CPU controller of
// version 1 and of version 2, where there are both.
func findCgroups(of, mounts []byte) (dirs []string) {
	paths := make(map[string]string) // by controller; "" for version 2
	for line := range bytes.Lines(of) {
		if f := strings.SplitN(strings.TrimSpace(string(line)), ":", 3); len(f) == 3 {
			for _, controller := range strings.Split(f[1], ",") {
				paths[controller] = f[2]
			}
		}
	}
	for line := range bytes.Lines(mounts) {
		f := strings.Fields(string(line)) // "30 23 0:26 ROOT MOUNT OPTIONS ... - TYPE SOURCE OPTIONS"
		dash := slices.Index(f, "-")
		if dash < 5 || len(f) < dash+4 {
			continue
		}
		kind := f[dash+1:]
		controller, found := "", kind[0] == "cgroup2"
		if kind[0] == "cgroup" {
			controller, found = "cpu", hasOption(kind[2], "cpu")
		}
		if path, ok := paths[controller]; found && ok {
			dirs = append(dirs, upwards(f[4], f[3], path)...)
		}
	}
	return dirs
}

func hasOption(options, name string) bool {
	for o := range strings.SplitSeq(options, ",") {
		if o == name {
			return true
		}
	}
	return false
}

// upwards returns the directories from that of a cgroup up to where its file system is mounted. The mount shows what is
// below root.
func upwards(mount, root, path string) (dirs []string) {
	rel, err := filepath.Rel(root, path)
	if err != nil || strings.HasPrefix(rel, "..") || strings.HasPrefix(path, "/..") { // it is not below the mount
		rel = "."
	}
	for ; rel != "."; rel = filepath.Dir(rel) {
		dirs = append(dirs, filepath.Join(mount, rel))
	}
	return append(dirs, mount)
}

// quotaOf returns how many processors' time a cgroup may use, and zero if it is not bounded.
func quotaOf(dir string) float64 {
	if b, err := os.ReadFile(filepath.Join(dir, "cpu.max")); err == nil { // "max 100000", or "50000 100000"
		if f := strings.Fields(string(b)); len(f) == 2 {
			return ratio(f[0], f[1])
		}
		return 0
	}
	quota, err1 := os.ReadFile(filepath.Join(dir, "cpu.cfs_quota_us"))
	period, err2 := os.ReadFile(filepath.Join(dir, "cpu.cfs_period_us"))
	if err1 != nil || err2 != nil {
		return 0
	}
	return ratio(strings.TrimSpace(string(quota)), strings.TrimSpace(string(period)))
}

// ratio divides two numbers, and returns zero where one of them is none, such as "max" and -1.
func ratio(a, b string) float64 {
	quota, err1 := strconv.ParseInt(a, 10, 64)
	period, err2 := strconv.ParseInt(b, 10, 64)
	if err1 != nil || err2 != nil || quota <= 0 || period <= 0 {
		return 0
	}
	return float64(quota) / float64(period)
}

// throttledOf returns how often a cgroup was throttled.
func throttledOf(dir string) uint64 {
	b, err := os.ReadFile(filepath.Join(dir, "cpu.stat"))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if n, ok := strings.CutPrefix(strings.TrimSpace(line), "nr_throttled "); ok {
			v, _ := strconv.ParseUint(n, 10, 64)
			return v
		}
	}
	return 0
}
