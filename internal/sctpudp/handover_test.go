package sctpudp

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"

	"github.com/goiwarp/iwarp/internal/chunk"
	"github.com/goiwarp/iwarp/internal/lowerlayer"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// A dialedStranger is one that an Endpoint has sent a COOKIE ECHO to.
type dialedStranger struct {
	*stranger
	theirs chunk.Setup
	conn   chan *end
	failed chan error
}

// getsEcho has an Endpoint dial a stranger, up to the COOKIE ECHO.
func getsEcho(ctx context.Context, t *testing.T, client *Endpoint) *dialedStranger {
	t.Helper()
	d := &dialedStranger{stranger: meet(t, client), conn: make(chan *end, 1), failed: make(chan error, 1)}
	go func() {
		c, err := client.Dial(ctx, d.pc.LocalAddr().(*net.UDPAddr).AddrPort())
		if err != nil {
			d.failed <- err
			return
		}
		d.conn <- run(c)
	}()
	_, c := d.hears(chunk.TypeInit)
	d.theirs, _ = parseSetup(c.Value)
	d.ours.Cookie = []byte("cookie")
	d.says(d.theirs.Tag, chunk.TypeInitAck, 0, d.ours.Append(nil))
	d.hears(chunk.TypeCookieEcho)
	return d
}

// TestAfterCookieAck: nothing is lost of what comes right after the COOKIE ACK, in its packet or in the next, however
// soon: this stranger sends nothing again.
func TestAfterCookieAck(t *testing.T) {
	client := endpoint(t, false, Config{})
	abort := []byte{0, chunk.CauseUserAbort, 0, 8, 'f', 'u', 'l', 'l'}
	for range 20 {
		for _, bundled := range []bool{true, false} {
			d := getsEcho(t.Context(), t, client)
			d.follows(bundled, chunk.TypeData, chunk.FlagsWhole, data(d.ours.TSN, 1, 16, "first"))
			if m := within(t, within(t, d.conn).messages); string(m.Data) != "first" {
				t.Errorf("bundled %t: got %q", bundled, m.Data)
			}
			d = getsEcho(t.Context(), t, client)
			d.follows(bundled, chunk.TypeAbort, 0, abort)
			if err := within(t, within(t, d.conn).lost); !errors.Is(err, lowerlayer.ErrAborted) ||
				err.Error() != lowerlayer.ErrAborted.Error()+`: "full"` {
				t.Errorf("bundled %t: lost: %v", bundled, err)
			}
		}
	}
}

// follows says COOKIE ACK and one more chunk.
func (d *dialedStranger) follows(bundled bool, kind chunk.Type, flags byte, value []byte) {
	d.Helper()
	ack, c := chunk.Chunk{Type: chunk.TypeCookieAck}, chunk.Chunk{Type: kind, Flags: flags, Value: value}
	if bundled {
		d.sends(d.packet(d.theirs.Tag, ack, c))
		return
	}
	d.sends(d.packet(d.theirs.Tag, ack))
	d.sends(d.packet(d.theirs.Tag, c))
}

// TestBeforeCookieAck: an association that was refused does not begin by a COOKIE ACK that follows, however soon, nor
// does one whose cookie is stale. An association that is refused as soon as it was accepted has begun before.
func TestBeforeCookieAck(t *testing.T) {
	client, server := endpoint(t, false, Config{}), endpoint(t, true, Config{})
	stale := chunk.Parameter{Type: chunk.CauseStaleCookie, Value: make([]byte, 4)}
	for range 20 {
		for kind, value := range map[chunk.Type][]byte{chunk.TypeAbort: nil, chunk.TypeError: stale.Append(nil)} {
			d := getsEcho(t.Context(), t, client)
			d.says(d.theirs.Tag, kind, 0, value)
			d.says(d.theirs.Tag, chunk.TypeCookieAck, 0, nil)
			if err := within(t, d.failed); !errors.Is(err, lowerlayer.ErrRefused) {
				t.Errorf("type %d: %v", kind, err)
			}
		}
		go func() {
			c, err := server.Accept(t.Context())
			testrig.Must(t, err)
			c.Abort("no")
			run(c)
		}()
		c, err := client.Dial(t.Context(), server.at())
		testrig.Must(t, err)
		if err := within(t, run(c).lost); !errors.Is(err, lowerlayer.ErrAborted) {
			t.Errorf("lost: %v", err)
		}
	}
	if n, peers, handshakes := client.count(); n != 0 || peers != 0 || handshakes != 0 {
		t.Errorf("%d associations with %d peers, and %d handshakes", n, peers, handshakes)
	}
}

// TestErrorInHandshake: an ERROR that says something else than that the cookie is stale ends no handshake.
func TestErrorInHandshake(t *testing.T) {
	d := getsEcho(t.Context(), t, endpoint(t, false, Config{}))
	other := chunk.Parameter{Type: chunk.CauseInvalidStream, Value: make([]byte, 4)}
	d.says(d.theirs.Tag, chunk.TypeError, 0, other.Append(nil))
	d.says(d.theirs.Tag, chunk.TypeCookieAck, 0, nil)
	within(t, d.conn)
}

// TestGivenUp: whoever gives up after the COOKIE ECHO tells the server, for which the association has begun.
func TestGivenUp(t *testing.T) {
	client := endpoint(t, false, Config{})
	ctx, cancel := context.WithCancel(t.Context())
	d := getsEcho(ctx, t, client)
	cancel()
	if tag, c := d.hears(chunk.TypeAbort); tag != d.ours.Tag || c.Flags != 0 {
		t.Errorf("ABORT with tag %x, flags %d", tag, c.Flags)
	}
	within(t, d.failed)

	server := endpoint(t, true, Config{})
	lossy, err := script.RelaySCTP(server.at().String(),
		func(_ *script.SCTPFlow, toServer bool, packet []byte, deliver func([]byte)) {
			if all, _ := chunk.In(packet); toServer || all[0].Type != chunk.TypeCookieAck {
				deliver(packet)
			}
		})
	testrig.Must(t, err)
	defer func() { _ = lossy.Close() }()
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	go func() { _, _ = client.Dial(ctx, netip.MustParseAddrPort(lossy.Addr())) }()
	c, err := server.Accept(t.Context())
	testrig.Must(t, err)
	cancel()
	if err := within(t, run(c).lost); !errors.Is(err, lowerlayer.ErrAborted) {
		t.Errorf("the server's association: %v", err)
	}
}

// TestHandshakesLeaveNothing: a COOKIE ACK that comes too late, or again, or where there is no room, begins nothing.
func TestHandshakesLeaveNothing(t *testing.T) {
	client := endpoint(t, false, Config{MaxAssociations: 1})
	ctx, cancel := context.WithCancel(t.Context())
	late := getsEcho(ctx, t, client)
	cancel()
	if err := within(t, late.failed); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	late.says(late.theirs.Tag, chunk.TypeCookieAck, 0, nil)

	first := getsEcho(t.Context(), t, client)
	for range 2 {
		first.says(first.theirs.Tag, chunk.TypeCookieAck, 0, nil)
	}
	within(t, first.conn)
	second := getsEcho(t.Context(), t, client)
	second.says(second.theirs.Tag, chunk.TypeCookieAck, 0, nil)
	if err := within(t, second.failed); err == nil || errors.Is(err, lowerlayer.ErrNoAnswer) {
		t.Errorf("without room: %v", err)
	}
	if n, peers, handshakes := client.count(); n != 1 || peers != 1 || handshakes != 0 {
		t.Errorf("%d associations with %d peers, and %d handshakes", n, peers, handshakes)
	}
}
