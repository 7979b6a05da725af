package capsule_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	. "github.com/goiwarp/iwarp/internal/capsule"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// at checks bytes at an offset of a page.
func at(t *testing.T, page []byte, offset int, hex string) {
	t.Helper()
	want := testrig.Bytes(t, hex)
	if got := page[offset:][:len(want)]; !bytes.Equal(got, want) {
		t.Errorf("byte %d: %x, not %x", offset, got, want)
	}
}

func TestConnectData(t *testing.T) {
	d := ConnectData{HostID: [16]byte{1, 15: 16}, ControllerID: AnyController, SubsystemNQN: "nqn.2026-11.example:disk",
		HostNQN: "nqn.2026-11.example:host"}
	raw := d.Append([]byte("in front"))[8:]
	if len(raw) != ConnectDataLen {
		t.Fatalf("%d bytes", len(raw))
	}
	at(t, raw, 0, "01 0000000000000000000000000000 10 ffff 00")
	at(t, raw, 256, "6e 71 6e 2e")
	at(t, raw, 512, "6e 71 6e 2e")
	if got, err := ParseConnectData(raw); err != nil || got != d {
		t.Errorf("%+v (%v)", got, err)
	}
	d.HostNQN = strings.Repeat("n", 300)
	if got, err := ParseConnectData(d.Append(nil)); err != nil || len(got.HostNQN) != NQNLen-1 {
		t.Errorf("%d bytes of a name (%v)", len(got.HostNQN), err)
	}
	for offset := range map[int]bool{OffsetSubsystem: true, OffsetHost: true} {
		endless := bytes.Clone(raw)
		copy(endless[offset:][:NQNLen], bytes.Repeat([]byte{'n'}, NQNLen))
		var e *Error
		if _, err := ParseConnectData(endless); !errors.As(err, &e) || e.Offset != offset {
			t.Errorf("a name without an end: %v", err)
		}
	}
	if ConnectOffset(OffsetController, true) != 0x10010 || ConnectOffset(OffsetQID, false) != 42 {
		t.Error("the offset of a wrong field")
	}
}

func TestIdentifyController(t *testing.T) {
	i := IdentifyController{
		Serial: "0123456789abcdef0123", Model: "iwarp", Firmware: "1",
		Sharing: MultipleControllers, MaxData: 5, ControllerID: 0x102, Version: Version13, Events: 1 << 8,
		Attributes: KeepAliveByTraffic, Type: ControllerIO, AbortLimit: 3, EventLimit: 3,
		LogAttributes: LogEffectsPage | LogExtended,
		KeepAlive:     10, QueueEntries: QueueEntries, MaxCommands: 128, Namespaces: 2,
		Optional:   HasDatasets | HasWriteZeroes,
		WriteCache: CachePresent, SGLs: SGLSupported | SGLKeyedSupported | SGLOffsetSupported, MaxNamespaces: 2,
		SubsystemNQN: "nqn.2026-11.example:disk", CommandLen: 260, ResponseLen: 1, MaxDescriptors: 1,
	}
	raw := i.Append(nil)
	if len(raw) != PageLen {
		t.Fatalf("%d bytes", len(raw))
	}
	at(t, raw, 4, "3031323334353637383961626364656630313233 6977617270 20")
	at(t, raw, 63, "20 31 20202020202020 00")
	at(t, raw, 76, "02 05 0201 00030100")            // CMIC, MDTS, CNTLID, VER
	at(t, raw, 92, "00010000 40000000")              // OAES, CTRATT
	at(t, raw, 111, "01")                            // CNTRLTYPE
	at(t, raw, 258, "03 03 00 06")                   // ACL, AERL, FRMW, LPA
	at(t, raw, 320, "0a00")                          // KAS
	at(t, raw, 512, "66 44 8000 02000000 0c00")      // SQES, CQES, MAXCMD, NN, ONCS
	at(t, raw, 525, "01")                            // VWC
	at(t, raw, 536, "05001000 02000000")             // SGLS, MNAN
	at(t, raw, 768, "6e 71 6e")                      // SUBNQN
	at(t, raw, 1792, "04010000 01000000 0000 00 01") // IOCCSZ, IORCSZ, ICDOFF, FCATT, MSDBD
	if got, err := ParseIdentifyController(raw); err != nil || got != i {
		t.Errorf("%+v (%v)", got, err)
	}
}

func TestIdentifyNamespace(t *testing.T) {
	n := IdentifyNamespace{
		Size: 1 << 33, Capacity: 1 << 33, Used: 5, Sharing: NamespaceShared,
		Deallocated: DeallocatedZero | DeallocateByZeroes,
		Attributes:  NamespaceWriteProtected, NGUID: [16]byte{1, 15: 2}, EUI64: [8]byte{3}, BlockShift: 12,
	}
	raw := n.Append(nil)
	at(t, raw, 0, "0000000002000000 0000000002000000 0500000000000000 00 00 00")
	at(t, raw, 30, "01 00 00 09")
	at(t, raw, 99, "01 00000000 01")
	at(t, raw, 119, "02 03")
	at(t, raw, 128, "0000 0c 00")
	if got, err := ParseIdentifyNamespace(raw); err != nil || got != n {
		t.Errorf("%+v (%v)", got, err)
	}
	raw[25], raw[26] = 17, 0x21 // 18 formats, of which the last is in use
	at(t, raw, 128+4*17, "00000000")
	copy(raw[128+4*17:], []byte{8, 0, 9})
	if got, err := ParseIdentifyNamespace(raw); err != nil || got.BlockShift != 9 || got.Metadata != 8 {
		t.Errorf("%+v (%v)", got, err)
	}
	for _, formats := range []byte{16, 0} {
		raw[25] = formats
		var e *Error
		if _, err := ParseIdentifyNamespace(raw); !errors.As(err, &e) || e.Offset != 26 {
			t.Errorf("%d formats: %v", formats+1, err)
		}
	}
	n.Metadata = 8
	if got, err := ParseIdentifyNamespace(n.Append(nil)); err != nil || got != n {
		t.Errorf("%+v (%v)", got, err)
	}
	raw[25], raw[26] = 255, 0x6F
	if _, err := ParseIdentifyNamespace(raw); err != nil {
		t.Errorf("the last format that there can be: %v", err)
	}
}

func TestLists(t *testing.T) {
	raw := AppendList(nil, []uint32{1, 7, 0x01020304})
	at(t, raw, 0, "01000000 07000000 04030201 00000000")
	if got, err := ParseList(raw); err != nil || !slices.Equal(got, []uint32{1, 7, 0x01020304}) {
		t.Errorf("%v (%v)", got, err)
	}
	full := make([]uint32, MaxList+1)
	for i := range full {
		full[i] = uint32(i + 1)
	}
	if got, err := ParseList(AppendList(nil, full)); err != nil || !slices.Equal(got, full[:MaxList]) {
		t.Errorf("%d of %d (%v)", len(got), MaxList, err)
	}
}

func TestDescriptors(t *testing.T) {
	all := []Descriptor{{DescriptorUUID, bytes.Repeat([]byte{7}, 16)}, {DescriptorCommandSet, []byte{0}}}
	raw := AppendDescriptors(nil, all)
	at(t, raw, 0, "03 10 0000 07")
	at(t, raw, 20, "04 01 0000 00 0000")
	got, err := ParseDescriptors(raw)
	if err != nil || len(got) != 2 || got[0].Type != DescriptorUUID || !bytes.Equal(got[0].ID, all[0].ID) ||
		got[1].Type != DescriptorCommandSet {
		t.Errorf("%+v (%v)", got, err)
	}
	long := make([]Descriptor, 17)
	for i := range long {
		long[i] = Descriptor{9, make([]byte, 255)}
	}
	long[15].ID = make([]byte, 208) // one more than there is room for
	if got, err := ParseDescriptors(AppendDescriptors(nil, long)); err != nil || len(got) != 15 {
		t.Errorf("%d fit (%v)", len(got), err)
	}
	full := make([]Descriptor, 17)
	for i := range full {
		full[i] = Descriptor{9, make([]byte, 252)}
	}
	if got, err := ParseDescriptors(AppendDescriptors(nil, full)); err != nil || len(got) != 16 {
		t.Errorf("%d fill the page (%v)", len(got), err)
	}
	full[15].ID = full[15].ID[:248]
	raw = AppendDescriptors(nil, full[:16])
	raw[PageLen-3] = 1 // in the last four bytes
	var late *Error
	if got, err := ParseDescriptors(raw); !errors.As(err, &late) || late.Offset != PageLen-4 || len(got) != 16 {
		t.Errorf("%d (%v)", len(got), err)
	}
	raw = AppendDescriptors(nil, long)
	raw[15*259+1] = 255 // 211 bytes are left
	var e *Error
	if got, err := ParseDescriptors(raw); !errors.As(err, &e) || e.Offset != 15*259 || len(got) != 15 {
		t.Errorf("%d (%v)", len(got), err)
	}
}

func TestLogs(t *testing.T) {
	e := new(Effects)
	e.Admin[OpIdentify], e.IO[OpWrite] = EffectSupported, EffectSupported|EffectContent
	raw := e.Append(nil)
	at(t, raw, 24, "01000000")
	at(t, raw, 1028, "03000000")
	h := DiscoveryHeader{3, 2, 1}
	at(t, h.Append(nil), 0, "0300000000000000 0200000000000000 0100")
	if got, err := ParseDiscoveryHeader(h.Append(nil)); err != nil || got != h {
		t.Errorf("%v (%v)", got, err)
	}
}

func TestDiscoveryEntry(t *testing.T) {
	e := DiscoveryEntry{
		Transport: TransportRDMA, Family: FamilyIPv4, Type: SubsystemNVM, PortID: 1,
		ControllerID: AnyController, AdminSQSize: 32,
		Service: "4420", SubsystemNQN: "nqn.2026-11.example:disk", Address: "192.0.2.1",
		RDMA: RDMASpecific{1, 1, 1, 0x1234},
	}
	raw := e.Append(nil)
	at(t, raw, 0, "01 01 02 00 0100 ffff 2000 0000")
	at(t, raw, 32, "34343230 20")
	at(t, raw, 256, "6e 71 6e")
	at(t, raw, 512, "3139322e302e322e31 20")
	at(t, raw, 768, "01 01 01 0000000000 3412")
	if got, err := ParseDiscoveryEntry(raw); err != nil || got != e {
		t.Errorf("%+v (%v)", got, err)
	}
	e.SubsystemNQN = ""
	if got, err := ParseDiscoveryEntry(e.Append(nil)); err != nil || got != e {
		t.Errorf("without a name: %+v (%v)", got, err)
	}
}

func TestRanges(t *testing.T) {
	raw := Range{Attributes: 1, Blocks: 8, LBA: 0x100000000}.Append(nil)
	at(t, raw, 0, "01000000 08000000 0000000001000000")
	got, err := ParseRanges(append(raw, raw...), 2)
	if err != nil || len(got) != 2 || got[1] != (Range{1, 8, 1 << 32}) {
		t.Errorf("%+v (%v)", got, err)
	}
}
