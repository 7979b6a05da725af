package testrig

import (
	"errors"

	"golang.org/x/sys/unix"
)

// SetUpTUN gives a TUN device of Linux the address 198.51.100.1, and sets it up.
func SetUpTUN(device string) error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	req, err := unix.NewIfreq(device)
	if err != nil {
		return err
	}
	err = errors.Join(req.SetInet4Addr([]byte{198, 51, 100, 1}), unix.IoctlIfreq(s, unix.SIOCSIFADDR, req))
	err = errors.Join(err, req.SetInet4Addr([]byte{255, 255, 255, 0}), unix.IoctlIfreq(s, unix.SIOCSIFNETMASK, req))
	req.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return errors.Join(err, unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, req))
}
