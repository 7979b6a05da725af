//go:build linux && (amd64 || arm64)

package verbs

import (
	"net"
	"net/netip"
	"slices"
	"syscall"

	"github.com/goiwarp/iwarp/internal/programs/datagram"
)

// An AH is a struct ibv_ah: an address that datagrams are sent to. Its handle is in the struct, by which a work request
// names it.
type AH struct {
	pd   Handle
	in   *PD // which pd names
	gid  GID
	addr netip.Addr
}

// CreateAH returns an AH for a GID, by way of one of this host's. EINVAL, unless the device is in the guise of RoCE,
// for an address that is not that of one host: there is no multicast.
func (d *Device) CreateAH(pd Handle, local, peer GID) (Handle, syscall.Errno) {
	p := d.pds.get(pd)
	addr := addressOf(local, peer)
	if p == nil || !d.roce || addr.IsUnspecified() || addr.IsMulticast() || broadcast(addr) {
		return 0, syscall.EINVAL
	}
	h, errno := made(d.ahs.add(&AH{pd, p, peer, addr}))
	if errno == fine {
		p.users.Add(1)
	}
	return h, errno
}

// broadcast reports whether an address is that of all hosts, or of all of a network that this host is in.
func broadcast(a netip.Addr) bool {
	if a == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
		return true
	}
	all, _ := net.InterfaceAddrs()
	return a.Is4() && slices.ContainsFunc(all, func(on net.Addr) bool {
		n, ok := on.(*net.IPNet)
		return ok && lastOf(n) == a
	})
}

// lastOf returns the last address of a network of IPv4, if that is of all hosts: one of 31 or 32 bits has none (RFC
// 3021).
func lastOf(n *net.IPNet) (last netip.Addr) {
	ip := n.IP.To4()
	if ones, bits := n.Mask.Size(); ip == nil || bits-ones < 2 {
		return last
	}
	var b [4]byte
	for i, m := range n.Mask[len(n.Mask)-4:] {
		b[i] = ip[i] | ^m
	}
	return netip.AddrFrom4(b)
}

// DestroyAH ends an AH.
func (d *Device) DestroyAH(h Handle) syscall.Errno {
	a := d.ahs.remove(h)
	if a == nil {
		return syscall.EINVAL
	}
	a.in.users.Add(-1)
	return fine
}

// AnswerAH returns the GIDs with which to answer a datagram, of which a receive has begun with r: EINVAL if it has not.
func (d *Device) AnswerAH(r *datagram.Route) (local, peer GID, errno syscall.Errno) {
	from, to, ok := r.GIDs()
	if !ok {
		return local, peer, syscall.EINVAL
	}
	return GID(to), GID(from), fine
}
