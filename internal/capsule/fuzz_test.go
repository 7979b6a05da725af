package capsule_test

import (
	"bytes"
	"testing"

	. "github.com/goiwarp/iwarp/internal/capsule"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// FuzzCommand reads any capsule, and has it come out as it went in. No way to read it panics.
func FuzzCommand(f *testing.F) {
	for _, hex := range []string{connectAdmin, write4K, getCAP, setCC, readLog, discard} {
		f.Add(testrig.Bytes(f, hex))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := ParseCommand(b)
		if err != nil {
			if len(b) >= CommandLen {
				t.Fatal(err)
			}
			return
		}
		if again := c.Append(nil); !bytes.Equal(again, b[:CommandLen]) {
			t.Fatalf("%x\n, not %x", again, b[:CommandLen])
		}
		if i := c.IO(); i.Blocks == 0 || i.Blocks > 1<<16 {
			t.Fatalf("%+v", i)
		}
		if d := c.DatasetManagement(); d.Ranges < 1 || d.Ranges > MaxRanges {
			t.Fatalf("%+v", d)
		}
		_, _ = c.Property()
		_, _, _, _ = c.Connect(), c.Identify(), c.Features(), c.GetLogPage()
		_, _ = c.Name(true)+c.Name(false), c.String()
	})
}

// FuzzPages reads any page as each kind, and has what was read come out the same when it is written and read again.
func FuzzPages(f *testing.F) {
	f.Add(make([]byte, PageLen))
	f.Add(AppendDescriptors(nil, []Descriptor{{DescriptorUUID, make([]byte, 16)}}))
	f.Add(DiscoveryEntry{Transport: TransportRDMA, Service: "4420", Address: "192.0.2.1"}.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		again(t, b, ParseIdentifyController, func(i IdentifyController) []byte { return i.Append(nil) })
		again(t, b, ParseIdentifyNamespace, func(n IdentifyNamespace) []byte { return n.Append(nil) })
		again(t, b, ParseConnectData, func(d ConnectData) []byte { return d.Append(nil) })
		again(t, b, ParseDiscoveryEntry, func(e DiscoveryEntry) []byte { return e.Append(nil) })
		again(t, b, ParseDiscoveryHeader, func(h DiscoveryHeader) []byte { return h.Append(nil) })
		again(t, b, ParseCompletion, func(c Completion) []byte { return c.Append(nil) })
		if nsids, err := ParseList(b); err == nil && len(nsids) > MaxList {
			t.Fatalf("%d NSIDs", len(nsids))
		}
		_, _ = ParseDescriptors(b)
		_, _ = ParseRanges(b, MaxRanges)
	})
}

func again[T comparable](t *testing.T, b []byte, parse func([]byte) (T, error), write func(T) []byte) {
	t.Helper()
	v, err := parse(b)
	if err != nil {
		return
	}
	if w, err := parse(write(v)); err != nil || w != v {
		t.Fatalf("%+v, and again %+v (%v)", v, w, err)
	}
}
