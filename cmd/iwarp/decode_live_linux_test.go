package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// whenTold calls a function when the first line is written.
type whenTold struct {
	bytes.Buffer
	first func()
}

func (w *whenTold) Write(b []byte) (int, error) {
	if w.Len() == 0 {
		go w.first()
	}
	return w.Buffer.Write(b)
}

// greedyStartup has a server on lo answer with an ORD above the client's IRD.
func greedyStartup(ctx context.Context, ln net.Listener) error {
	out, err := new(net.Dialer).DialContext(ctx, "tcp", ln.Addr().String())
	if err != nil {
		return err
	}
	defer out.Close()
	in, err := ln.Accept()
	if err != nil {
		return err
	}
	defer in.Close()
	for d, conn := range []net.Conn{out, in} {
		e := mpa.Enhanced{IRD: 4, ORD: 4 + mpa.Depth(d)}
		key := []string{mpa.KeyRequest, mpa.KeyReply}[d]
		b := mpa.AppendStartup(nil, &mpa.StartupFields{Key: key, C: true, S: true, Rev: 2,
			PrivateData: mpa.AppendEnhanced(nil, &e)})
		if _, err := conn.Write(b); err != nil {
			return err
		}
		if _, err := io.ReadFull([]net.Conn{in, out}[d], b); err != nil {
			return err
		}
	}
	return nil
}

// TestDecodeInterface captures on lo until the time is over, or until an interrupt: the finding is that of the file.
func TestDecodeInterface(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("a packet socket takes root")
	}
	for _, args := range [][]string{{"--duration", "1s"}, {"--json"}} {
		ctx, interrupt := context.WithCancel(testrig.Within(t))
		defer interrupt()
		ln, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		testrig.Must(t, err)
		defer ln.Close()
		var out firstFinding
		out.found = interrupt
		if args[0] == "--duration" {
			out.found = func() {}
		}
		errs := whenTold{first: func() { testrig.Should(t, greedyStartup(ctx, ln)) }}
		args = append([]string{"decode", "-i", "lo", "--filter", ln.Addr().String()}, args...)
		err = execute(ctx, args, streams{&out, &errs})
		if statusOf(ctx, err) != statusFindings || !strings.Contains(out.String(), "reply-ord-above-ird") ||
			!strings.Contains(out.String(), ln.Addr().String()) {
			t.Errorf("%q: %v\n%s%s", args, err, &out, &errs)
		}
	}
}

// firstFinding calls a function when a finding is printed.
type firstFinding struct {
	bytes.Buffer
	found func()
}

func (f *firstFinding) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("reply-ord-above-ird")) {
		f.found()
	}
	return f.Buffer.Write(b)
}

// TestDecodeNoInterface names one that is not there.
func TestDecodeNoInterface(t *testing.T) {
	err := execute(t.Context(), []string{"decode", "-i", "no-such-interface"}, streams{io.Discard, io.Discard})
	if statusOf(t.Context(), err) != statusFailed || !strings.Contains(err.Error(), "no-such-interface: ") ||
		!strings.Contains(err.Error(), "no such network interface: ip link lists all interfaces") {
		t.Error(err)
	}
}

// TestDecodeInterfaceForbidden has no right to capture: what to do is said.
func TestDecodeInterfaceForbidden(t *testing.T) {
	if os.Getenv("IWARP_TEST_DECODE") != "" {
		os.Exit(run([]string{"decode", "-i", "lo"}, streams{os.Stdout, os.Stderr}))
	}
	cmd := exec.CommandContext(t.Context(), "setpriv", "--bounding-set", "-net_raw", os.Args[0],
		"-test.run", "^TestDecodeInterfaceForbidden$")
	if os.Getuid() != 0 {
		cmd = exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestDecodeInterfaceForbidden$")
	} else if _, err := exec.LookPath("setpriv"); err != nil {
		t.Skip(err)
	}
	cmd.Env = append(os.Environ(), "IWARP_TEST_DECODE=1")
	text, _ := cmd.CombinedOutput()
	want := "operation not permitted: become root, or setcap cap_net_raw,cap_net_admin+ep the program, " +
		"or tcpdump -i lo -U -w - -s 0 | iwarp decode -\n"
	if cmd.ProcessState.ExitCode() != statusFailed || !strings.HasSuffix(string(text), want) {
		t.Errorf("status %d, %s", cmd.ProcessState.ExitCode(), text)
	}
}
