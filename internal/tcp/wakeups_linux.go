package tcp

import "golang.org/x/sys/unix"

const canSuppress = true

// wakeFrom has a socket wake who waits for bytes when there are so many.
func (r *rawConn) wakeFrom(h *suppression, n int) bool {
	if h.setFn == nil {
		if !tellsOfLower(kernel()) {
			return false
		}
		h.setFn = func(fd uintptr) { h.done = setWakeFrom(int(fd), h.want) }
	}
	h.want, h.done = n, false
	return r.rc.Control(h.setFn) == nil && h.done
}

// setWakeFrom sets SO_RCVLOWAT.
func setWakeFrom(fd, n int) bool {
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVLOWAT, n) == nil
}

// tellsOfLower reports whether a kernel wakes those who wait for what is there already when SO_RCVLOWAT is lowered.
func tellsOfLower(major, minor int) bool { return major > 4 || major == 4 && minor >= 18 }

func kernel() (major, minor int) {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return 0, 0
	}
	return release(unix.ByteSliceToString(u.Release[:]))
}

// release reads the two numbers that a kernel's release begins with.
func release(s string) (major, minor int) {
	at := &major
	for _, c := range s {
		switch {
		case c >= '0' && c <= '9':
			*at = *at*10 + int(c-'0')
		case c == '.' && at == &major:
			at = &minor
		default:
			return major, minor
		}
	}
	return major, minor
}
