package target_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/capsule"
	"github.com/goiwarp/iwarp/internal/ulpdata"
	"github.com/goiwarp/iwarp/mpa"
	. "github.com/goiwarp/iwarp/nvmf/target"
)

// TestRejects refuses, before there is a connection, what cannot be a queue, and says why.
func TestRejects(t *testing.T) { synctest.Test(t, testRejects) }

func testRejects(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Controllers, c.Queues = 1, 1 })
	request := func(qid, hsq uint16) []byte {
		return ulpdata.NVMeRequest{QID: qid, HRQSize: 32, HSQSize: hsq}.Append(nil)
	}
	future := request(0, 31)
	future[0] = 1
	refused := func(status uint16, private []byte, ird mpa.Depth) {
		t.Helper()
		_, err := r.try(private, mpa.Offer{IRD: ird})
		var e *iwarp.RejectError
		if !errors.As(err, &e) {
			t.Fatalf("%v, not a rejection", err)
		}
		if got, err := ulpdata.ParseNVMeReject(e.PrivateData); err != nil || got.Status != status {
			t.Errorf("%v (%v), not status %d", got, err, status)
		}
		_ = e.Conn.Close()
	}
	refused(1, nil, 16)
	refused(1, request(0, 31)[:31], 16)
	refused(2, future, 16)
	refused(3, request(2, 127), 16)
	refused(4, request(0, 32), 16)
	refused(4, request(0, 0), 16)
	refused(4, request(1, 128), 16)
	refused(7, request(0, 31), 0)
	for range 3 { // of which one may be without a Connect
		r.dial(0, 32)
	}
	refused(6, request(0, 31), 16)
}

// TestConnectRefused names the field of a Connect that is wrong, and forbids to try again what cannot heal.
func TestConnectRefused(t *testing.T) {
	t.Parallel()
	const again = capsule.DNR
	r := newRig(t, func(c *Config) { c.Hosts = []string{hostNQN, hostNQN + "2"}; c.Controllers = 3 })
	a := r.admin()
	good := func(ctrl uint16) capsule.ConnectData { return a.data(ctrl, nqn) }
	other, stranger, fixed := good(capsule.AnyController), good(capsule.AnyController), good(5)
	other.SubsystemNQN, stranger.HostNQN = "nqn.2026-11.example:other", "nqn.2026-11.example:stranger"
	lists := r.dial(0, 32) // a controller of the discovery subsystem
	asks := capsule.Connect{SGL: lists.put(lists.data(capsule.AnyController, capsule.DiscoveryNQN).Append(nil), 0),
		SQSize: 31}
	lists.ctrl = uint16(lists.want(capsule.Success, asks.Command(), nil).Result)
	named, lister := good(a.ctrl), good(lists.ctrl)
	named.HostNQN += "2"
	gone, foreign, discovery := good(0x77), good(a.ctrl), good(a.ctrl)
	foreign.HostID[5], discovery.SubsystemNQN = 9, capsule.DiscoveryNQN
	for name, v := range map[string]struct {
		qid    uint16
		n      capsule.Connect
		data   capsule.ConnectData
		want   capsule.Status
		result uint64
	}{
		"format": {0, capsule.Connect{SQSize: 31, Format: 1}, good(0xffff),
			capsule.IncompatibleFormat | again, 0},
		"queue": {0, capsule.Connect{SQSize: 31, QID: 1}, good(0xffff),
			capsule.InvalidParameter | again, 42},
		"no entries":       {0, capsule.Connect{}, good(0xffff), capsule.InvalidParameter | again, 44},
		"too many entries": {0, capsule.Connect{SQSize: 32}, good(0xffff), capsule.InvalidParameter | again, 44},
		"controller":       {0, capsule.Connect{SQSize: 31}, fixed, capsule.InvalidParameter | again, 0x10010},
		"subsystem":        {0, capsule.Connect{SQSize: 31}, other, capsule.InvalidParameter | again, 0x10100},
		"host":             {0, capsule.Connect{SQSize: 31}, stranger, capsule.InvalidHost | again, 0},
		"controller gone":  {1, capsule.Connect{SQSize: 31, QID: 1}, gone, capsule.InvalidParameter, 0x10010},
		"another's":        {1, capsule.Connect{SQSize: 31, QID: 1}, foreign, capsule.InvalidParameter, 0x10010},
		"of another name":  {1, capsule.Connect{SQSize: 31, QID: 1}, named, capsule.InvalidParameter, 0x10010},
		"of discovery":     {1, capsule.Connect{SQSize: 31, QID: 1}, lister, capsule.InvalidParameter, 0x10010},
		"I/O to discovery": {1, capsule.Connect{SQSize: 31, QID: 1}, discovery,
			capsule.InvalidParameter | again, 0x10100},
		"queue not granted": {8, capsule.Connect{SQSize: 31, QID: 8}, good(a.ctrl),
			capsule.InvalidParameter | again, 42},
	} {
		t.Run(name, func(t *testing.T) {
			if v.qid == 8 {
				a.want(capsule.Success, capsule.Features{Feature: capsule.FeatureQueues,
					SGL: capsule.SGL{Type: capsule.SGLKeyed}, Value: uint32(capsule.NewQueues(7))}.Set(), nil)
			}
			w := r.dial(v.qid, 32)
			v.n.SGL = w.put(v.data.Append(nil), 0)
			if got := w.want(v.want, v.n.Command(), nil); got.Result != v.result {
				t.Errorf("result %#x, not %#x", got.Result, v.result)
			}
			_ = w.qp.Close()
		})
	}
	io := r.io(a, 1, 32)
	twin := r.dial(1, 32)
	n := capsule.Connect{SGL: twin.put(good(a.ctrl).Append(nil), 0), QID: 1, SQSize: 31}
	twin.want(capsule.SequenceError, n.Command(), nil)
	n.SGL = io.put(good(a.ctrl).Append(nil), 0)
	io.want(capsule.SequenceError|again, n.Command(), nil) // twice on one queue
	b := r.dial(0, 32)
	b.host = 2
	b.connect(0)
	if b.ctrl == a.ctrl {
		t.Errorf("two controllers have the number %d", a.ctrl)
	}
	c := r.dial(0, 32)
	third := good(capsule.AnyController)
	third.HostID[5] = 3 // a host that comes again has its older controller ended
	c.want(capsule.ControllerBusy, capsule.Connect{SGL: c.put(third.Append(nil), 0), SQSize: 31}.Command(), nil)
	d := r.dial(0, 32)
	endless := good(0xffff).Append(nil)
	copy(endless[512:], fmt.Sprintf("%0256d", 1))
	got := d.want(capsule.InvalidParameter|again, capsule.Connect{SGL: d.put(endless, 0), SQSize: 31}.Command(), nil)
	if got.Result != 0x10200 {
		t.Errorf("a name without an end: %#x", got.Result)
	}
}

// TestCommandsRefused tells of every field of a command that is wrong. The connection stays.
func TestCommandsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) {
		disk, err := NewMemory(1<<20, 4096)
		must(t, err)
		c.Namespaces = append(c.Namespaces, Namespace{Backend: disk, ReadOnly: true})
	})
	a := r.admin()
	w := r.io(a, 1, 16)
	none := capsule.SGL{Type: capsule.SGLKeyed}
	read := func(lba uint64, blocks uint32, sgl capsule.SGL) capsule.Command {
		return capsule.IO{SGL: sgl, NSID: 1, LBA: lba, Blocks: blocks}.Command(capsule.OpRead)
	}
	write := func(nsid uint32, sgl capsule.SGL) capsule.Command {
		return capsule.IO{SGL: sgl, NSID: nsid, Blocks: 1}.Command(capsule.OpWrite)
	}
	bad := func(c capsule.Command, change func(*capsule.Command)) capsule.Command { change(&c); return c }
	block := w.keyed(0, 512)
	inCapsule := func(off uint64, n uint32) capsule.SGL {
		return capsule.SGL{Type: capsule.SGLOffset, Address: off, Length: n}
	}
	for name, v := range map[string]struct {
		c    capsule.Command
		want capsule.Status
	}{
		"no SGL": {bad(read(0, 1, block),
			func(c *capsule.Command) { c.Flags = 0 }), capsule.InvalidField},
		"fused": {bad(read(0, 1, block),
			func(c *capsule.Command) { c.Flags |= 1 }), capsule.InvalidField},
		"compare": {capsule.IO{SGL: block, NSID: 1,
			Blocks: 1}.Command(capsule.OpCompare), capsule.InvalidOpcode},
		"reservation":              {capsule.NewCommand(capsule.OpReservationAcquire, 1), capsule.InvalidOpcode},
		"property on an I/O queue": {capsule.PropertyAccess{Long: true}.Get(), capsule.InvalidOpcode},
		"no namespace": {bad(read(0, 1, block), func(c *capsule.Command) { c.NSID = 3 }),
			capsule.InvalidNamespace},
		"namespace 0": {bad(read(0, 1, block), func(c *capsule.Command) { c.NSID = 0 }),
			capsule.InvalidNamespace},
		"all namespaces": {bad(read(0, 1, block),
			func(c *capsule.Command) { c.NSID = capsule.AllNamespaces }), capsule.InvalidNamespace},
		"one past the end":         {read(8192, 1, block), capsule.LBAOutOfRange},
		"over the end":             {read(8191, 2, w.keyed(0, 1024)), capsule.LBAOutOfRange},
		"a sum that overflows":     {read(1<<64-1, 2, w.keyed(0, 1024)), capsule.LBAOutOfRange},
		"a product that overflows": {read(1<<55, 1, block), capsule.LBAOutOfRange},
		"too little room":          {read(0, 2, block), capsule.InvalidSGLLength},
		"too much room":            {read(0, 1, w.keyed(0, 1024)), capsule.InvalidSGLLength},
		"no room":                  {read(0, 1, none), capsule.InvalidSGLLength},
		"beyond MDTS": {read(0, DefaultMaxData/512+1,
			w.keyed(0, DefaultMaxData+512)), capsule.InvalidField},
		"read into the capsule":    {read(0, 1, inCapsule(0, 512)), capsule.InvalidField},
		"other subtype":            {read(0, 1, capsule.SGL{Type: 0x42, Length: 512}), capsule.InvalidField},
		"other subtype in capsule": {write(1, capsule.SGL{Type: 0x00, Length: 512}), capsule.InvalidField},
		"a segment of descriptors": {write(1, capsule.SGL{Type: 0x20, Length: 512}), capsule.InvalidSGLType},
		"beyond the capsule":       {write(1, inCapsule(0, 512)), capsule.InvalidSGLOffset},
		"an offset that overflows": {write(1, inCapsule(1<<64-512, 512)), capsule.InvalidSGLOffset},
		"write protected": {capsule.IO{SGL: w.keyed(0, 4096), NSID: 2,
			Blocks: 1}.Command(capsule.OpWrite), capsule.WriteProtected},
		"zeroes write protected": {capsule.IO{SGL: none, NSID: 2,
			Blocks: 1}.Command(capsule.OpWriteZeroes), capsule.WriteProtected},
		"discard write protected": {capsule.DatasetManagement{SGL: w.keyed(0, 16), NSID: 2, Ranges: 1,
			Deallocate: true}.Command(), capsule.WriteProtected},
		"zeroes with data": {capsule.IO{SGL: block, NSID: 1, Blocks: 1}.Command(capsule.OpWriteZeroes),
			capsule.InvalidSGLLength},
		"zeroes past the end": {capsule.IO{SGL: none, NSID: 1, LBA: 8192,
			Blocks: 1}.Command(capsule.OpWriteZeroes), capsule.LBAOutOfRange},
		"flush of nothing": {capsule.NewCommand(capsule.OpFlush, 9), capsule.InvalidNamespace},
		"flush with data": {bad(capsule.NewCommand(capsule.OpFlush, 1),
			func(c *capsule.Command) { c.SGL = block }), capsule.InvalidSGLLength},
		"discard without ranges": {capsule.DatasetManagement{SGL: w.keyed(0, 16), NSID: 1, Ranges: 2,
			Deallocate: true}.Command(), capsule.InvalidSGLLength},
		"discard of too much": {capsule.DatasetManagement{SGL: w.keyed(0, 8192), NSID: 1, Ranges: 2,
			Deallocate: true}.Command(), capsule.InvalidSGLLength},
		"discard of nothing": {capsule.DatasetManagement{SGL: w.keyed(0, 16), NSID: 9, Ranges: 1,
			Deallocate: true}.Command(), capsule.InvalidNamespace},
	} {
		t.Run(name, func(t *testing.T) {
			w.t = t
			defer func() { w.t = r.t }()
			w.want(v.want|capsule.DNR, v.c, nil)
		})
	}
	past := capsule.Range{Blocks: 2, LBA: 8191}.Append(capsule.Range{Blocks: 1}.Append(nil))
	w.want(capsule.LBAOutOfRange|capsule.DNR, capsule.DatasetManagement{SGL: w.put(past, 0), NSID: 1, Ranges: 2,
		Deallocate: true}.Command(), nil)
	w.want(capsule.Success, read(8191, 1, block), nil)
}

// TestAdminRefused does the same for the Admin Queue.
func TestAdminRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	w := r.dial(0, 32)
	w.want(capsule.InvalidOpcode|capsule.DNR, capsule.NewCommand(capsule.OpKeepAlive, 0), nil)
	w.want(capsule.InvalidOpcode|capsule.DNR, capsule.PropertyAccess{Long: true}.Get(), nil)
	w.connect(0)
	page := w.keyed(0, capsule.PageLen)
	// not enabled yet
	w.want(capsule.SequenceError, capsule.Identify{SGL: page, Structure: capsule.StructController}.Command(), nil)
	w.want(capsule.Success, capsule.NewCommand(capsule.OpKeepAlive, 0), nil)
	w.enable()
	none := capsule.SGL{Type: capsule.SGLKeyed}
	odd := capsule.PropertyAccess{Property: capsule.PropertyCC}.Get()
	odd.CDW[0] = 3
	log := func(p capsule.LogPage, dwords uint32, off uint64, n int) capsule.Command {
		return capsule.GetLogPage{SGL: w.keyed(0, n), NSID: capsule.AllNamespaces, Page: p,
			Dwords: dwords, Offset: off}.Command()
	}
	feature := func(f capsule.Feature, value uint32) capsule.Command {
		return capsule.Features{SGL: none, Feature: f, Value: value}.Set()
	}
	for name, v := range map[string]struct {
		c    capsule.Command
		want capsule.Status
	}{
		"no such command": {capsule.NewCommand(0x42, 0), capsule.InvalidOpcode},
		"no such fabrics": {capsule.Command{Opcode: capsule.OpFabrics, Flags: 0x40, NSID: 5,
			SGL: none}, capsule.InvalidOpcode},
		"half a property": {capsule.PropertyAccess{}.Get(), capsule.InvalidField},
		"too long a property": {capsule.PropertyAccess{Property: capsule.PropertyCSTS,
			Long: true}.Get(), capsule.InvalidField},
		"no size":          {odd, capsule.InvalidField},
		"no such property": {capsule.PropertyAccess{Property: 0x68, Long: false}.Get(), capsule.InvalidField},
		"property set":     {capsule.PropertyAccess{Property: capsule.PropertyCSTS}.Set(), capsule.InvalidField},
		"page of another length": {capsule.Identify{SGL: w.keyed(0, 512),
			Structure: capsule.StructController}.Command(), capsule.InvalidSGLLength},
		"page of other commands": {capsule.Identify{SGL: page, Structure: capsule.StructCommandSet,
			CommandSet: 2}.Command(), capsule.InvalidField},
		"command set space": {capsule.Identify{SGL: page, NSID: 1,
			Structure: capsule.StructCommandSetSpace}.Command(), capsule.InvalidField},
		"namespace 0": {capsule.Identify{SGL: page}.Command(), capsule.InvalidNamespace},
		"all namespaces": {capsule.Identify{SGL: page, NSID: capsule.AllNamespaces}.Command(),
			capsule.InvalidNamespace},
		"list above all": {capsule.Identify{SGL: page, NSID: capsule.AllNamespaces,
			Structure: capsule.StructNamespaces}.Command(), capsule.InvalidNamespace},
		"names of none": {capsule.Identify{SGL: page, NSID: 2, Structure: capsule.StructDescriptors}.Command(),
			capsule.InvalidNamespace},
		"page in the capsule": {capsule.Identify{SGL: capsule.SGL{Type: capsule.SGLOffset, Length: 4096},
			Structure: capsule.StructController}.Command(), capsule.InvalidField},
		"no such log":          {log(0x42, 128, 0, 512), capsule.InvalidLogPage},
		"discovery log":        {log(capsule.LogDiscovery, 128, 0, 512), capsule.InvalidLogPage},
		"log past the end":     {log(capsule.LogHealth, 128, 516, 512), capsule.InvalidField},
		"an offset of none":    {log(capsule.LogHealth, 128, 1<<63, 512), capsule.InvalidField},
		"an odd offset":        {log(capsule.LogHealth, 128, 2, 512), capsule.InvalidField},
		"a log without an end": {log(capsule.LogHealth, 0, 0, 512), capsule.InvalidField},
		"too long a log":       {log(capsule.LogHealth, 1<<20, 0, 512), capsule.InvalidField},
		"no such feature":      {feature(0x42, 0), capsule.InvalidField},
		"65536 queues":         {feature(capsule.FeatureQueues, 0xffff), capsule.InvalidField},
		"to save": {capsule.Features{SGL: none, Feature: capsule.FeatureKeepAlive, Save: true}.Set(),
			capsule.FeatureNotSaveable},
		"to get no such feature": {capsule.Features{SGL: none, Feature: 0x42}.Get(), capsule.InvalidField},
		"to get what was saved": {capsule.Features{SGL: none, Feature: capsule.FeatureKeepAlive,
			Select: 2}.Get(), capsule.InvalidField},
		"host id of 8 bytes": {capsule.Features{SGL: w.keyed(0, 8), Feature: capsule.FeatureHostID}.Get(),
			capsule.InvalidSGLLength},
	} {
		t.Run(name, func(t *testing.T) {
			w.t = t
			defer func() { w.t = r.t }()
			w.want(v.want|capsule.DNR, v.c, nil)
		})
	}
	same(t, "a namespace that is not there", w.page(capsule.Identify{NSID: 2}), make([]byte, capsule.PageLen))
}
