package usertcp

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// A TUN is a [Link] to the host's network, by a network device of Linux's.
type TUN struct {
	file *os.File
	name string
	mtu  int
}

// OpenTUN opens a TUN device, which is made if there is none of that name: that takes CAP_NET_ADMIN, and one made so is
// gone after Close. If name is empty, the kernel picks one. The device has to be given an address, and to be up, by
// others (such as ip(8)). Its address must not be one of the Stack's; the host reaches the Stack from it. Its MTU is
// that of the device at this moment.
func OpenTUN(name string) (*TUN, error) {
	t, err := openTUN(name)
	if err != nil {
		return nil, fmt.Errorf("usertcp: TUN %s: %w", name, err)
	}
	return t, nil
}

func openTUN(name string) (*TUN, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	t := &TUN{}
	if err := t.attach(fd, name); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	t.file = os.NewFile(uintptr(fd), t.name)
	return t, nil
}

// attach makes a descriptor that of the device.
func (t *TUN) attach(fd int, name string) error {
	req, err := unix.NewIfreq(name)
	if err != nil {
		return fmt.Errorf("a name has at most %d bytes: %w", unix.IFNAMSIZ-1, err)
	}
	req.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, req); err != nil {
		if errors.Is(err, unix.EINVAL) {
			err = fmt.Errorf("it is a device of another kind, or that is no name for one: %w", err)
		}
		return err
	}
	t.name = req.Name()
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	if req, err = unix.NewIfreq(t.name); err != nil {
		return err
	}
	if err := unix.IoctlIfreq(s, unix.SIOCGIFMTU, req); err != nil {
		return err
	}
	t.mtu = int(req.Uint32())
	return nil
}

// Name returns the name of the device.
func (t *TUN) Name() string { return t.name }

// MTU returns the MTU that the device had when it was opened.
func (t *TUN) MTU() int { return t.mtu }

// Send gives a packet to the kernel, which drops it where it has no room for it.
func (t *TUN) Send(packet []byte) { _, _ = t.file.Write(packet) }

// Receive delivers what the kernel sends over the device, until Close.
func (t *TUN) Receive(deliver func(packet []byte)) error {
	for b := make([]byte, MaxMTU); ; {
		n, err := t.file.Read(b)
		switch {
		case errors.Is(err, os.ErrClosed):
			return nil
		case err != nil:
			return fmt.Errorf("usertcp: TUN %s: %w", t.name, err)
		}
		deliver(b[:n])
	}
}

// Close closes the device.
func (t *TUN) Close() error {
	if err := t.file.Close(); !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}
