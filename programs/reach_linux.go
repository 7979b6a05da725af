package programs

import (
	"io/fs"
	"os"
	"syscall"
)

// privileges says that a program runs with rights that its caller does not have: then the system loads only libraries of
// its own (AT_SECURE in getauxval(3)).
func privileges(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	const loses = ": it cannot get the device, nor can programs that it starts"
	stat := info.Sys().(*syscall.Stat_t)
	switch {
	case info.Mode()&fs.ModeSetuid != 0 && int(stat.Uid) != os.Getuid():
		return "is set-user-id" + loses
	case info.Mode()&fs.ModeSetgid != 0 && int(stat.Gid) != os.Getgid():
		return "is set-group-id" + loses
	case os.Getuid() != 0 && hasCapabilities(path):
		return "has file capabilities" + loses
	}
	return ""
}

func hasCapabilities(path string) bool {
	n, err := syscall.Getxattr(path, "security.capability", nil)
	return err == nil && n > 0
}
