package mpa_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// writeBy are the ways in which a Writer frames a ULPDU.
var writeBy = map[string]func(w *mpa.Writer, ulpdu []byte) []byte{
	"Append": func(w *mpa.Writer, u []byte) []byte { return w.Append(nil, u) },
	"Frame":  func(w *mpa.Writer, u []byte) []byte { return w.Frame(nil, u[:14], u[14:]) },
	"Payload": func(w *mpa.Writer, u []byte) []byte {
		return w.End(w.Payload(w.Payload(w.Begin(nil, len(u)), u[:7]), u[7:]))
	},
}

// longStream is the lengths of ULPDUs that make a stream of more than 200,000 bytes.
func longStream() (lengths []int) {
	for n := 14; n <= 64000; n += n/2 + 1 {
		lengths = append(lengths, n, n+1)
	}
	return append(lengths, 64000, 20)
}

// TestMarkersReserved looks at each marker of a long stream, and changes what is reserved in it.
//
// Proves F06: two bytes of zero, and then FPDUPTR; what arrives in the two bytes does not matter, but for
// the CRC.
func TestMarkersReserved(t *testing.T) {
	for name, write := range writeBy {
		for _, crc := range []bool{false, true} {
			w, r, markers := mpa.NewWriter(true, crc), mpa.NewReader(true, crc), 0
			for _, n := range longStream() {
				u, from := testrig.Numbered(n), w.Offset()
				b := write(&w, u)
				for at := layout.NextMarker(from); at < len(b); at += layout.MarkerInterval {
					if b[at] != 0 || b[at+1] != 0 {
						t.Fatalf("%s, CRC %t: the marker at %d begins with % x", name, crc, from+uint64(at), b[at:at+2])
					}
					b[at], b[at+1] = 0x80, 0x01
					markers++
				}
				if crc {
					b = layout.AppendCRC(b[:len(b)-layout.CRCLen], layout.CRC32C(0, b[:len(b)-layout.CRCLen]))
				}
				if f, used, err := r.Next(b); err != nil || used != len(b) || !bytes.Equal(f.ULPDU, u) {
					t.Fatalf("%s, CRC %t: reserved bits are set: %d of %d bytes, %v", name, crc, used, len(b), err)
				}
			}
			if markers < 400 {
				t.Errorf("%s: %d markers", name, markers)
			}
		}
	}
}

// TestCRCUntilTheEnd has each pair of ends that want CRCs or not, in each dialect, exchange a long stream in
// both directions.
//
// Proves F14: where one of them wants CRCs, each FPDU has one, and damage to any of them is found; where none does,
// damage is not looked for.
func TestCRCUntilTheEnd(t *testing.T) {
	for _, d := range []mpa.Dialect{rfc5044, rfc6581, rtr2007, startKey} {
		for both := range 8 {
			c := of(fmt.Sprintf("%v/%d", d, both), dialect(d), serving(mpa.Dialects()...),
				noCRC(both&1 == 0, both&2 == 0), markers(both&4 != 0, both&4 != 0))
			n := c.firstState(t)
			n.runWhole()
			i, r := n.i.m.Negotiated(), n.r.m.Negotiated()
			if !n.i.up(fpduOfResponder) || !n.r.up(fpduOfInitiator) {
				t.Fatalf("%s: not up: %v, %v", c.name, n.i.err, n.r.err)
			}
			checkStream(t, c.name+", from the Initiator", &i, &r, both&3 != 0)
			checkStream(t, c.name+", from the Responder", &r, &i, both&3 != 0)
		}
	}
}

// checkStream sends a long stream from one end to another, and damages each FPDU of it in turn.
func checkStream(t *testing.T, name string, from, to *mpa.Negotiated, crc bool) {
	t.Helper()
	for how, write := range writeBy {
		w, r := mpa.NewWriter(from.MarkersSend, from.CRC), mpa.NewReader(to.MarkersReceive, to.CRC)
		for _, n := range longStream() {
			at := w.Offset()
			b := write(&w, testrig.Numbered(n))
			damaged, twin := bytes.Clone(b), r
			damaged[len(b)-layout.CRCLen-1] ^= 1
			if _, _, err := twin.Next(damaged); (err != nil) != crc {
				t.Fatalf("%s, by %s: the FPDU of %d bytes at %d was damaged: %v", name, how, n, at, err)
			}
			if layout.CRCValid(b) != crc {
				t.Fatalf("%s, by %s: the FPDU of %d bytes at %d ends in % x",
					name, how, n, at, b[len(b)-layout.CRCLen:])
			}
			if _, used, err := r.Next(b); err != nil || used != len(b) {
				t.Fatalf("%s, by %s: %v", name, how, err)
			}
		}
	}
}

// TestKeys gives each machine every key there is in place of the one that it waits for, and that one with an
// byte changed.
//
// Proves Q02: a Responder takes the key of a Request alone, and an Initiator that of a Reply.
func TestKeys(t *testing.T) {
	keys := []string{mpa.KeyRequest, mpa.KeyReply, mpa.KeyRtr, mpa.KeyRtrInLetters, mpa.KeyStart + "\x40"}
	for _, key := range []string{mpa.KeyRequest, mpa.KeyReply} {
		for at := range mpa.KeyLen {
			for _, bit := range []byte{0x01, 0x20, 0x80} {
				b := []byte(key)
				b[at] ^= bit
				keys = append(keys, string(b))
			}
		}
	}
	for _, key := range keys {
		header := []byte(key + "\x40\x01\x00\x00")
		i, err := mpa.NewInitiator(mpa.Offer{Dialect: rfc5044})
		testrig.Must(t, err)
		i.Start(epoch)
		r := mpa.NewResponder(mpa.ResponderConfig{Dialects: []mpa.Dialect{rfc5044, rfc6581, rtr2007}})
		r.Start(epoch)
		_, err = r.Input(epoch, header)
		if good := key == mpa.KeyRequest; (err == nil) != good || (r.Request() != nil) != good {
			t.Errorf("a Responder that gets %q: %v, %v", key, r.Request(), err)
		}
		if _, err := i.Input(epoch, header); (err == nil) != (key == mpa.KeyReply) ||
			i.Done() != (key == mpa.KeyReply) {
			t.Errorf("an Initiator that gets %q: done %t, %v", key, i.Done(), err)
		}
	}
}
