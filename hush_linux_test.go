package iwarp_test

import (
	"context"
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/mpa"
)

// TestWaitersEndSuppression: a consumer polls for so long that what arrives wakes nobody. Whoever begins to wait in any
// other way ends that, and while he waits it does not begin again.
func TestWaitersEndSuppression(t *testing.T) {
	for name, waits := range map[string]func(ctx context.Context, qp *iwarp.QP){
		"a notice":           func(_ context.Context, qp *iwarp.QP) { qp.RecvCQ().Arm(false) },
		"a solicited notice": func(_ context.Context, qp *iwarp.QP) { qp.SendCQ().Arm(true) },
		"Recv":               func(ctx context.Context, qp *iwarp.QP) { _, _ = qp.Recv(ctx, iwarp.SGE{}) },
		"Wait":               func(ctx context.Context, qp *iwarp.QP) { _ = qp.RecvCQ().Wait(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			a, _ := rig.TCPPair(t)
			socket, ok := a.(*net.TCPConn)
			if !ok {
				t.Fatalf("%T", a)
			}
			pd := rig.NewPD(t, rig.NewRNIC(t, iwarp.RNICConfig{}))
			cqs := [2]*iwarp.CQ{}
			for i := range cqs {
				cq, err := pd.RNIC().CreateCQ(8)
				rig.Must(t, err)
				cqs[i] = cq
			}
			qp := rig.NewQP(t, pd, iwarp.QPConfig{SendCQ: cqs[0], RecvCQ: cqs[1], RNR: patient().RNR})
			defer qp.Abort()
			n := mpa.Negotiated{Role: mpa.RoleInitiator, DDPVersion: 1, RDMAPVersion: 1, SendFirst: true, CRC: true}
			rig.Must(t, qp.ModifyRTS(a, n, nil))
			poll := func() {
				var wc [1]iwarp.WC
				for range 600 {
					qp.SendCQ().Poll(wc[:])
				}
			}
			// A timer ends it for one who rests.
			rig.Until(t, func() bool { poll(); return wakesFrom(t, socket) > 1 }, "what arrives to wake nobody")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			waiting := rig.DialInBackground(t, func() error { waits(ctx, qp); return nil })
			rig.Until(t, func() bool { poll(); return wakesFrom(t, socket) == 1 }, "what arrives to wake who waits")
			for range 20 {
				if poll(); wakesFrom(t, socket) != 1 {
					t.Fatal("what arrives wakes nobody, though one waits")
				}
			}
			cancel()
			rig.Must(t, <-waiting)
		})
	}
}

// wakesFrom returns from how many bytes on what arrives at a socket wakes who waits for it.
func wakesFrom(t *testing.T, socket *net.TCPConn) (bytes int) {
	t.Helper()
	raw, err := socket.SyscallConn()
	rig.Must(t, err)
	rig.Must(t, raw.Control(func(fd uintptr) {
		bytes, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVLOWAT)
	}))
	rig.Must(t, err)
	return bytes
}
