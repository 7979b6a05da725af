package target_test

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/goiwarp/iwarp/internal/capsule"
	. "github.com/goiwarp/iwarp/nvmf/target"
)

// TestFeatures takes what a host sets, and forgets it when the controller is reset.
func TestFeatures(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) { c.Queues = 4 })
	w := r.admin()
	none := capsule.SGL{Type: capsule.SGLKeyed}
	set := func(f capsule.Feature, v uint32) uint64 {
		return w.want(capsule.Success, capsule.Features{SGL: none, Feature: f, Value: v}.Set(), nil).Result
	}
	get := func(f capsule.Feature) uint64 {
		return w.want(capsule.Success, capsule.Features{SGL: none, Feature: f}.Get(), nil).Result
	}
	if got := set(capsule.FeatureQueues, uint32(capsule.NewQueues(64))); got != uint64(capsule.NewQueues(4)) {
		t.Errorf("64 queues asked for, and %#x granted", got)
	}
	if got := set(capsule.FeatureQueues, 0x0001_0002); got != uint64(capsule.NewQueues(2)) {
		t.Errorf("three and two asked for, and %#x granted", got)
	}
	set(capsule.FeatureKeepAlive, 90000)
	set(capsule.FeatureAsyncEvent, 0x100)
	for f, want := range map[capsule.Feature]uint64{
		capsule.FeatureQueues: uint64(capsule.NewQueues(2)), capsule.FeatureKeepAlive: 90000,
		capsule.FeatureAsyncEvent: 0x100, capsule.FeatureWriteCache: 1,
	} {
		if got := get(f); got != want {
			t.Errorf("feature %#x: %#x, not %#x", f, got, want)
		}
	}
	w.want(capsule.Success, capsule.Features{SGL: w.keyed(0, 16), Feature: capsule.FeatureHostID}.Get(), nil)
	same(t, "the host's identifier", w.get(0, 16), append([]byte{1}, make([]byte, 15)...))
	w.want(capsule.Success, capsule.PropertyAccess{Property: capsule.PropertyCC}.Set(), nil)
	w.enable()
	if get(capsule.FeatureAsyncEvent) != 0 || get(capsule.FeatureQueues) != uint64(capsule.NewQueues(4)) {
		t.Error("a reset keeps what was set")
	}
}

// TestEvents keeps as many requests for events as it has said, and refuses one more. Others are answered meanwhile.
func TestEvents(t *testing.T) {
	t.Parallel()
	w := newRig(t, nil).admin()
	const kept, refused = 4, 20
	answers := make(chan completion, kept+refused)
	for range kept + refused { // which may overtake each other
		came := w.send(capsule.NewCommand(capsule.OpAsyncEvent, 0), nil)
		go func() {
			select {
			case c := <-came:
				answers <- c
			case <-w.over:
			}
		}()
	}
	for range refused {
		if got := <-answers; got.Status != capsule.AsyncLimit|capsule.DNR {
			t.Fatalf("%v", got)
		}
	}
	for range 64 {
		w.want(capsule.Success, capsule.NewCommand(capsule.OpKeepAlive, 0), nil)
	}
	if len(answers) != 0 {
		t.Errorf("%v: an event of which nobody knows", <-answers)
	}
	if got := w.want(capsule.Success, abortOf(0, 1), nil); got.Result != capsule.AbortNone {
		t.Errorf("result %d of an Abort", got.Result)
	}
}

// TestLogs reads logs, also by pieces, and zeroes past their end.
func TestLogs(t *testing.T) {
	t.Parallel()
	w := newRig(t, nil).admin()
	read := func(p capsule.LogPage, off uint64, n int) []byte {
		w.want(capsule.Success, capsule.GetLogPage{SGL: w.keyed(0, n), NSID: capsule.AllNamespaces, Page: p,
			Dwords: uint32(n / 4), Offset: off}.Command(), nil)
		return w.get(0, n)
	}
	effect := func(half uint64, o capsule.Opcode) uint32 {
		return binary.LittleEndian.Uint32(read(capsule.LogEffects, 1024*half, 1024)[4*int(o):])
	}
	for o, want := range map[capsule.Opcode][2]uint32{
		capsule.OpWrite: {0, 3}, capsule.OpRead: {1, 1}, capsule.OpCompare: {0, 0}, capsule.OpIdentify: {1, 0},
		capsule.OpDatasetManagement: {1, 3},
	} {
		if got := [2]uint32{effect(0, o), effect(1, o)}; got != want {
			t.Errorf("opcode %#x: %d, not %d", o, got, want)
		}
	}
	for _, p := range []capsule.LogPage{capsule.LogError, capsule.LogHealth,
		capsule.LogFirmware, capsule.LogNamespaces} {
		same(t, "a log", read(p, 0, 512), make([]byte, 512))
		same(t, "a log, and what is after it", read(p, 508, 8192), make([]byte, 8192))
	}
}

// TestDiscovery reads the discovery log as nvme-cli does: its head, and then all of it.
func TestDiscovery(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) {
		c.Addresses = []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:4420"),
			netip.MustParseAddrPort("[2001:db8::1]:4421")}
		c.Hosts = []string{hostNQN}
	})
	discover := func(host string) (w *wire, records uint64) {
		w = r.dial(0, 32)
		data := w.data(capsule.AnyController, capsule.DiscoveryNQN)
		data.HostNQN = host
		c := capsule.Connect{SGL: w.put(data.Append(nil), 0), SQSize: 31}.Command()
		if got := w.do(c, nil); got.Status != capsule.Success {
			return w, 0
		}
		w.enable()
		i, err := capsule.ParseIdentifyController(w.page(capsule.Identify{Structure: capsule.StructController}))
		must(t, err)
		if i.Type != capsule.ControllerDiscovery || i.Namespaces != 0 || i.SubsystemNQN != capsule.DiscoveryNQN {
			t.Errorf("%+v", i)
		}
		w.want(capsule.Success, capsule.GetLogPage{SGL: w.keyed(0, 1024), Page: capsule.LogDiscovery, Retain: true,
			Dwords: 256}.Command(), nil)
		h, err := capsule.ParseDiscoveryHeader(w.get(0, 1024))
		must(t, err)
		return w, h.Records
	}
	w, n := discover(hostNQN)
	if n != 2 {
		t.Fatalf("%d records", n)
	}
	w.want(capsule.Success, capsule.GetLogPage{SGL: w.keyed(0, 3072), Page: capsule.LogDiscovery,
		Dwords: 768}.Command(), nil)
	log := w.get(0, 3072)
	for i, want := range []capsule.DiscoveryEntry{
		{Family: capsule.FamilyIPv4, PortID: 1, Service: "4420", Address: "192.0.2.1"},
		{Family: capsule.FamilyIPv6, PortID: 2, Service: "4421", Address: "2001:db8::1"},
	} {
		want.Transport, want.Type, want.ControllerID, want.AdminSQSize = capsule.TransportRDMA, capsule.SubsystemNVM,
			capsule.AnyController, 32
		want.SubsystemNQN, want.RDMA = nqn, capsule.RDMASpecific{QPType: 1, Provider: 1, Manager: 1}
		if got, err := capsule.ParseDiscoveryEntry(log[1024*(i+1):]); err != nil || got != want {
			t.Errorf("%+v (%v)", got, err)
		}
	}
	for _, c := range []capsule.Command{
		capsule.Identify{SGL: w.keyed(0, 4096), NSID: 1}.Command(), capsule.NewCommand(capsule.OpAbort, 0),
		capsule.Features{SGL: capsule.SGL{Type: capsule.SGLKeyed}, Feature: capsule.FeatureQueues}.Set(),
		capsule.GetLogPage{SGL: w.keyed(0, 512), Page: capsule.LogHealth, Dwords: 128}.Command(),
	} {
		if got := w.do(c, nil); got.Status == capsule.Success {
			t.Errorf("%s of a discovery controller", c.Name(true))
		}
	}
	if _, n := discover("nqn.2026-11.example:stranger"); n != 0 {
		t.Errorf("%d records for a stranger", n)
	}
}

// TestIdentity gives disks names that stay the same with theirs, and differ with it.
func TestIdentity(t *testing.T) {
	t.Parallel()
	names := func(nqn, name string, uuid [16]byte) string {
		r := newRig(t, func(c *Config) {
			c.NQN = nqn
			c.Namespaces[0].Name, c.Namespaces[0].UUID = name, uuid
		})
		w := r.dial(0, 32)
		w.want(capsule.Success, capsule.Connect{SGL: w.put(w.data(capsule.AnyController, nqn).Append(nil), 0),
			SQSize: 31}.Command(), nil)
		w.enable()
		all, err := capsule.ParseDescriptors(w.page(capsule.Identify{Structure: capsule.StructDescriptors, NSID: 1}))
		must(t, err)
		n, err := capsule.ParseIdentifyNamespace(w.page(capsule.Identify{NSID: 1}))
		must(t, err)
		if len(all) != 2 || n.NGUID != [16]byte(all[1].ID) {
			t.Errorf("%v", all)
		}
		return string(all[0].ID)
	}
	first := names(nqn, "disk", [16]byte{})
	if names(nqn, "disk", [16]byte{}) != first {
		t.Error("another UUID after a restart")
	}
	if names(nqn, "other", [16]byte{}) == first || names(nqn+"2", "disk", [16]byte{}) == first {
		t.Error("two disks with one UUID")
	}
	if own := [16]byte{1, 2, 3}; names(nqn, "disk", own) != string(own[:]) {
		t.Error("another UUID than it was told")
	}
}
