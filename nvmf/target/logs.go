package target

import (
	"net"
	"net/netip"
	"strconv"

	"github.com/goiwarp/iwarp/internal/capsule"
)

// healthLen is the length of a log page that has nothing to say here.
const healthLen = 512

// logPage returns a part of a log page. What is asked for beyond its end is zero.
func (r *request) logPage() (capsule.Status, error) {
	g := r.cmd.GetLogPage()
	page := r.page(g.Page)
	n := uint64(g.Dwords) * 4
	switch {
	case page == nil:
		return capsule.InvalidLogPage | capsule.DNR, nil
	case g.Offset > uint64(len(page)) || g.Offset%4 != 0, g.Dwords == 0 || n > uint64(r.q.t.cfg.MaxData):
		return capsule.InvalidField | capsule.DNR, nil
	}
	return r.giveFilled(page[g.Offset:], int(n))
}

// page returns the whole of a log page, or nil.
func (r *request) page(p capsule.LogPage) []byte {
	if r.ctrl.discovery {
		if p == capsule.LogDiscovery {
			return r.q.t.discoveryLog(r.ctrl.host.HostNQN, r.q.qp.LocalAddr())
		}
		return nil
	}
	switch p {
	case capsule.LogError, capsule.LogHealth, capsule.LogFirmware:
		return make([]byte, healthLen)
	case capsule.LogNamespaces:
		return capsule.AppendList(nil, nil)
	case capsule.LogEffects:
		return effects().Append(nil)
	}
	return nil
}

// effects are the commands that there are.
func effects() *capsule.Effects {
	e := new(capsule.Effects)
	for o := range capsule.Opcode(0xFF) {
		if adminCommand(o) != nil {
			e.Admin[o] = capsule.EffectSupported
		}
		if ioCommand(o) != nil {
			e.IO[o] = capsule.EffectSupported
		}
	}
	for _, o := range []capsule.Opcode{capsule.OpWrite, capsule.OpWriteZeroes, capsule.OpDatasetManagement} {
		e.IO[o] |= capsule.EffectContent
	}
	return e
}

// discoveryLog tells a host of the subsystem, at the addresses that were configured, or where it has come itself.
func (t *Target) discoveryLog(host string, local net.Addr) []byte {
	addrs := t.cfg.Addresses
	if at, err := netip.ParseAddrPort(local.String()); err == nil && len(addrs) == 0 {
		addrs = []netip.AddrPort{at}
	}
	if !t.cfg.allows(host) {
		addrs = nil
	}
	b := capsule.DiscoveryHeader{Generation: t.generation, Records: uint64(len(addrs))}.Append(nil)
	for i, at := range addrs {
		b = t.discovers(uint16(i+1), at).Append(b)
	}
	return b
}

func (t *Target) discovers(port uint16, at netip.AddrPort) capsule.DiscoveryEntry {
	e := capsule.DiscoveryEntry{
		Transport: capsule.TransportRDMA, Family: capsule.FamilyIPv4, Type: capsule.SubsystemNVM,
		PortID: port, ControllerID: capsule.AnyController, AdminSQSize: capsule.AdminEntries,
		Service: strconv.Itoa(int(at.Port())), SubsystemNQN: t.cfg.NQN, Address: at.Addr().Unmap().String(),
		RDMA: capsule.RDMASpecific{QPType: 1, Provider: 1, Manager: 1},
	}
	if at.Addr().Unmap().Is6() {
		e.Family = capsule.FamilyIPv6
	}
	return e
}
