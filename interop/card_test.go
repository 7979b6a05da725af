//go:build interop

package interop_test

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/usertcp"
)

// The two ends of a card's link: ours, and the guest's.
const (
	ourIP, guestIP   = "192.168.79.1", "192.168.79.2"
	ourMAC, guestMAC = "52:54:00:77:01:01", "52:54:00:77:01:02"
)

// setCardUp is the guest's part: siw moves to the second card, and ARP has nothing to ask (busybox's own ip knows no
// neighbors).
const setCardUp = `ip addr add ` + guestIP + `/24 dev eth1 && ip link set eth1 up &&
	/usr/bin/ip neigh add ` + ourIP + ` lladdr ` + ourMAC + ` dev eth1 nud permanent &&
	rdma link delete siw0 && rdma link add siw1 type siw netdev eth1`

const etherMTU, etherHeader, etherIPv4 = 1500, 14, 0x0800

// cardQueue is how many frames wait for a QEMU that is slow: more than a connection has under way (4 MiB).
const cardQueue = 4096

// A card is the link to the guest's second network card: QEMU carries its frames over a Unix socket, each behind its
// length in 4 bytes. It takes neither root nor a network device of the host's.
type card struct {
	link
	header []byte   // of each frame to the guest
	conn   net.Conn // once QEMU has connected
	out    chan []byte
	ended  chan struct{}
	once   sync.Once
}

// A link is where a QEMU connects to.
type link struct {
	path string
	ln   *net.UnixListener
}

// listenCard awaits a guest's card.
func listenCard(t testing.TB) *card {
	t.Helper()
	return &card{link: listenLink(t), header: header(t), out: make(chan []byte, cardQueue), ended: make(chan struct{})}
}

// listenLink awaits a QEMU.
func listenLink(t testing.TB) link {
	t.Helper()
	// A test's own directory may have a comma in its name, which QEMU takes for the end of it.
	dir, err := os.MkdirTemp("", "card") //nolint:usetesting // see above
	testrig.Must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "card")
	ln, err := net.Listen("unix", path)
	testrig.Must(t, err)
	t.Cleanup(func() { ln.Close() })
	return link{path, ln.(*net.UnixListener)}
}

// header is that of an IPv4 packet to the guest.
func header(t testing.TB) (h []byte) {
	t.Helper()
	for _, mac := range []string{guestMAC, ourMAC} {
		address, err := net.ParseMAC(mac)
		testrig.Must(t, err)
		h = append(h, address...)
	}
	return binary.BigEndian.AppendUint16(h, etherIPv4)
}

// stack returns a TCP in user space on the link, once QEMU has the other end of it.
func (c *card) stack(t testing.TB) *usertcp.Stack {
	t.Helper()
	testrig.Must(t, c.ln.SetDeadline(time.Now().Add(bootTime)))
	var err error
	c.conn, err = c.ln.Accept()
	testrig.Must(t, err)
	go c.send()
	s, err := usertcp.New(usertcp.Config{Addresses: []netip.Addr{netip.MustParseAddr(ourIP)}, Link: c})
	testrig.Must(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// MTU is usertcp.Link's.
func (c *card) MTU() int { return etherMTU }

// Send is usertcp.Link's. What finds no room is lost.
func (c *card) Send(packet []byte) {
	frame := binary.BigEndian.AppendUint32(nil, uint32(len(c.header)+len(packet)))
	frame = append(append(frame, c.header...), packet...)
	select {
	case c.out <- frame:
	default:
	}
}

// send brings the frames to QEMU.
func (c *card) send() {
	for {
		select {
		case frame := <-c.out:
			if _, err := c.conn.Write(frame); err != nil {
				return
			}
		case <-c.ended:
			return
		}
	}
}

// Receive is usertcp.Link's.
func (c *card) Receive(deliver func(packet []byte)) error {
	r := bufio.NewReader(c.conn)
	for {
		frame, err := readFrame(r)
		switch {
		case errors.Is(err, net.ErrClosed), errors.Is(err, io.EOF): // by us, or QEMU has ended
			return nil
		case err != nil:
			return err
		}
		if len(frame) > etherHeader && binary.BigEndian.Uint16(frame[etherHeader-2:]) == etherIPv4 {
			deliver(frame[etherHeader:])
		}
	}
}

func readFrame(r io.Reader) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	frame := make([]byte, binary.BigEndian.Uint32(length[:]))
	_, err := io.ReadFull(r, frame)
	return frame, err
}

// Close is usertcp.Link's.
func (c *card) Close() error {
	c.once.Do(func() { close(c.ended) })
	return c.conn.Close()
}
