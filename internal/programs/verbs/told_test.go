//go:build linux && (amd64 || arm64)

package verbs

import (
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/internal/ulpdata"
)

// wantLine looks for all of the parts in one line.
func wantLine(t *testing.T, log *testrig.Buffer, parts ...string) {
	t.Helper()
	for line := range strings.Lines(log.String()) {
		missing := false
		for _, p := range parts {
			missing = missing || !strings.Contains(line, p)
		}
		if !missing {
			return
		}
	}
	t.Errorf("no line with %q:\n%s", parts, log)
}

// logged is a Config with a log of what IWARP_LOG=connection shows.
func logged() (Config, *testrig.Buffer) {
	l := new(testrig.Buffer)
	log := slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelInfo}))
	return Config{RNIC: iwarp.RNICConfig{Logger: log}}, l
}

// TestFailureLogged: when the program gets the event of a connection that did not come up, the log has said why.
func TestFailureLogged(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	testrig.Must(t, err)
	defer ln.Close()
	go func() {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = conn.Read(make([]byte, 100))
		_, _ = conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
	}()
	cfg, log := logged()
	c := newProgramWith(t, cfg)
	at := netip.MustParseAddrPort(ln.Addr().String())
	must(t, c.d.Connect(c.resolve(2, at), c.queue().qp, ConnParam{}))
	e := c.event(ConnectError)
	wantLine(t, log, "startup failed", "local=127.0.0.1", "peer="+at.String(),
		fmt.Sprintf("CONNECT_ERROR, status %d", e.Status), "cause=", "HTTP")
}

// TestRefusalLogged: a call that is refused is in the log with the reason, and with advice, if there is any.
func TestRefusalLogged(t *testing.T) {
	cfg, log := logged()
	d := newProgramWith(t, cfg).d
	d.Refused(Refusal{Call: "ibv_modify_qp", QP: 7, Errno: syscall.EINVAL, Why: "timeout is 32"})
	wantLine(t, log, "call refused", "call=ibv_modify_qp", "qp=7",
		`program_gets="invalid argument"`, `cause="timeout is 32"`)
	if strings.Contains(log.String(), "advice") {
		t.Error(log)
	}
	d.Refused(Refusal{Call: "ibv_create_qp_ex", QP: 8, Errno: syscall.EOPNOTSUPP, Why: "none", Advice: "another"})
	wantLine(t, log, "call refused", "qp=8", "cause=none", "advice=another")
}

// TestCallLogged is the same in the guise of RoCE, where the program gets a completion. Without GIDs both ends are on
// this host.
func TestCallLogged(t *testing.T) {
	for local, by := range map[string]GID{"127.0.0.2": netip.MustParseAddr("127.0.0.2").As16(), "127.0.0.1": {}} {
		t.Run(local, func(t *testing.T) {
			t.Parallel()
			cfg, log := logged()
			cfg.RoCE = true
			p := newProgramWith(t, cfg)
			a := p.queue()
			must(t, a.d.Meet(a.qp, Path{Local: by, Number: ulpdata.QPNumberMask}))
			must(t, a.d.ModifyQP(a.qp, StateRTS))
			a.send(2, wrSend, a.region("text", accessLocalWrite), nil)
			want(t, "status", a.completion().Status, statusRetryExceeded)
			wantLine(t, log, "startup failed", "local="+local,
				fmt.Sprintf("peer=127.0.0.1:%d", portOfNumber(ulpdata.QPNumberMask)), "RETRY_EXC_ERR", "refused")
		})
	}
}
