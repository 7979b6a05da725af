package matrix_test

import (
	"context"
	"net"
	"slices"
	"testing"

	"github.com/goiwarp/iwarp/internal/matrix"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// sender is an end that frames FPDUs, and sends nothing.
func sender(markers, crc bool) *script.Link {
	l := script.NewLink(nil)
	l.Operate(script.Terms{MarkersSend: markers, CRC: crc})
	return l
}

// fpdu frames a zero-length message, with a DDP version of its own if it is given.
func fpdu(l *script.Link, op rdmap.Opcode, version uint8, ddpVersion ...uint8) []byte {
	h := op.Header(version)
	h.Last = true
	for _, v := range ddpVersion {
		h.Version = v
	}
	return l.Segment(h, nil)
}

// TestReadFPDUs: what bytes say by themselves.
//
// Proves N02: a mixture of versions does not go unnoticed.
func TestReadFPDUs(t *testing.T) {
	plain, bare := sender(false, true), sender(false, false)
	marked := sender(true, true)
	mixed, late := sender(false, true), sender(false, true)
	damaged := sender(false, true)
	second := fpdu(damaged, rdmap.OpWrite, 1)
	second[len(second)-1] ^= 1
	for _, c := range []struct {
		name  string
		bytes []byte
		want  string
	}{
		{"nothing", nil, "markers=false crc=false versions=[] rtr=none err=<nil>"},
		{"a Write", fpdu(plain, rdmap.OpWrite, 1), "markers=false crc=true versions=[1] rtr=write err=<nil>"},
		{"without CRC", fpdu(bare, rdmap.OpSend, 1), "markers=false crc=false versions=[1] rtr=send err=<nil>"},
		{"with a marker", fpdu(marked, rdmap.OpSend, 0), "markers=true crc=true versions=[0] rtr=send err=<nil>"},
		{"DDP 0, RDMAP 1", fpdu(mixed, rdmap.OpWrite, 1, 0),
			"markers=false crc=true versions=[0 1] rtr=write err=<nil>"},
		{
			"version 1, then 0", slices.Concat(fpdu(late, rdmap.OpWrite, 1), fpdu(late, rdmap.OpSend, 0)),
			"markers=false crc=true versions=[1 0] rtr=write err=<nil>",
		},
		{
			"half an FPDU more", slices.Concat(fpdu(plain, rdmap.OpWrite, 1), make([]byte, 7)),
			"markers=false crc=true versions=[1] rtr=write err=7 bytes after the last FPDU",
		},
	} {
		if got := matrix.ReadFPDUs(c.bytes); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	first := sender(false, true)
	got := matrix.ReadFPDUs(slices.Concat(fpdu(first, rdmap.OpWrite, 1), second))
	if want := "markers=false crc=true versions=[1] rtr=write err=mpa: bad CRC"; len(got) < len(want) ||
		got[:len(want)] != want {
		t.Errorf("a damaged second FPDU: %s", got)
	}
}

// TestReadFPDUOfTheDocuments reads FPDUs whose bytes nobody here has made: figure 5 of
// draft-culley-iwarp-mpa-03 and of RFC 5044.
func TestReadFPDUOfTheDocuments(t *testing.T) {
	const marker = "00000000"
	const rest = "00000000 00000000 00000001 00000000 000000000000000000000000000000000000000000000000"
	for _, c := range []struct{ name, bytes, want string }{
		{"CULLEY", marker + "002a 4003" + rest + "4c86b384", "markers=true crc=true versions=[0] rtr=none err=<nil>"},
		{"RFC 5044", marker + "002a 4143" + rest + "52239983", "markers=true crc=true versions=[1] rtr=none err=<nil>"},
		{"CRC of the other", marker + "002a 4143" + rest + "4c86b384",
			"markers=true crc=false versions=[1] rtr=none err=<nil>"},
	} {
		if got := matrix.ReadFPDUs(testrig.Bytes(t, c.bytes)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestSplitStartup: where the startup frames end.
func TestSplitStartup(t *testing.T) {
	req := mpa.AppendStartup(nil, &mpa.StartupFields{Key: mpa.KeyRequest, Rev: 1, PrivateData: make([]byte, 3)})
	rtr := mpa.AppendStartup(nil, &mpa.StartupFields{Key: mpa.KeyRtr, Rev: 1})
	key := mpa.AppendStartKey(nil, &mpa.StartKeyFields{M: true})
	message := mpa.AppendPrivateDataMessage(nil, make([]byte, 30), -1)
	for _, c := range []struct {
		name     string
		bytes    []byte
		message  bool
		want     []string
		wantRest int
	}{
		{"Request and more", slices.Concat(req, make([]byte, 9)), false, []string{"-> MPA ID Req Frame rev 1 pd 3"}, 9},
		{"Request and Rtr frame", slices.Concat(req, rtr), false,
			[]string{"-> MPA ID Req Frame rev 1 pd 3", "-> MPA ID RtR Frame rev 1 pd 0"}, 0},
		{"Start Key", slices.Concat(key, []byte{0}), false, []string{"-> MPA ident frame M rev 0"}, 1},
		{"message and Start Key", slices.Concat(message, key), true,
			[]string{"-> private data message pd 30", "-> MPA ident frame M rev 0"}, 0},
		{"half a Request", req[:19], false, nil, 19},
		{"no startup", message, false, nil, 32},
	} {
		lines, rest := matrix.Wire(c.bytes, c.message)
		if !slices.Equal(lines, c.want) || rest != c.wantRest {
			t.Errorf("%s: %q and %d bytes, want %q and %d", c.name, lines, rest, c.want, c.wantRest)
		}
	}
}

// TestFirst: who sent first, by how much of both directions was there.
func TestFirst(t *testing.T) {
	for _, c := range []struct {
		name  string
		turns [][2]int
		want  string
	}{
		{"initiator", [][2]int{{20, 0}, {20, 20}, {44, 20}, {44, 44}}, "initiator"},
		{"initiator, in two parts", [][2]int{{20, 0}, {20, 20}, {30, 20}, {44, 20}, {44, 44}}, "initiator"},
		{"responder", [][2]int{{20, 0}, {20, 20}, {20, 44}, {44, 44}}, "responder"},
		{"responder, before the FPDU is whole", [][2]int{{20, 0}, {20, 20}, {43, 20}, {43, 44}, {44, 44}}, "responder"},
		{"initiator alone", [][2]int{{20, 0}, {20, 20}, {44, 20}}, "initiator"},
	} {
		if got := matrix.First(24, c.turns...); got != c.want {
			t.Errorf("%s: %s", c.name, got)
		}
	}
}

// TestRelay: bytes pass, and a RST is told from a FIN.
func TestRelay(t *testing.T) {
	fin := func(say string) func(*net.TCPConn) error {
		return func(c *net.TCPConn) error {
			defer c.Close()
			if _, err := c.Write([]byte(say)); err != nil {
				return err
			}
			if err := c.CloseWrite(); err != nil {
				return err
			}
			return matrix.ReadAll(c)
		}
	}
	rst := func(c *net.TCPConn) error {
		var first [1]byte
		if _, err := c.Read(first[:]); err != nil {
			return err
		}
		_ = c.SetLinger(0)
		return c.Close()
	}
	waits := func(c *net.TCPConn) error {
		defer c.Close()
		_, err := c.Write([]byte("ping"))
		_ = matrix.ReadAll(c) // ends with the RST
		return err
	}
	for _, c := range []struct {
		name       string
		i, r       func(*net.TCPConn) error
		want       string
		toR, fromR string
	}{
		{"both in order", fin("ping"), fin("pong"), "fin", "ping", "pong"},
		{"responder resets", waits, rst, "rst-by-responder", "ping", ""},
	} {
		ending, kept, err := matrix.Relayed(context.WithoutCancel(t.Context()), c.i, c.r)
		if err != nil || ending != c.want || kept != [2]string{c.toR, c.fromR} {
			t.Errorf("%s: %s, %q, %v", c.name, ending, kept, err)
		}
	}
}

// TestNames: which revisions an error text speaks of.
func TestNames(t *testing.T) {
	for _, c := range []struct {
		text string
		rev  uint8
		want bool
	}{
		{"Reply of revision 1 to our Request of revision 0", 0, true},
		{"Reply of revision 1 to our Request of revision 0", 1, true},
		{"Reply of revision 1 to our Request of revision 0", 2, false},
		{"a non-permissive one of revisions 1 and 2", 2, true},
		{"bad Rev at byte 0", 0, false},
		{"revision 10", 0, false},
	} {
		if got := matrix.Names(c.text, c.rev); got != c.want {
			t.Errorf("%q, %d: %v", c.text, c.rev, got)
		}
	}
}
