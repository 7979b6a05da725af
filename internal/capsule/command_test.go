package capsule_test

import (
	"bytes"
	"errors"
	"testing"

	. "github.com/goiwarp/iwarp/internal/capsule"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// What Linux 6.1 sends, but for addresses and keys.
const (
	connectAdmin = `
		7f                      # 00 opcode: fabrics
		40                      # 01 flags: SGL
		00 10                   # 02 command id 0x1000
		01 00 00 00             # 04 type: Connect
		0000000000000000        # 08 reserved
		0000000000000000        # 10 metadata
		0010 0307 8088 ff ff    # 18 address 0xffff888007031000
		00 04 00                # 20 1024 bytes
		00 5a 3b 1c             # 23 key 0x1c3b5a00
		4f                      # 27 keyed, invalidate
		00 00                   # 28 record format 0
		00 00                   # 2a QID 0
		1f 00                   # 2c 32 entries
		00                      # 2e attributes
		00                      # 2f reserved
		98 3a 00 00             # 30 KATO 15000 ms
		00000000 00000000 00000000`
	write4K = `
		01                      # 00 opcode: Write
		40                      # 01 flags
		02 30                   # 02 command id 0x3002
		01 00 00 00             # 04 NSID 1
		0000000000000000        # 08
		0000000000000000        # 10
		0000000000000000        # 18 offset 0
		00 10 00 00             # 20 4096 bytes
		00 00 00                # 24 reserved
		01                      # 27 in-capsule
		08 00 00 00 01 00 00 00 # 28 LBA 0x100000008
		07 00                   # 30 8 blocks
		00 40                   # 32 FUA
		00000000 00000000 00000000`
	getCAP = `
		7f 40 01 00             # 00 fabrics, SGL, id 1
		04 00 00 00             # 04 Property Get
		0000000000000000 0000000000000000
		0000000000000000 000000 00000000 40 # 18 no data
		01 00 00 00             # 28 8 bytes
		00 00 00 00             # 2c CAP
		0000000000000000 0000000000000000`
	setCC = `
		7f 40 02 00             # 00 fabrics, SGL, id 2
		00 00 00 00             # 04 Property Set
		0000000000000000 0000000000000000
		0000000000000000 000000 00000000 40 # 18 no data
		00 00 00 00             # 28 4 bytes
		14 00 00 00             # 2c CC
		01 00 46 00 00 00 00 00 # 30 enabled, entries of 64 and 16 bytes
		0000000000000000`
	readLog = `
		02 40 05 00             # 00 Get Log Page, SGL, id 5
		ff ff ff ff             # 04 NSID
		0000000000000000 0000000000000000
		0010000000000000 000800 01000000 4f # 18 2048 bytes
		70 80                   # 28 discovery log, RAE
		ff 01                   # 2a 512 dwords
		00 00 00 00             # 2c
		00 04 00 00 00 00 00 00 # 30 from byte 1024 on
		0000000000000000`
	discard = `
		09 40 06 00             # 00 Dataset Management, SGL, id 6
		01 00 00 00             # 04 NSID 1
		0000000000000000 0000000000000000
		0000000000000000 00100000 000000 01 # 18 4096 bytes in the capsule
		01 00 00 00             # 28 2 ranges
		04 00 00 00             # 2c deallocate
		0000000000000000 0000000000000000`
)

func parse(t *testing.T, hex string) (Command, []byte) {
	t.Helper()
	raw := testrig.Bytes(t, hex)
	c, err := ParseCommand(raw)
	if err != nil {
		t.Fatal(err)
	}
	return c, raw
}

// TestCommands reads what a host sends, and writes the same again from what it says.
func TestCommands(t *testing.T) {
	keyed := SGL{Type: SGLKeyedInvalidate, Address: 0xffff888007031000, Length: 1024, Key: 0x1c3b5a00}
	connect := Connect{SGL: keyed, SQSize: 31, KeepAlive: 15000}
	write := IO{SGL: SGL{Type: SGLOffset, Length: 4096}, NSID: 1, LBA: 1<<32 + 8, Blocks: 8, Control: ControlFUA}
	log := GetLogPage{
		SGL: SGL{Type: SGLKeyedInvalidate, Address: 0x1000, Length: 2048, Key: 1}, NSID: AllNamespaces,
		Page: LogDiscovery, Retain: true, Dwords: 512, Offset: 1024,
	}
	dsm := DatasetManagement{SGL: SGL{Type: SGLOffset, Length: 4096}, NSID: 1, Ranges: 2, Deallocate: true}
	for _, v := range []struct {
		hex  string
		said any
		read func(*Command) any
		made Command
		id   uint16
	}{
		{connectAdmin, connect, func(c *Command) any { return c.Connect() }, connect.Command(), 0x1000},
		{write4K, write, func(c *Command) any { return c.IO() }, write.Command(OpWrite), 0x3002},
		{getCAP, PropertyAccess{Long: true}, property, PropertyAccess{Long: true}.Get(), 1},
		{setCC, PropertyAccess{PropertyCC, false, uint64(ConfigurationEnabled)}, property,
			PropertyAccess{PropertyCC, false, 0x460001}.Set(), 2},
		{readLog, log, func(c *Command) any { return c.GetLogPage() }, log.Command(), 5},
		{discard, dsm, func(c *Command) any { return c.DatasetManagement() }, dsm.Command(), 6},
	} {
		c, raw := parse(t, v.hex)
		if got := v.read(&c); got != v.said {
			t.Errorf("%+v, not %+v", got, v.said)
		}
		v.made.ID = v.id
		if got := v.made.Append(nil); !bytes.Equal(got, raw) {
			t.Errorf("%x\n, not %x", got, raw)
		}
	}
}

func property(c *Command) any {
	a, ok := c.Property()
	if !ok {
		return "of no size"
	}
	return a
}

// TestAdminCommands writes and reads the commands that have no vector of their own.
func TestAdminCommands(t *testing.T) {
	page := SGL{Type: SGLKeyed, Address: 7, Length: PageLen, Key: 9}
	identify := Identify{page, 3, StructDescriptors, 0x1234, 2}
	if c := identify.Command(); c.Identify() != identify || c.CDW != [6]uint32{0x12340003, 2 << 24} {
		t.Errorf("%+v", c)
	}
	features := Features{SGL{Type: SGLKeyed}, 1, FeatureQueues, 3, true, uint32(NewQueues(4))}
	if c := features.Get(); c.Features() != features || c.Opcode != OpGetFeatures ||
		c.CDW != [6]uint32{0x80000307, 0x00030003} {
		t.Errorf("%+v", c)
	}
	features.Save = false
	if c := features.Set(); c.Features() != features || c.Opcode != OpSetFeatures || c.CDW[0] != 0x307 {
		t.Errorf("%+v", c)
	}
	queue := Connect{SGL: page, Format: 2, QID: 3, SQSize: 4, Attr: AttrNoFlow, KeepAlive: 5}
	if c := queue.Command(); c.Connect() != queue || c.CDW != [6]uint32{0x00030002, 0x00040004, 5} {
		t.Errorf("%+v", c)
	}
	log := GetLogPage{SGL: page, NSID: 1, Page: LogEffects, Dwords: 0x54321, Offset: 1<<32 + 4}
	if c := log.Command(); c.GetLogPage() != log || c.CDW != [6]uint32{0x43200005, 5, 4, 1} {
		t.Errorf("%+v", c)
	}
	hint := DatasetManagement{SGL: page, NSID: 1, Ranges: MaxRanges}
	if c := hint.Command(); c.DatasetManagement() != hint || c.CDW != [6]uint32{255} {
		t.Errorf("%+v", c)
	}
	if q := NewQueues(4); q.Submission() != 4 || q.Completion() != 4 {
		t.Errorf("%#x", q)
	}
	if c := NewCommand(OpKeepAlive, 0); c.Opcode != OpKeepAlive || c.SGL.String() != "no data" {
		t.Errorf("%+v", c)
	}
	c := PropertyAccess{}.Get()
	c.CDW[0] = 2
	if _, ok := c.Property(); ok {
		t.Error("a size of 2 is read as one")
	}
}

// TestSGL has the two layouts of a descriptor, with all their bytes.
func TestSGL(t *testing.T) {
	for hex, s := range map[string]SGL{
		"0807060504030201 563412 ddccbbaa 40": {SGLKeyed, 0x0102030405060708, 0x123456, 0xaabbccdd},
		"0807060504030201 78563412 cdab99 01": {SGLOffset, 0x0102030405060708, 0x12345678, 0x99abcd},
	} {
		c := Command{SGL: s}
		raw := c.Append(nil)
		at(t, raw, 24, hex)
		if got, err := ParseCommand(raw); err != nil || got.SGL != s {
			t.Errorf("%+v, not %+v (%v)", got.SGL, s, err)
		}
	}
}

// TestShort refuses what is cut, and says where.
func TestShort(t *testing.T) {
	for format, p := range map[string]struct {
		parse func([]byte) error
		want  int
	}{
		"command":              {drop(ParseCommand), CommandLen},
		"completion":           {drop(ParseCompletion), CompletionLen},
		"Connect data":         {drop(ParseConnectData), ConnectDataLen},
		"Identify controller":  {drop(ParseIdentifyController), PageLen},
		"Identify namespace":   {drop(ParseIdentifyNamespace), PageLen},
		"namespace list":       {drop(ParseList), PageLen},
		"namespace descriptor": {drop(ParseDescriptors), PageLen},
		"discovery log":        {drop(ParseDiscoveryHeader), DiscoveryHeaderLen},
		"discovery entry":      {drop(ParseDiscoveryEntry), DiscoveryEntryLen},
		"ranges":               {func(b []byte) error { _, err := ParseRanges(b, 4); return err }, 4 * RangeLen},
	} {
		var e *Error
		if err := p.parse(make([]byte, p.want-1)); !errors.As(err, &e) || e.Offset != p.want-1 || e.Error() == "" {
			t.Errorf("%s, cut: %v", format, err)
		}
		if err := p.parse(make([]byte, p.want)); err != nil {
			t.Errorf("%s: %v", format, err)
		}
	}
}

func errorOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func drop[T any](parse func([]byte) (T, error)) func([]byte) error {
	return func(b []byte) error { _, err := parse(b); return err }
}

func TestCompletion(t *testing.T) {
	raw := testrig.Bytes(t, `
		00 10 00 00 00 00 00 00 # 00 result 0x1000
		05 00                   # 08 SQ head 5
		01 00                   # 0a SQ id 1
		02 30                   # 0c command id
		00 81                   # 0e LBA out of range, DNR`)
	want := Completion{0x1000, 5, 1, 0x3002, LBAOutOfRange | DNR}
	got, err := ParseCompletion(raw)
	if err != nil || got != want {
		t.Fatalf("%+v (%v)", got, err)
	}
	if again := want.Append(nil); !bytes.Equal(again, raw) {
		t.Errorf("%x", again)
	}
	if got.Status.Retryable() || got.Status.Code() != LBAOutOfRange ||
		got.Status.String() != "LBA out of range (0x080), do not retry" {
		t.Errorf("%v", got.Status)
	}
	if s := (0x7C1 | More).String(); s != "status (0x7c1)" {
		t.Errorf("%s", s)
	}
}

// TestNames has each opcode named by its queue.
func TestNames(t *testing.T) {
	for want, got := range map[string]string{
		"Keep Alive":                            OpKeepAlive.Name(true),
		"opcode 0x18":                           OpKeepAlive.Name(false),
		"Write":                                 OpWrite.Name(false),
		"Property Get":                          FabricsPropertyGet.String(),
		"fabrics command 0x42":                  FabricsType(0x42).String(),
		"SGL type 0x02":                         SGLType(2).String(),
		"4 bytes keyed at 0x10":                 SGL{Type: SGLKeyed, Address: 16, Length: 4}.String(),
		"4 bytes in-capsule at 0x10":            SGL{Type: SGLOffset, Address: 16, Length: 4}.String(),
		"0 bytes in-capsule at 0x10":            SGL{Type: SGLOffset, Address: 16}.String(),
		"keyed, invalidate":                     SGLKeyedInvalidate.String(),
		"rdma":                                  TransportRDMA.String(),
		"tcp":                                   TransportTCP.String(),
		"transport 2":                           Transport(2).String(),
		"referral":                              SubsystemReferral.String(),
		"disks":                                 SubsystemNVM.String(),
		"discovery":                             SubsystemDiscovery.String(),
		"subsystem of type 4":                   SubsystemType(4).String(),
		"id 0x0007 result 0x5: success (0x000)": Completion{Result: 5, ID: 7}.String(),
		"nvme: command: byte 3: the end, where there are to be 64 bytes": errorOf(drop(ParseCommand)(make([]byte,
			3))),
	} {
		if got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
	connect := Connect{}.Command()
	if connect.Name(true) != "Connect" || connect.Name(false) != "Connect" {
		t.Error(connect)
	}
	read := IO{Blocks: 1}.Command(OpRead)
	if read.Name(false) != "Read" {
		t.Error(read)
	}
}

// TestProperties takes apart what nvmet 6.1 says of itself.
func TestProperties(t *testing.T) {
	if c := NewCapabilities(128, 15); c.Entries() != 128 || c.Timeout() != 15 || c != 0x200f01007f {
		t.Errorf("%#x", uint64(c))
	}
	cc := ConfigurationEnabled
	if Configuration(0).Enabled() || !cc.Enabled() || cc.Shutdown() != 0 ||
		cc.WithShutdown(ShutdownNormal).Shutdown() != ShutdownNormal || cc.WithShutdown(2).WithShutdown(0) != cc {
		t.Errorf("%#x", cc)
	}
	for _, p := range []Property{PropertyCAP, PropertyVS, PropertyCC, PropertyCSTS} {
		if p.Long() != (p == PropertyCAP) {
			t.Errorf("%#x: of 8 bytes: %v", p, p.Long())
		}
	}
	if s := StatusReady | StatusShutdownDone; !s.Has(StatusReady) || s.Has(StatusFatal) || s != 9 {
		t.Errorf("%#x", s)
	}
}

// TestWithin has no sum that overflows.
func TestWithin(t *testing.T) {
	for _, v := range []struct {
		lba    uint64
		blocks uint32
		size   uint64
		want   bool
	}{
		{0, 8, 8, true}, {1, 8, 8, false}, {8, 0, 8, true}, {9, 0, 8, false}, {1<<64 - 1, 2, 8, false},
		{1<<64 - 1, 1, 1<<64 - 1, false},
	} {
		if got := Within(v.lba, v.blocks, v.size); got != v.want {
			t.Errorf("%+v: %v", v, got)
		}
	}
}
