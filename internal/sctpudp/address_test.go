package sctpudp

import (
	"encoding/binary"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp/internal/chunk"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/sctp"
)

// wantNoAddress expects an INIT or INIT ACK to announce no address.
func wantNoAddress(t *testing.T, c *chunk.Chunk) {
	t.Helper()
	all, whole := chunk.Parameters(c.Value[chunk.SetupLen:])
	if !whole || len(all) == 0 {
		t.Errorf("%d parameters, whole %t", len(all), whole)
	}
	for _, p := range all {
		if p.Type == chunk.ParamIPv4 || p.Type == chunk.ParamIPv6 {
			t.Errorf("the address % x is announced", p.Value)
		}
	}
}

// TestOneAddress: neither end of an association has an address but the one that its packets come from. One that the
// peer announces gets no packet, and what comes from it, though with the right tag, is not of the association.
//
// Proves C14.
func TestOneAddress(t *testing.T) {
	e := endpoint(t, true, Config{})
	s := meet(t, e)
	other, err := listen(netip.MustParseAddrPort("127.0.0.2:0"))
	if err != nil {
		t.Skipf("no second address on this system: %v", err)
	}
	defer func() { _ = other.Close() }()
	elsewhere := chunk.Parameter{Type: chunk.ParamIPv4, Value: []byte{127, 0, 0, 2}}
	s.says(0, chunk.TypeInit, 0, elsewhere.Append(s.ours.Append(nil)))
	_, ack := s.hears(chunk.TypeInitAck)
	wantNoAddress(t, &ack)
	theirs, _ := parseSetup(ack.Value)
	s.echo(&theirs)
	s.hears(chunk.TypeCookieAck)
	conn, err := e.Accept(t.Context())
	testrig.Must(t, err)
	c := run(conn)
	h := chunk.Header{Source: s.port(), Destination: e.port, Tag: theirs.Tag}
	_, err = other.WriteToUDPAddrPort(h.Packet(chunk.Chunk{Type: chunk.TypeData, Flags: plain,
		Value: data(s.ours.TSN, 1, 16, "from elsewhere")}), e.at())
	testrig.Must(t, err)
	s.talks(&theirs, c, "from here")
	testrig.Must(t, c.Send(sctp.Message{Stream: 1, PPID: 16, Data: []byte("back")}))
	s.hears(chunk.TypeData)
	_, err = other.WriteToUDPAddrPort([]byte("after"), other.LocalAddr().(*net.UDPAddr).AddrPort())
	testrig.Must(t, err)
	b := make([]byte, 2000)
	if n, _, err := other.ReadFromUDPAddrPort(b); err != nil || string(b[:n]) != "after" {
		t.Errorf("sent to the other address: % x, %v", b[:n], err)
	}
	_, init, _ := dialed(t)
	wantNoAddress(t, &init)
}

// TestNotDelayed: a message goes out when it is given, alone or after others, however short: it arrives when the path
// has brought it, and not later.
//
// Proves C15.
func TestNotDelayed(t *testing.T) {
	const delay = 10 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		from, to := linked(t, testrig.Link{Delay: delay}, Config{})
		run(from)
		began := time.Now()
		arrived := make(chan time.Duration, 4)
		go to.Run(func(m sctp.Message) {
			sent := time.Duration(binary.BigEndian.Uint64(m.Data))
			arrived <- time.Since(began) - sent
		}, func(uint16, uint64) {}, func(error) {})
		for _, after := range []time.Duration{0, 0, time.Millisecond, 300 * time.Millisecond} {
			time.Sleep(after)
			text := binary.BigEndian.AppendUint64(nil, uint64(time.Since(began)))
			testrig.Must(t, from.Send(sctp.Message{PPID: 16, Data: text}))
		}
		for i := range 4 {
			if took := <-arrived; took != delay {
				t.Errorf("message %d arrived after %v", i, took)
			}
		}
	})
}
