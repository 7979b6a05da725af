package endings

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
)

// A reset is one after the peer's FIN, too: nobody receives then, but the socket tells, whether something was sent
// between the two or not, and whether the program waits for the end or closes.
func TestResetAfterFIN(t *testing.T) {
	for name, c := range map[string]struct{ sends, waits bool }{
		"idle": {waits: true}, "sent": {sends: true, waits: true}, "closed": {}, "sent, and closed": {sends: true},
	} {
		t.Run(name, func(t *testing.T) {
			res, p := rig.RespondToPeer(t, iwarp.QPConfig{HalfClose: true})
			halfClosed(res, p)
			if c.sends {
				res.MustPost(&iwarp.SendWR{ID: 2, Inline: []byte("unheard")})
				res.WantSent(iwarp.OpSend, 2, iwarp.StatusSuccess)
			}
			rig.Must(t, p.Link.Reset())
			if c.waits {
				rig.Wait(t, res.Done(), "the end of the connection")
			}
			wantLostBy(t, res, res.Close())
		})
	}
}

// What the peer has not acknowledged when both halves have ended may still be lost to a reset: Close waits for the one
// or the other.
func TestCloseBehindFIN(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(p *rig.Peer) error
		lost bool
	}{
		"reset": {func(p *rig.Peer) error { return p.Link.Reset() }, true},
		"read":  {func(p *rig.Peer) error { _, err := io.Copy(io.Discard, p.Conn); return err }, false},
	} {
		t.Run(name, func(t *testing.T) {
			res, p := rig.RespondToPeer(t, iwarp.QPConfig{HalfClose: true})
			rig.Must(t, p.Conn.(*net.TCPConn).SetReadBuffer(256<<10))
			halfClosed(res, p)
			sentUnread(res)
			closed := rig.DialInBackground(t, res.Close)
			rig.Until(t, func() bool { return res.State() == iwarp.StateClosing }, "the state Closing")
			rig.Must(t, c.do(p))
			if err := <-closed; c.lost {
				wantLostBy(t, res, err)
			} else {
				rig.Must(t, err)
			}
		})
	}
}

// Sends that completed after the peer's FIN, and that it never reads, are lost, and Close says so when nothing more of
// them was acknowledged for CloseTimeout.
func TestCloseUnread(t *testing.T) {
	res, p := rig.RespondToPeer(t, iwarp.QPConfig{HalfClose: true, CloseTimeout: 200 * time.Millisecond})
	rig.Must(t, p.Conn.(*net.TCPConn).SetReadBuffer(256<<10))
	halfClosed(res, p)
	sentUnread(res)
	err := res.Close()
	wantLostBy(t, res, err)
	if err == nil || !strings.Contains(err.Error(), "not acknowledged") {
		t.Errorf("Close: %v", err)
	}
}

// sentUnread sends more than the peer's system takes for it.
func sentUnread(res *rig.End) {
	all := res.MR(1<<20, 0)
	res.MustPost(&iwarp.SendWR{ID: 2, SGL: []iwarp.SGE{all.Slice(0, 1<<20)}})
	res.WantSent(iwarp.OpSend, 2, iwarp.StatusSuccess)
}

// halfClosed has the peer send its FIN, and waits for it.
func halfClosed(res *rig.End, p *rig.Peer) {
	p.Send(p.Write(1, 0, nil)) // RTR
	res.MustPostRecv(1)
	rig.Must(p.T, p.Link.CloseWrite())
	res.WantReceived(1, iwarp.StatusFlushed)
}

func wantLostBy(t *testing.T, res *rig.End, err error) {
	t.Helper()
	if !errors.Is(err, iwarp.ErrConnectionLost) || errors.Is(err, iwarp.ErrPeerClosed) ||
		res.State() != iwarp.StateError {
		t.Errorf("Close: %v, in state %v", err, res.State())
	}
}
