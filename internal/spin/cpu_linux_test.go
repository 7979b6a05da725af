package spin

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestFindCgroups finds the directories of a process's cgroups: of version 2, version 1, both, and in containers.
func TestFindCgroups(t *testing.T) {
	for name, c := range map[string]struct {
		of, mounts string
		want       []string
	}{
		"version 2": {
			"0::/user.slice/a.scope\n",
			"30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n",
			[]string{"/sys/fs/cgroup/user.slice/a.scope", "/sys/fs/cgroup/user.slice", "/sys/fs/cgroup"},
		},
		"version 2 in a namespace": {
			"0::/\n", "30 23 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup rw\n", []string{"/sys/fs/cgroup"},
		},
		"version 1 in a container": {
			"4:memory:/docker/x\n3:cpuset:/\n2:cpuacct,cpu:/docker/x\n",
			"31 30 0:27 /docker/x /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n" +
				"32 30 0:28 /docker/x /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n" +
				"33 30 0:29 / /sys/fs/cgroup/cpuset ro - cgroup cgroup rw,cpuset\n",
			[]string{"/sys/fs/cgroup/cpu,cpuacct"},
		},
		"both": {
			"1:cpu:/a\n0::/b\n",
			"31 30 0:27 / /c/cpu rw - cgroup cgroup rw,cpu\n32 30 0:28 / /c/unified rw - cgroup2 cgroup2 rw\n",
			[]string{"/c/cpu/a", "/c/cpu", "/c/unified/b", "/c/unified"},
		},
		"outside of the mount": {"0::/../x\n", "30 23 0:26 / /m rw - cgroup2 cgroup2 rw\n", []string{"/m"}},
		"none":                 {"", "30 23 0:26 / / rw - ext4 /dev/root rw\nshort\n", nil},
	} {
		if got := findCgroups([]byte(c.of), []byte(c.mounts)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestQuota reads the files of both versions.
func TestQuota(t *testing.T) {
	for name, c := range map[string]struct {
		files     map[string]string
		quota     float64
		throttled uint64
	}{
		"half a processor": {map[string]string{"cpu.max": "50000 100000\n"}, 0.5, 0},
		"no bound":         {map[string]string{"cpu.max": "max 100000\n"}, 0, 0},
		"version 1": {map[string]string{
			"cpu.cfs_quota_us": "250000\n", "cpu.cfs_period_us": "100000\n",
			"cpu.stat": "nr_periods 7\nnr_throttled 3\nthrottled_time 12\n",
		}, 2.5, 3},
		"version 1, no bound": {map[string]string{"cpu.cfs_quota_us": "-1\n", "cpu.cfs_period_us": "100000\n"}, 0, 0},
		"nothing":             {nil, 0, 0},
		"no numbers":          {map[string]string{"cpu.max": "a b", "cpu.stat": "nr_throttled x"}, 0, 0},
	} {
		dir := t.TempDir()
		for file, text := range c.files {
			testrig.Must(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
		}
		if got := quotaOf(dir); got != c.quota {
			t.Errorf("%s: a quota of %v, want %v", name, got, c.quota)
		}
		if got := throttledOf(dir); got != c.throttled {
			t.Errorf("%s: throttled %d times, want %d", name, got, c.throttled)
		}
	}
	var dirs []string
	for _, quota := range []string{"300000 100000", "150000 100000", "200000 100000", "max 100000"} {
		dir := t.TempDir()
		testrig.Must(t, os.WriteFile(filepath.Join(dir, "cpu.max"), []byte(quota), 0o600))
		testrig.Must(t, os.WriteFile(filepath.Join(dir, "cpu.stat"), []byte("nr_throttled 2\n"), 0o600))
		dirs = append(dirs, dir)
	}
	var all CPU
	if all.read(dirs); all.Quota != 1.5 || all.Throttled != 8 {
		t.Errorf("of four cgroups: %+v", all)
	}
	if cpu := ReadCPU(); cpu.Quota < 0 {
		t.Errorf("%+v", cpu)
	}
}

// TestProcessorsOfProcess: the runtime may run more goroutines at once than there are processors, or fewer.
func TestProcessorsOfProcess(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if n := ReadCPU().Threads; n != 1 {
		t.Errorf("GOMAXPROCS 1: %d processors", n)
	}
	many := 4 * runtime.NumCPU()
	runtime.GOMAXPROCS(many)
	if n := ReadCPU().Threads; n < 1 || n >= many {
		t.Errorf("GOMAXPROCS %d: %d processors", many, n)
	}
}
