package procstat

import (
	"time"

	"golang.org/x/sys/windows"
)

// Taken returns the time that this process has computed since it began. Windows does not
// tell how often its threads were switched.
func Taken() (cpu time.Duration, switches int64) {
	var begun, ended, kernel, user windows.Filetime
	if windows.GetProcessTimes(windows.CurrentProcess(), &begun, &ended, &kernel, &user) != nil {
		return 0, 0
	}
	return ticks(kernel) + ticks(user), 0
}

// ticks are units of 100 ns.
func ticks(t windows.Filetime) time.Duration {
	return time.Duration(int64(t.HighDateTime)<<32|int64(t.LowDateTime)) * 100
}
